//! Servers that an `http-snippet` has: what is wrong with them is told where it stands, and how many ports they open
//! has a bound.

use crate::builders::*;
use objects::PathType::{self, Exact, Prefix};
use translate::{Options, Translation, check, translate};

fn options() -> Options {
    Options { config_map: Some(key("x", "settings")), ..Options::default() }
}

fn translated(text: &str) -> Translation {
    let mut snapshot = cluster();
    put_config_map(&mut snapshot, config_map("x", "settings", &[("http-snippet", text)]));
    translate(&snapshot, &options())
}

fn problems(text: &str) -> Vec<String> {
    translated(text).problems.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_wrong_with_an_own_server_is_told_by_line_and_column_and_by_check() {
    let version = "needs nginx: versions of TLS that are not spoken here";
    for (text, start) in [
        (
            "server {\n  listen 8080;\n  location / {\n    proxy_pass https://s.b.svc:443;\n    \
             proxy_ssl_protocols TLSv1 TLSv1.1;\n  }\n}",
            format!("line 5, column 25: {version}"),
        ),
        (
            "server {\n listen 80 default_server; return 204; }",
            "line 2, column 2: what no host has on port 80 is for Fairway's default".to_owned(),
        ),
        (
            "server { listen 8080; }\nserver { listen 8080; location /a { deny me; } }",
            "line 2, column 42: ".to_owned(),
        ),
    ] {
        let problems = problems(text);
        let [problem] = &problems[..] else { panic!("{text}: {problems:?}") };
        let start = format!("ConfigMap x/settings: http-snippet: {start}");
        assert!(problem.starts_with(&start), "{problem}");
        let mut snapshot = cluster();
        put_config_map(&mut snapshot, config_map("x", "settings", &[("http-snippet", text)]));
        let found = check(&snapshot, &options(), 0);
        // What only nginx has is no mistake.
        let mut all = found.refused.iter().chain(&found.objects);
        assert!(all.any(|remark| problem.contains(&remark.message)), "{found:?}");
    }
}

#[test]
fn what_an_own_server_says_in_vain_is_a_notice() {
    let text = "server { listen 8080; server_name a.test; return 204; }
server { listen 8080 proxy_protocol; server_name b.test a.test; return 205; }";
    let problems = problems(text);
    let [protocol, name] = &problems[..] else { panic!("{problems:?}") };
    assert!(protocol.contains("line 2, column 10: listen has no effect"), "{protocol}");
    assert!(name.contains("line 2, column 38: server_name has no effect"), "{name}");
    let translated = translated(text);
    let http = translated.configuration.global.http_snippet.as_ref().expect("it counts");
    let origin = http.origin.as_ref().map(ToString::to_string);
    assert_eq!(origin.as_deref(), Some("ConfigMap x/settings"));
}

#[test]
fn own_servers_open_32_ports_at_most() {
    let server = |port: u16| format!("server {{ listen {port}; return 204; }}\n");
    let all: String = (9000..9032).map(server).collect();
    // A second server of a port opens none, and an address is not a port.
    let shared = format!("{all}server {{ listen 127.0.0.1:9000; return 205; }}");
    assert!(problems(&shared).is_empty());
    let problems = problems(&format!("{all}{}", server(9032)));
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert!(problem.contains("line 33, column 10: snippets open 32 ports at most"), "{problem}");
    let refused = translated(&format!("{all}{}", server(9032)));
    assert!(refused.configuration.global.http_snippet.is_none(), "none of them is opened");
}

#[test]
fn a_location_of_a_server_snippet_that_is_also_a_path_closes_the_path_and_no_other_one() {
    let told = |text: &str, kind: PathType, path: &str| {
        let mut snapshot = cluster();
        let data = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
        put_config_map(&mut snapshot, config_map("x", "settings", &data));
        put_service(&mut snapshot, service("b", "s", 80));
        let mut ingress = ingress("b", "one");
        let paths = vec![self::path(path, kind, backend("s", Some(objects::PortRef::Number(80))))];
        ingress.rules = vec![rule(Some("a.test"), Some(paths))];
        annotate(&mut ingress, "server-snippet", text);
        put_ingress(&mut snapshot, ingress);
        let found = translate(&snapshot, &options());
        let server = &found.configuration.servers[&model::ServerName::new("a.test")];
        let denied = |location: &&std::sync::Arc<model::Location>| matches!(&location.backend, model::Backend::Denied(why) if why.contains("server-snippet"));
        let said =
            found.problems.iter().any(|it| it.message.contains("is also a path of Ingress b/one"));
        let closed = server.locations.iter().filter(denied).count();
        assert_eq!(said, closed > 0, "{:?}", found.problems);
        closed
    };
    for (text, kind, path, closed) in [
        ("location / { deny all; }", Prefix, "/", 1),
        ("location ^~ / { deny all; }", Prefix, "/", 1),
        ("location = /x { deny all; }", Exact, "/x", 1),
        ("location = /x { deny all; }", Prefix, "/x", 1),
        ("location /x/ { deny all; }", Prefix, "/x", 1),
        ("location /x { deny all; }", Prefix, "/x", 0),
        ("location = / { deny all; }", Prefix, "/", 0),
        ("location ~ / { deny all; }", Prefix, "/", 0),
        ("location /x { deny all; }", Exact, "/x", 0),
    ] {
        assert_eq!(told(text, kind, path), closed, "{text} beside {kind:?} {path}");
    }
}
