//! The page of the directives, for operators.

use crate::compile::arguments;
use crate::table::{Row, TABLE};
use crate::{Knowledge, OTHERS};
use std::fmt::Write;

/// `docs/snippets.md`.
pub fn markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    let sections = [
        ("native", "## Native", "What it does"),
        ("no effect", "## Taken without effect", "Why"),
        ("needs nginx", "## Needs nginx", "What to do instead"),
        ("refused", "## Refused", "Why"),
    ];
    for (fate, title, column) in sections {
        let mut rows: Vec<&Row> =
            TABLE.iter().flat_map(|rows| rows.iter()).filter(|row| row.fate() == fate).collect();
        rows.sort_by_key(|row| row.name);
        let head = format!(
            "\n{title}\n\n| Directive | Where | Takes | {column} | Module |\n|---|---|---|---|---|\n"
        );
        page.push_str(&head);
        for row in rows {
            let (name, levels, takes) = (row.name, levels(row), arguments(row));
            let off = if row.is_off_only() { "`off` has no effect. " } else { "" };
            let line =
                format!("| `{name}` | {levels} | {takes} | {off}{} | {} |\n", row.doc, row.module);
            page.push_str(&line);
        }
    }
    variables(&mut page);
    page
}

fn levels(row: &Row) -> String {
    match row.levels.0 {
        u8::MAX => "anywhere".to_owned(),
        _ => row.levels.to_string(),
    }
}

fn variables(page: &mut String) {
    page.push_str(VARIABLES);
    for row in OTHERS {
        let star = if row.prefix { "*" } else { "" };
        let fate = match row.fate {
            Knowledge::Native => "native",
            Knowledge::Empty => "empty",
            Knowledge::NeedsNginx => "needs nginx",
        };
        let line = format!("| `${}{star}` | {fate} | {} |", row.name, row.doc.replace('|', "\\|"));
        writeln!(page, "{line}").expect("a String takes everything");
    }
}

const INTRODUCTION: &str = "# Directives of snippets

Generated from the table in `crates/snippet`; do not edit.

A snippet is read as nginx reads its configuration, and what it says is kept as values; no text of it becomes configuration of
anything. A directive that is not below is unknown and refuses the snippet, as in nginx, with line and column. \"Where\" says at
which level a directive may stand: an annotation `configuration-snippet` and the ConfigMap's `location-snippet` are a location,
`server-snippet` is a server, `auth-snippet` the location that asks the authenticator, `http-snippet` is http.

## Whose they are

Annotations count with `allow-snippet-annotations: \"true\"` and `annotations-risk-level: Critical`, as in ingress-nginx.
`annotation-value-word-blocklist` forbids words in them. Both keys are needed. Below that level the Ingress is refused. At that level, with
`allow-snippet-annotations` missing or `false`, a snippet is ignored: the Ingress is served WITHOUT it, and without a `deny` or `return` in it. `check`
has a note of that and says \"served identically\".

- What is not understood closes the Ingress that says it (503), and nobody else; the Problem has line and column, and so has the
  webhook's refusal. What takes nginx is a warning of the webhook, and closes as well.
- A text of the ConfigMap that is not understood leaves the one before in force, or that there was none. At a start, and where the
  ConfigMap is made, nothing is known of before: then it is missing, and
  where it has a word of a guard (`deny`, `auth_basic`, `limit_req`, `set_real_ip_from`, `proxy_set_header`, `return` in a server or
  location and the like), every location answers 503 until it is mended.
- In a `server-snippet` of an Ingress `rewrite` and `location` are such words as well, but for what its own namespace has of the host: that answers 503
  while the text is not understood, not heard ([tenancy.md](tenancy.md)), or its Ingress not taken on a Pod that knows no valid version. In texts
  of the ConfigMap they close nothing, nor where nginx refuses the text (`--engine=nginx`), unless it is left out for a location that the ConfigMap
  has, too.
- `location-snippet` stands before `configuration-snippet`, `server-snippet` of an Ingress before that of the ConfigMap. Of the
  Ingresses of a host the oldest of the host's owner that has a `server-snippet` counts ([tenancy.md](tenancy.md)).
- So a condition in `location-snippet` does not see what `configuration-snippet` sets, as it does in nginx: let it ask for variables of
  `http-snippet`. Where both have a `limit_except`, which nginx refuses, each must let a request in.
- `more_set_headers`, `more_clear_headers` and those for input of `location-snippet` count behind those of `configuration-snippet`, as in nginx: of a
  field that both name the operator has the last word, unless an `if` or a `location` of `configuration-snippet` says it, which is further in.
- Answers get their fields in nginx's order: `more_set_headers` of the location, `custom-headers`, `more_set_headers` of the `if` that holds, CORS,
  then `expires`, cookies of an authenticator and `add_header`. Where an `if` of a snippet holds, nothing is told of CORS.
