//! Guards of snippets beside those of annotations and of the ConfigMap: which of them count is nginx's inheritance.

use crate::bed::{apply, start, talk};
use crate::snippets::{Host, brief, scope, told, upstream, whitelist};
use model::policy::{
    Access, AuthBasic, AuthScheme, Cors, Origins, Password, Policy, Satisfy, Users,
};
use model::snippet::Scope;
use model::{Configuration, Global, Networks, ServerName, Template};
use proxy::{Decision, Native, Question, explain};
use snippet::Context;
use std::sync::Arc;

const PASS: &str = "set $proxy_upstream_name demo-echo-80; proxy_pass http://upstream_balancer;";

fn networks(text: &str) -> Networks {
    std::iter::once(text.parse().expect("a network")).collect()
}

fn denylist(network: &str) -> Policy {
    let deny = networks(network);
    Policy { access: Access { deny, ..Access::default() }, ..Policy::default() }
}

/// A password, and how it goes together with an address list.
fn password(network: &str, satisfy: Option<Satisfy>) -> Policy {
    let known = Password::Plain(b"wonder".as_slice().into());
    let users = Arc::new(Users([(b"alice".as_slice().into(), known)].into()));
    let basic = AuthBasic { scheme: AuthScheme::Basic, realm: "R".to_owned(), users };
    let mut policy = Policy { auth_basic: Some(basic.into()), ..whitelist(network) };
    policy.access.satisfy = satisfy;
    policy
}

fn text(parts: &[&str]) -> &'static str {
    parts.concat().leak()
}

fn blocking(mut configuration: Configuration, network: &str) -> Configuration {
    let mut global = Global::clone(&configuration.global);
    global.block.addresses = networks(network);
    configuration.global = Arc::new(global);
    configuration
}

