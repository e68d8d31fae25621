//! What a snippet of one namespace can do to paths of another one on the same host, over sockets: namespace `a` has
//! the host, `b` has paths on it and leads requests on.

use crate::bed::{self, MAIN, put_upstream, start, talk};
use model::policy::{Access, Limits, Policy, RequestLimit};
use model::snippet::Scope;
use model::{Backend, Configuration, Global, Kind, Location, Origin, Server, ServerName};
use proxy::Native;
use snippet::{Context, Names, Snippet, understand};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An upstream that sends every request on to `@in`.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = tcp.read(&mut head).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nX-Accel-Redirect: @in\r\n\r\n";
            let _ = tcp.write_all(answer).await;
        }
    });
    address
}

/// What a snippet of a namespace means beside an `http-snippet`.
fn scope(place: Context, text: &str, http: &str, owner: &str) -> Scope {
    let parse = |place, text| Snippet::parse(place, text).expect("a snippet");
    let (snippet, mut names) = (parse(place, text), Names::default());
    parse(Context::Http, http).declare(&mut names);
    snippet.declare(&mut names);
    let meaning = snippet.understand(&names);
    let mut scope = meaning.unwrap_or_else(|mistakes| panic!("{text}: {mistakes:?}")).scope;
    scope.belong_to(&owner.into());
    scope
}

/// A path of a namespace: its snippet, its policy.
struct Path(&'static str, &'static str, &'static str, Policy);

fn a(path: &'static str, text: &'static str) -> Path {
    Path("a", path, text, Policy::default())
}

fn b(path: &'static str, text: &'static str) -> Path {
    Path("b", path, text, Policy::default())
}

async fn serve(http: &'static str, server: &'static str, paths: Vec<Path>) -> Arc<Native> {
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, MAIN, vec![upstream().await]);
    let location = |Path(owner, path, text, policy): &Path| {
        let snippet = Some(Arc::new(scope(Context::Location, text, http, owner)));
        let policy = Arc::new(Policy { snippet, ..policy.clone() });
        let origin = Some(Origin::new(Kind::Ingress, *owner, "x").into());
        Arc::new(Location { origin, ..bed::location(path, Backend::Upstream(id.clone()), policy) })
    };
    let name = ServerName::new("a.test");
    let server = Server {
        locations: paths.iter().map(location).collect(),
        snippet: Some(Arc::new(scope(Context::Server, server, http, "a"))),
        ..Server::new(name.clone())
    };
    configuration.servers.insert(name, Arc::new(server));
    let http = understand(Context::Http, http).expect("a snippet").http;
    configuration.global =
        Arc::new(Global { http_snippet: Some(http.into()), ..Global::default() });
    start(&configuration).await
}

/// Status of the answer to a GET, and its body where that is a word.
async fn told(native: &Native, target: &str) -> String {
    told_with(native, target, "").await
}

async fn told_with(native: &Native, target: &str, fields: &str) -> String {
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    let answer = talk(native, head.as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).unwrap_or_default();
    let word = body.lines().find(|line| line.bytes().all(|byte| byte.is_ascii_alphabetic()));
    format!("{status} {}", word.unwrap_or_default()).trim_end().to_owned()
}

/// Who is led on counts at each owner's limits, and there once.
#[tokio::test]
async fn limits_of_another_namespace_count_who_is_led_to_it() {
    let one = RequestLimit { rate: 1, burst: 0 };
    let limited = |burst| Policy {
        limits: Limits {
            per_second: Some(RequestLimit { burst, ..one }),
            request_status: 429,
            ..Limits::default()
        },
        ..Policy::default()
    };
    let led = "error_page 403 = /a; deny all;";
    let server = "location @in { return 200 said; }";
    let paths = vec![
        Path("a", "/a", "", limited(0)),
        Path("a", "/beside", led, limited(100_000)),
        Path("b", "/b", led, limited(100_000)),
    ];
    let native = serve("", server, paths).await;
    assert_eq!(told(&native, "/b").await, "200 said");
    assert_eq!(told(&native, "/b").await, "429", "the second is one too many for a");
    assert_eq!(told(&native, "/beside").await, "200 said", "its own namespace has counted it");

    let zones =
        "limit_req_zone $host zone=one:1m rate=1r/m; limit_req_zone $host zone=any:1m rate=9r/s;";
    let many = "limit_req zone=any burst=100 nodelay; error_page 403 = /a; deny all;";
    let paths = vec![a("/a", "limit_req zone=one; limit_req_status 429;"), b("/b", many)];
    let native = serve(zones, server, paths).await;
    assert_eq!(told(&native, "/b").await, "200 said");
    assert_eq!(told(&native, "/b").await, "429");
}