- Beside a `limit_except` of `configuration-snippet` all counts that `location-snippet` says for all methods: its rules, its `auth_basic`, and its
  `if`, `return` and `rewrite`; in nginx they do not. Within one text they do not here either. Where both texts say `satisfy` or
  `auth_basic`, which nginx refuses, what closes more counts. But `satisfy any` of an Ingress, as a line or an annotation, has its password make up
  for addresses that `location-snippet` denies, as in nginx, unless that says `satisfy all`.
- A `location` in `configuration-snippet` stands behind `location-snippet`, too, of whose rules and program nginx asks none there: its `if`, `return` and
  `rewrite` come before those of the location, whom its `allow` and `deny` keep out stays out, whatever else would let in, and its `auth_basic` and
  `satisfy all` stay. A `location` of a `server-snippet` has none of it: what is to count there is an `if` with `return` in the ConfigMap's
  `server-snippet`, which every request of the host comes to first.
- `allow` and `deny` of a `location` stand in place of all lists around it, those of `allowlist-source-range` and `denylist-source-range`
  too; these stand in place of rules of a server and of `http-snippet`. `block-cidrs` stands behind the rules of `http-snippet`. The annotation
  `satisfy` hides that of a server and of `http-snippet`. All of it is as in nginx.
- `set_real_ip_from` and `proxy_hide_header` of `http-snippet` stand beside `proxy-real-ip-cidr` and `hide-headers`; those of a server or location stand
  in place of both. The annotations for limits (`limit-rps`, `limit-rpm`, `limit-connections`, `limit-rate`) hide limits of the same kind of a server and
  of `http-snippet`, and a `location` with `limit_req` or `limit_conn` those of annotations around it. As in nginx, all of it.
- `error_page` of a server, location or `if` stands in place of `custom-http-errors` of the ConfigMap; that of `http-snippet` stands behind it. Those of an
  annotation (`custom-http-errors`, `auth-signin`) stand in place of all of a server and of `http-snippet`. Unlike in nginx, an `error_page` for
  494 to 497 is for `return` alone: who sends too large a head, or not the certificate that is asked for, gets 400 at once, as if there were none. In a
  `server` of `http-snippet`, which has none of the locations that `custom-http-errors` leads to, errors stay as they are (nginx: 500).
- A variable is known to the snippets of the Ingress that declares it; one that the ConfigMap declares, to all. In nginx every
  snippet knows those of all others. Variables of two namespaces are never the same.
- `satisfy any`, `set_real_ip_from` and what goes with it in a `server-snippet` count for the paths of its own Ingress, since they
  would open guards of others. `allow`, `deny` and limits there count for paths of its own namespace; for those of others the
  operator's stay, and whom the rules keep out stays out besides. `auth_basic off` and `auth_request off` there have no effect on paths, as in nginx.
- Of Lua one program is understood, in `configuration-snippet`: the recipe of oauth2-proxy for cookies in parts, an `access_by_lua_block` that
  sets Set-Cookie of `$auth_cookie` and of the `$upstream_cookie_…_1` in a variable. Each cookie of the authenticator then has a line of its own.
- A `location` in `location-snippet` stands in every location of an Ingress, exact ones too. nginx takes it only where each of them has room
  for it, which a prefix such as `/app` has not.
- A table (`map`, `geo`, `split_clients`) of `http-snippet` takes the place of the controller's own of that variable: `$loggable` says
  what is logged (neither empty nor 0) in place of `skip-access-log-urls`, `$req_id` is X-Request-ID, `$full_x_forwarded_for` X-Forwarded-For
  with `compute-full-forwarded-for`, and `close` as `$connection_upgrade` ends connections to upstreams. A `set` goes before it. What
  each location sets, such as `$namespace` and `$proxy_upstream_name`, no table makes.
- `add_header` of a `server-snippet` or `http-snippet` reaches no location with `auth-url`, as in ingress-nginx, where that location has one of
  its own for the authenticator's cookies: write it into `configuration-snippet`, or use `more_set_headers`.
- `proxy_pass` leads to `http://upstream_balancer` or to a Service of the snippet's own namespace (any with
  `allow-cross-namespace-resources`); the filter of addresses counts for ExternalName, too. `set $proxy_upstream_name` takes
  `namespace-service-port`, written out, of the own namespace, and makes sure that this upstream is there. By another name nobody
  is there: where only some requests come to that `set`, those fail, with a warning; else the snippet is refused.
- `auth_basic` takes the passwords of `auth-secret`, and closes without one; a variable in it may be `off`. A `limit_req` or `limit_conn` needs its zone in
  `http-snippet`.
- Texts, and expressions in them, count for the namespace's budget ([limits.md](limits.md)).
- `stream-snippet` of the ConfigMap opens ports: `server { listen 5432; proxy_pass db.demo.svc.cluster.local:5432; }`, with `udp` and
  `proxy_protocol`, as entries of tcp-services and udp-services do, with either engine. As an annotation it has no effect.
";

const VARIABLES: &str = "
## Variables

Every variable of annotations is known, `set`, `map`, `geo`, `split_clients`, `auth_request_set` and named groups of expressions
declare more, and so are these. An unknown one refuses the snippet.

| Variable | Here | What it says |
|---|---|---|
";