async fn status_of(native: &Native, method: &str, target: &str, fields: &str) -> String {
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    let told = brief(&talk(native, head.as_bytes()).await);
    told.split(' ').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn rules_of_the_http_level_leave_block_cidrs_in_force() {
    let endpoint = upstream("main").await;
    let host = |http| {
        Host::default()
            .path("/", "", Policy::default())
            .path("/listed", "", whitelist("127.0.0.0/8"))
            .path("/ruled", "deny 203.0.113.9;", Policy::default())
            .http(http)
            .configuration(endpoint)
    };
    let denies = host("deny 203.0.113.9;");
    let blocked = blocking(denies.clone(), "127.0.0.0/8");
    let native = start(&blocked).await;
    assert_eq!(status_of(&native, "GET", "/", "").await, "403");
    assert_eq!(status_of(&native, "GET", "/listed", "").await, "200", "it has a list of its own");
    assert_eq!(status_of(&native, "GET", "/ruled", "").await, "200", "it has rules of its own");
    apply(&native, &blocked, &denies).await;
    assert_eq!(status_of(&native, "GET", "/", "").await, "200");
    apply(&native, &denies, &blocked).await;
    assert_eq!(status_of(&native, "GET", "/", "").await, "403", "alone it changes, too");
    let native = start(&blocking(host("allow 127.0.0.1;"), "127.0.0.0/8")).await;
    assert_eq!(status_of(&native, "GET", "/", "").await, "200", "the first that fits decides");
}

#[tokio::test]
async fn rules_of_a_location_within_stand_in_place_of_the_lists_around_it() {
    let open = text(&[
        "location /o/shut { allow 192.0.2.0/24; deny all; ",
        PASS,
        " location /o/shut/in { ",
        PASS,
        " } } location /o/nowhere { deny all; }",
    ]);
    let shut = |path: &str| {
        text(&[
            "location ",
            path,
            "/all { allow all; ",
            PASS,
            " } location ",
            path,
            "/same { ",
            PASS,
            " }",
        ])
    };
    let native = Host::default()
        .path("/o", open, whitelist("127.0.0.0/8"))
        .path("/s", shut("/s"), whitelist("192.0.2.0/24"))
        .path("/d", shut("/d"), denylist("127.0.0.0/8"));
    let native = native.serve().await;
    for (target, expected) in [
        ("/o/x", "200"),
        ("/o/shut", "403"),
        ("/o/shut/in", "403"),
        ("/o/nowhere", "403"),
        ("/s/x", "403"),
        ("/s/all", "200"),
        ("/s/same", "403"),
        ("/d/x", "403"),
        ("/d/all", "200"),
        ("/d/same", "403"),
    ] {
        assert_eq!(status_of(&native, "GET", target, "").await, expected, "{target}");
    }
}

#[tokio::test]
async fn satisfy_of_an_annotation_hides_that_of_levels_around() {
    let host = |server, http| {
        Host::default()
            .server(server)
            .path("/all", "", password("127.0.0.0/8", Some(Satisfy::All)))
            .path("/any", "", password("127.0.0.0/8", Some(Satisfy::Any)))
            .path("/none", "", password("127.0.0.0/8", None))
            .path("/said", "satisfy any;", password("127.0.0.0/8", Some(Satisfy::All)))
            .http(http)
    };
    for (server, http, none) in [
        ("", "satisfy any;", "200"),
        ("satisfy any;", "", "200"),
        ("", "satisfy all;", "401"),
        ("satisfy all;", "satisfy any;", "401"),
    ] {
        let native = host(server, http).serve().await;
        for (target, expected) in
            [("/all", "401"), ("/any", "200"), ("/none", none), ("/said", "200")]
        {
            let found = status_of(&native, "GET", target, "").await;
            assert_eq!(found, expected, "{target} within {server} {http}");
        }
    }
}

#[tokio::test]
async fn lists_of_annotations_stand_in_place_of_rules_around() {
    for (server, http) in [("deny all;", ""), ("", "deny all;")] {
        let native = Host::default()
            .server(server)
            .path("/", "", Policy::default())
            .path("/denies", "", denylist("192.0.2.0/24"))
            .path("/allows", "", whitelist("127.0.0.0/8"))
            .path("/within", text(&["location /within/x { ", PASS, " }"]), denylist("192.0.2.0/24"))
            .http(http);
        let native = native.serve().await;
        for (target, expected) in
            [("/", "403"), ("/denies", "200"), ("/allows", "200"), ("/within/x", "200")]
        {
            let found = status_of(&native, "GET", target, "").await;
            assert_eq!(found, expected, "{target} within {server} {http}");
        }
    }
}

/// A location of which the operator and a tenant except methods.
async fn excepted_twice(operator: &str, tenant: &str) -> Arc<Native> {
    guarded_twice(operator, tenant, Policy::default()).await
}

/// The same beside guards of annotations.
async fn guarded_twice(operator: &str, tenant: &str, policy: Policy) -> Arc<Native> {
    let host = Host::default().path("/", "set $x 1;", policy);
    let mut configuration = host.configuration(upstream("main").await);
    let mut both = Scope::clone(&scope(Context::Location, operator, ""));
    let mut own = Scope::clone(&scope(Context::Location, tenant, ""));
    own.has_locations_behind(&both);
    both.join(&own);
    let name = ServerName::new("a.test");
    let server = configuration.servers.get_mut(&name).expect("the host");
    let location = Arc::make_mut(&mut Arc::make_mut(server).locations[0]);
    Arc::make_mut(&mut location.policy).snippet = Some(Arc::new(both));
    start(&configuration).await
}

#[tokio::test]
async fn who_excepts_methods_behind_the_operator_lets_nobody_in() {
    let closed = "limit_except GET { deny all; }";
    for (operator, tenant, post, put) in [
        (closed, "limit_except GET POST { deny all; }", "403", "403"),
        (closed, "limit_except GET { allow all; }", "403", "403"),
        ("limit_except GET POST { deny all; }", closed, "403", "403"),
        ("limit_except GET POST { deny all; }", "limit_except GET { allow all; }", "200", "403"),
        ("limit_except GET POST { allow all; }", "deny 192.0.2.1;", "200", "200"),
    ] {
        let native = excepted_twice(operator, tenant).await;
        assert_eq!(status_of(&native, "GET", "/", "").await, "200", "{operator} {tenant}");
        assert_eq!(status_of(&native, "POST", "/", "").await, post, "{operator} {tenant}");
        assert_eq!(status_of(&native, "PUT", "/", "").await, put, "{operator} {tenant}");
    }
}

/// A password that any address may have.
fn known(satisfy: Option<Satisfy>) -> Policy {
    let mut policy = password("127.0.0.0/8", None);
    policy.access = Access { satisfy, ..Access::default() };
    policy
}

const ALL_BUT_GET: &str = "limit_except GET { allow all; }";

#[tokio::test]
async fn who_excepts_methods_opens_no_guard_that_the_operator_has_for_them() {
    let alice = "Authorization: Basic YWxpY2U6d29uZGVy\r\n";
    let but_get = "limit_except GET { deny all; }";
    let asks_but_get = "limit_except GET { auth_basic S; }";
    for (operator, tenant, with, without) in [
        (but_get, "limit_except GET { auth_basic M; }", "403", "403"),
        (asks_but_get, "limit_except GET { allow all; auth_basic off; }", "200", "401"),
        ("limit_except GET { auth_basic off; }", asks_but_get, "200", "401"),
        // What the operator says for all methods no other text excepts from.
        ("deny all;", "limit_except HEAD { allow all; }", "403", "403"),
        ("allow all;", "limit_except HEAD { deny all; }", "403", "403"),
        ("deny 127.0.0.1; limit_except GET { auth_basic S; }", but_get, "403", "403"),
        ("deny all; limit_except GET { auth_basic S; }", ALL_BUT_GET, "403", "403"),
        ("deny all; limit_except GET { allow all; }", ALL_BUT_GET, "200", "401"),
        ("auth_basic S;", "limit_except HEAD { auth_basic off; }", "200", "401"),
        // What nginx refuses to be said twice.
        ("auth_basic S;", "auth_basic off;", "200", "401"),
        ("satisfy all; deny all;", "satisfy any; auth_basic M;", "403", "403"),
        ("satisfy any; allow all;", "satisfy all; auth_basic M;", "200", "401"),
        // What is as in nginx.
        (but_get, "satisfy any;", "200", "401"),
        ("", "satisfy any; limit_except GET { deny all; auth_basic M; }", "200", "401"),
        (
            "deny all; auth_basic S; limit_except GET { allow all; auth_basic off; }",
            "",
            "200",
            "200",
        ),
    ] {
        let native = guarded_twice(operator, tenant, known(None)).await;
        let ask = async |fields| status_of(&native, "POST", "/", fields).await;
        let asked = [ask(alice).await, ask("").await];
        assert_eq!(asked, [with, without], "{operator} + {tenant}");
    }
}

#[tokio::test]
async fn a_program_of_the_operator_runs_whatever_methods_another_text_excepts() {
    let operator = "if ($http_x_bad) { return 402; }";
    for tenant in ["", "limit_except HEAD { allow all; }", "limit_except HEAD { auth_basic off; }"]
    {
        let native = excepted_twice(operator, tenant).await;
        for (fields, expected) in [("X-Bad: 1\r\n", "402"), ("", "200")] {
            for method in ["GET", "POST"] {
                let found = status_of(&native, method, "/", fields).await;
                assert_eq!(found, expected, "{method} {fields} {tenant}");
            }
        }
    }
    // Within one text it is as in nginx.
    let own = "if ($http_x_bad) { return 402; } limit_except HEAD { allow all; }";
    for (operator, tenant) in [(own, ""), ("", own)] {
        let native = excepted_twice(operator, tenant).await;
        assert_eq!(status_of(&native, "GET", "/", "X-Bad: 1\r\n").await, "200");
    }
}

#[tokio::test]
async fn a_location_of_a_tenant_opens_no_guard_that_the_operator_has_around_it() {
    let alice = "Authorization: Basic YWxpY2U6d29uZGVy\r\n";
    let within = |says: &str| text(&["location /in { ", says, PASS, " }"]);
    let deeper = |says: &str| {
        text(&["location /in { allow all; location /in/x { ", says, PASS, " } ", PASS, " }"])
    };
    let bad = "if ($http_x_bad) { return 402; }";
    for (operator, says, with, without) in [
        ("deny 127.0.0.1;", "allow all; ", "403", "403"),
        ("deny 192.0.2.1;", "deny 127.0.0.1; ", "403", "403"),
        ("allow all;", "deny 127.0.0.1; ", "403", "403"),
        ("allow 127.0.0.1; deny all;", "allow all; ", "200", "401"),
        ("deny all;", "limit_except HEAD { allow all; } ", "403", "403"),
        ("auth_basic S;", "auth_basic off; ", "200", "401"),
        ("satisfy all;", "satisfy any; allow all; ", "200", "401"),
        (bad, "", "402", "402"),
        (bad, "if ($http_x_bad) { return 200 open; } ", "402", "402"),
        (bad, "limit_except HEAD { allow all; } ", "402", "402"),
        // What is the tenant's own, and what the operator says nothing of.
        ("", "if ($http_x_bad) { return 201 own; } ", "201", "201"),
        ("allow all;", "auth_basic off; ", "200", "200"),
    ] {
        for (tenant, target) in [(within(says), "/in"), (deeper(says), "/in/x")] {
            let native = guarded_twice(operator, tenant, known(None)).await;
            let ask = async |fields: &str| {
                let fields = text(&["X-Bad: 1\r\n", fields]);
                status_of(&native, "POST", target, fields).await
            };
            let asked = [ask(alice).await, ask("").await];
            assert_eq!(asked, [with, without], "{operator} + {tenant}");
        }
    }
}

#[tokio::test]
async fn rules_of_a_limit_except_stand_in_place_of_the_lists_of_annotations() {
    let inside = "limit_except GET { allow 127.0.0.0/8; deny all; }";
    let native = Host::default()
        .path("/s", inside, whitelist("192.0.2.0/24"))
        .path("/d", inside, denylist("127.0.0.0/8"))
        .path("/o", "limit_except GET { deny all; }", whitelist("127.0.0.0/8"))
        .path("/n", "limit_except GET { deny 203.0.113.9; }", whitelist("192.0.2.0/24"))
        .path("/i", "limit_except GET { auth_basic off; }", whitelist("192.0.2.0/24"));
    let native = native.serve().await;
    for (target, get, post) in [
        ("/s", "403", "200"),
        ("/d", "403", "200"),
        ("/o", "200", "403"),
        ("/n", "403", "200"),
        // Without rules of its own it has the list.
        ("/i", "403", "403"),
    ] {
        assert_eq!(status_of(&native, "GET", target, "").await, get, "{target}");
        assert_eq!(status_of(&native, "POST", target, "").await, post, "{target}");
    }
}

#[tokio::test]
async fn a_realm_that_turns_out_to_be_off_asks_for_no_password() {
    let inside = "geo $realm { default Closed; 127.0.0.0/8 off; }";
    let outside = "geo $realm { default Closed; 192.0.2.0/24 off; }";
    for (http, with, without) in [(inside, "200", "200"), (outside, "401", "403")] {
        let mut asks = password("127.0.0.0/8", None);
        asks.access = Access::default();
        let native = Host::default()
            .path("/asks", "auth_basic $realm;", asks)
            .path("/nobody", "auth_basic $realm;", Policy::default())
            .http(http);
        let native = native.serve().await;
        assert_eq!(status_of(&native, "GET", "/asks", "").await, with, "{http}");
        assert_eq!(status_of(&native, "GET", "/nobody", "").await, without, "{http}");
    }
}

#[tokio::test]
async fn what_a_method_is_excepted_for_comes_before_preflights_and_redirects() {
    let cors = Cors {
        origins: Origins::Any,
        credentials: false,
        methods: "GET".to_owned(),
        headers: "X-A".to_owned(),
        expose: None,
        max_age: 1,
    };
    let told = Policy { cors: Some(cors.into()), ..Policy::default() };
    let away = model::policy::Redirect {
        status: 301,
        target: Template::parse("http://b.test/").expect("no variables").into(),
    };
    let away = Policy { redirect: Some(away), ..Policy::default() };
    let native = Host::default()
        .path("/cors", "limit_except GET { deny all; }", told.clone())
        .path("/free", "limit_except GET OPTIONS { deny all; }", told)
        .path("/away", "limit_except GET { deny all; }", away);
    let native = native.serve().await;
    let origin = "Origin: http://c.test\r\n";
    assert_eq!(status_of(&native, "OPTIONS", "/cors", origin).await, "403");
    assert_eq!(status_of(&native, "OPTIONS", "/free", origin).await, "204");
    assert_eq!(status_of(&native, "POST", "/away", "").await, "403");
    assert_eq!(status_of(&native, "GET", "/away", "").await, "301");
}

#[tokio::test]
async fn names_that_the_expression_of_a_location_around_gives_are_known_within() {
    let within = text(&["location ~ ^/u/(?<who>\\w+) { location ~ /(?<what>\\w+)$ {
            if ($who = guest) { return 403; } return 200 $who-$what-$1; } }"]);
    let native = Host::of(within, "").serve().await;
    assert_eq!(told(&native, "/u/guest/admin").await, "403 page");
    assert_eq!(told(&native, "/u/root/admin").await, "200 root-admin-admin");
}

/// What an explanation says of access for a request with this method.
async fn access_told(snippet: &'static str, policy: Policy, method: &str) -> Vec<String> {
    let configuration =
        Host::default().path("/", snippet, policy).configuration(upstream("main").await);
    let question = Question {
        head: format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n").into(),
        http2: false,
        tls: None,
        client: "192.0.2.1:1".parse().expect("an address"),
        ports: (80, 443),
    };
    let decisions = explain(&configuration, question).await.expect("an explanation");
    let told = decisions.into_iter().filter(|decision| decision.step == "access");
    let line = |decision: Decision| match decision.by {
        Some(by) => format!("{}  [{by}]", decision.outcome),
        None => decision.outcome,
    };
    told.map(line).collect()
}

#[tokio::test]
async fn an_explanation_tells_the_guards_that_snippets_leave() {
    let allowlist = || whitelist("10.0.0.0/8");
    let denied = "192.0.2.1 is not allowed  [allowlist-source-range of Ingress demo/x]";
    assert_eq!(access_told("", allowlist(), "POST").await, [denied, "refused with 403"]);
    let except = "limit_except GET { allow all; }";
    assert_eq!(
        access_told(except, allowlist(), "POST").await,
        ["no list counts for POST: limit_except of a snippet"]
    );
    assert_eq!(access_told(except, allowlist(), "GET").await, [denied, "refused with 403"]);
    for (snippet, by) in [
        ("deny all;", "allow and deny of a snippet"),
        ("limit_except GET { deny all; }", "limit_except of a snippet"),
    ] {
        let told = access_told(snippet, Policy::default(), "POST").await;
        assert_eq!(told, [format!("refused with 403  [{by}]")]);
    }
    let any = access_told("satisfy any;", allowlist(), "GET").await;
    assert_eq!(
        any,
        [denied, "one of these is enough: a snippet says satisfy any", "refused with 403"]
    );
}

#[tokio::test]
async fn an_explanation_never_says_that_a_password_is_asked_for_where_a_snippet_takes_it_away() {
    let asked = "a name and a password are asked for  [auth-type of Ingress demo/x]";
    let policy = || Policy { access: Access::default(), ..password("0.0.0.0/0", None) };
    assert_eq!(access_told("", policy(), "GET").await, [asked, "refused with 401"]);
    let told = access_told("auth_basic off;", policy(), "GET").await;
    assert_eq!(told, ["no password is asked for: a snippet says auth_basic off"]);
    let told = access_told("auth_basic closed;", Policy::default(), "GET").await;
    assert_eq!(told[0], "nobody has a password for auth_basic of a snippet: 403");
}