#[tokio::test]
async fn internal_and_named_locations_are_open_to_their_own_namespace() {
    let server =
        "location @in { return 200 named; } location /inside { internal; return 200 internal; }";
    let paths = |of: fn(&'static str, &'static str) -> Path| {
        vec![
            of("/named", "error_page 403 = @in; deny all;"),
            of("/page", "error_page 403 = /inside; deny all;"),
            of("/rewrite", "rewrite ^ /inside last;"),
            of("/onward", ""),
        ]
    };
    let native = serve("", server, paths(a)).await;
    assert_eq!(told(&native, "/named").await, "200 named");
    assert_eq!(told(&native, "/page").await, "200 internal");
    assert_eq!(told(&native, "/rewrite").await, "200 internal");
    assert_eq!(told(&native, "/onward").await, "200 named");
    let native = serve("", server, paths(b)).await;
    assert_eq!(told(&native, "/named").await, "500");
    assert_eq!(told(&native, "/page").await, "404");
    assert_eq!(told(&native, "/rewrite").await, "404");
    assert_eq!(told(&native, "/onward").await, "500");
    // What a says for all of its host leads to what is a's.
    let of_host = "error_page 404 = @in; location @in { return 200 named; }";
    let native = serve("", of_host, vec![b("/b", "return 404;")]).await;
    assert_eq!(told(&native, "/b").await, "200 named");
}

#[tokio::test]
async fn what_a_namespace_sets_of_everybodys_variables_ends_with_its_locations() {
    let http = "map $arg_role $role { default $arg_role; }";
    let guard = "if ($role = admin) { return 200 open; } return 200 shut;";
    let paths = || {
        vec![
            a("/a", guard),
            b("/b", "set $role admin; rewrite ^ /a last;"),
            b("/own", "set $role admin; return 200 $role;"),
            b("/led", "set $role admin; rewrite ^ /c last;"),
            b("/c", guard),
        ]
    };
    let native = serve(http, "set $other 1;", paths()).await;
    assert_eq!(told(&native, "/a").await, "200 shut");
    assert_eq!(told(&native, "/a?role=admin").await, "200 open");
    assert_eq!(told(&native, "/b").await, "200 shut");
    assert_eq!(told(&native, "/own").await, "200 admin");
    assert_eq!(told(&native, "/led").await, "200 open");
    let server = "if ($role = admin) { return 200 opened; }";
    let led = b("/page", "set $role admin; error_page 403 = /a; deny all;");
    let native = serve(http, server, vec![a("/a", guard), led]).await;
    assert_eq!(told(&native, "/page").await, "200 shut", "the server's program does not see it");
    let native = serve(http, "set $role admin;", paths()).await;
    assert_eq!(told(&native, "/c").await, "200 shut", "nor does the host's owner set it for b");
    assert_eq!(told(&native, "/a").await, "200 open");
}

/// What a table said where b was, of a client and a query that b made up, is no answer for a.
#[tokio::test]
async fn what_tables_said_at_another_namespaces_location_is_forgotten() {
    let http = "geo $office { default 0; 10.0.0.0/8 1; }
        map $arg_role $role { default $arg_role; }
        limit_req_zone $office zone=offices:1m rate=100r/s;";
    let guard = "if ($office) { return 200 open; } if ($role = admin) { return 200 open; }
        set $group $1; if ($group) { return 200 group; } return 200 shut;";
    let made_up = "set_real_ip_from 127.0.0.0/8; real_ip_header X-Me;
        limit_req zone=offices burst=100 nodelay; error_page 403 = /a; deny all;";
    let asked =
        "set $args role=admin; if ($role = x) { return 403; } set $args ''; rewrite ^ /a last;";
    let matched = "error_page 403 = /a; if ($uri ~ (m)) { return 403; }";
    let paths = |of: fn(&'static str, &'static str) -> Path| {
        vec![a("/a", guard), of("/made", made_up), of("/asked", asked), of("/m", matched)]
    };
    let native = serve(http, "", paths(b)).await;
    let me = "X-Me: 10.0.0.1\r\n";
    assert_eq!(told_with(&native, "/made", me).await, "200 shut");
    assert_eq!(told(&native, "/asked").await, "200 shut");
    assert_eq!(told(&native, "/m").await, "200 shut");
    // Within a namespace it is as in nginx.
    let native = serve(http, "", paths(a)).await;
    assert_eq!(told_with(&native, "/made", me).await, "200 open");
    assert_eq!(told(&native, "/asked").await, "200 open");
}

/// The request comes to another namespace's location as its client has sent it.
#[tokio::test]
async fn headers_that_a_namespace_has_set_end_with_its_locations() {
    let guard = "if ($http_host != a.test) { return 200 host; }
        if ($http_x_in) { return 200 set; } if ($http_x_out) { return 200 same; } return 200 gone;";
    let sets = "more_set_input_headers 'Host: b.test' 'X-In: 1'; more_clear_input_headers X-Out;
        error_page 403 = /a; deny all;";
    let native = serve("", "", vec![a("/a", guard), b("/b", sets)]).await;
    assert_eq!(told_with(&native, "/b", "X-Out: 1\r\n").await, "200 same");
    let native = serve("", "", vec![a("/a", guard), a("/b", sets)]).await;
    assert_eq!(told_with(&native, "/b", "X-Out: 1\r\n").await, "200 host");
}

#[tokio::test]
async fn rules_beside_a_locations_own_keep_out_and_let_nobody_in() {
    let rules = |text: &str| scope(Context::Location, text, "", "a").settings.access.rules;
    let shut = Access {
        allow: Some(["10.0.0.0/8".parse().expect("a network")].into_iter().collect()),
        ..Access::default()
    };
    for (http, besides, access, expected) in [
        ("deny all;", "allow all;", Access::default(), "403"),
        ("", "allow all;", shut, "403"),
        ("allow all;", "deny 127.0.0.1;", Access::default(), "403"),
        ("", "allow 127.0.0.1; deny all;", Access::default(), "404"),
    ] {
        let mut own = scope(Context::Location, "", http, "b");
        own.settings.access.besides = rules(besides);
        let mut configuration = Configuration::default();
        let policy = Policy { access, snippet: Some(Arc::new(own)), ..Policy::default() };
        let name = ServerName::new("a.test");
        let location = bed::location("/", Backend::NotFound, Arc::new(policy));
        let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
        configuration.servers.insert(name, Arc::new(server));
        let http = understand(Context::Http, http).expect("a snippet").http;
        configuration.global =
            Arc::new(Global { http_snippet: Some(http.into()), ..Global::default() });
        let native = start(&configuration).await;
        assert_eq!(told(&native, "/").await, expected, "{besides}");
    }
}

#[tokio::test]
async fn a_header_that_a_snippet_writes_makes_nobody_another_client() {
    let http = "set_real_ip_from 127.0.0.0/8; real_ip_header X-Me;";
    let led = "more_set_input_headers 'X-Me: 10.0.0.1'; error_page 403 = /a; deny all;";
    let native = serve(
        http,
        "location @in { return 200 in; }",
        vec![a("/a", "allow 10.0.0.0/8; deny all;"), b("/b", led)],
    )
    .await;
    assert_eq!(told_with(&native, "/a", "X-Me: 10.0.0.1\r\n").await, "200 in");
    assert_eq!(told(&native, "/a").await, "403");
    assert_eq!(told(&native, "/b").await, "403");
}

#[tokio::test]
async fn expressions_of_valid_referers_have_one_bound_for_a_request() {
    let text = "valid_referers ~a.test/x*z$; if ($invalid_referer) { return 200 invalid; }
        set $i $invalid_referer; set $i $i$invalid_referer$invalid_referer$invalid_referer$invalid_referer;
        set $i $i$invalid_referer$invalid_referer$invalid_referer$invalid_referer$invalid_referer$invalid_referer;
        set $i $i$invalid_referer$invalid_referer$invalid_referer$invalid_referer$invalid_referer$invalid_referer;
        set $i $i$invalid_referer$invalid_referer$invalid_referer$invalid_referer$invalid_referer$invalid_referer;
        if ($i) { return 200 spent; } return 200 valid;";
    let native = serve("", "set $other 1;", vec![a("/", text)]).await;
    let referer = |length: usize| format!("Referer: http://a.test/{}z\r\n", "x".repeat(length));
    assert_eq!(told_with(&native, "/", &referer(10)).await, "200 valid");
    assert_eq!(told_with(&native, "/", &referer(6000)).await, "200 spent");
}
