//! What the controller writes at nginx's levels beside snippets, over sockets: one list at the level of http, one in
//! place of another nearer to the location (nginx.tmpl).

use crate::bed::{self, answering, apply, put_upstream, start};
use crate::snippets::{Host, brief, free_port, get, get_at, told, until_open, upstream, whitelist};
use model::policy::{Errors, Limits, Policy, RequestLimit};
use model::{Configuration, DEFAULT_BACKEND, Global, Networks};
use proxy::Native;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A host, and what the ConfigMap says besides.
async fn beside(host: Host, change: impl Fn(&mut Global)) -> Configuration {
    let mut configuration = host.configuration(upstream("main").await);
    change(Arc::make_mut(&mut configuration.global));
    configuration
}

async fn serve(host: Host, change: impl Fn(&mut Global)) -> Arc<Native> {
    start(&beside(host, change).await).await
}

fn networks(net: &str) -> Networks {
    [net.parse().expect("a network")].into_iter().collect()
}

async fn statuses(native: &Native, target: &str, times: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..times {
        all.push(told(native, target).await.get(..3).unwrap_or_default().to_owned());
    }
    all
}

/// A limit by annotation, of so many requests a second.
fn limited(rate: u64) -> Policy {
    let per_second = Some(RequestLimit { rate: rate * 1000, burst: rate * 5000 });
    Policy { limits: Limits { per_second, ..Limits::default() }, ..Policy::default() }
}

fn pages(of: &[u16], of_all: bool) -> Policy {
    let statuses: BTreeSet<u16> = of.iter().copied().collect();
    let errors = Some(Errors { statuses, intercept: true, backend: None, of_all });
    Policy { errors, ..Policy::default() }
}

#[tokio::test]
async fn an_http_snippet_adds_to_whom_the_config_map_trusts_about_clients() {
    let cdn = "set_real_ip_from 192.0.2.0/24;";
    let host = |server, http| {
        Host::default().server(server).http(http).path("/", "", whitelist("127.0.0.0/8"))
    };
    let trusts = |global: &mut Global| {
        global.real_ip.forwarded_headers = true;
        global.real_ip.trusted = networks("127.0.0.0/8");
    };
    let answered = async |native: &Native, by: &str| {
        let fields = format!("X-Forwarded-For: {by}\r\n");
        brief(&get(native, "/", &fields).await)[..3].to_owned()
    };
    let native = serve(host("", cdn), trusts).await;
    assert_eq!(answered(&native, "203.0.113.9").await, "403");
    assert_eq!(
        answered(&native, "203.0.113.9, 192.0.2.7").await,
        "403",
        "the CDN's are passed over"
    );
    assert_eq!(answered(&native, "127.0.0.9").await, "200");
    // A list of the server stands in place of both.
    let native = serve(host(cdn, "map $uri $x { default 1; }"), trusts).await;
    assert_eq!(answered(&native, "203.0.113.9").await, "200", "the peer is not trusted there");
    // The ConfigMap's list alone may change.
    let before = beside(host("", cdn), |global| trusts(global)).await;
    let after = beside(host("", cdn), |global| {
        trusts(global);
        global.real_ip.trusted = networks("10.0.0.0/8");
    });
    let native = start(&before).await;
    apply(&native, &before, &after.await).await;
    assert_eq!(answered(&native, "203.0.113.9").await, "200");
}

#[tokio::test]
async fn an_http_snippet_adds_to_the_headers_that_the_config_map_hides() {
    let (address, _seen) = answering(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Map: 1\r\nX-Http: 1\r\nX-Own: 1\r\n\r\n",
    )
    .await;
    let host = || {
        Host::default().http("proxy_hide_header X-Http;").path("/", "", Policy::default()).path(
            "/own",
            "proxy_hide_header X-Own;",
            Policy::default(),
        )
    };
    let mut configuration = host().configuration(address);
    let mut next = host().configuration(address);
    let hides = |configuration: &mut Configuration, name: &str| {
        Arc::make_mut(&mut configuration.global).hide_headers = [name.to_owned()].into();
    };
    hides(&mut configuration, "x-map");
    hides(&mut next, "x-own");
    let native = start(&configuration).await;
    let seen = async |native: &Native, target: &str| {
        let answer = get(native, target, "").await;
        ["X-Map", "X-Http", "X-Own"].map(|name| answer.contains(&format!("{name}: 1")))
    };
    assert_eq!(seen(&native, "/").await, [false, false, true]);
    assert_eq!(seen(&native, "/own").await, [true, true, false], "its list is in place of theirs");
    apply(&native, &configuration, &next).await;
    assert_eq!(seen(&native, "/").await, [true, false, false], "alone it changes, too");
}

#[tokio::test]
async fn who_was_counted_by_one_kind_of_limit_is_counted_by_the_other_where_it_is_led() {
    let http = "limit_conn_zone $host zone=c:1m; limit_req_zone $host zone=r:1m rate=1r/m;";
    let led = "error_page 403 = @in; deny all;";
    let server = "location @in { limit_req zone=r; limit_req_status 429; }";
    let host = Host::default().server(server).http(http);
    let native =
        host.path("/", "limit_conn c 50; error_page 403 = @in; deny all;", Policy::default());
    let native = native.serve().await;
    assert_eq!(statuses(&native, "/", 2).await, ["404", "429"]);

    let server = "location @in { limit_conn c 50; add_header X-Said $limit_conn_status always; }";
    let of_requests = "limit_req zone=r burst=9 nodelay; error_page 403 = @in; deny all;";
    let native = Host::default().server(server).http(http);
    let native = native.path("/", of_requests, Policy::default()).serve().await;
    let answer = get(&native, "/", "").await;
    assert!(answer.contains("\r\nX-Said: PASSED\r\n"), "{answer}");

    // Annotations alike.
    let nobody = Limits { connections: Some(0), connection_status: 429, ..Limits::default() };
    let native = Host::default()
        .server("location @in { return 200 in; }")
        .path("/", "error_page 403 = /b; deny all;", limited(100))
        .path("/b", led, Policy { limits: nobody, ..Policy::default() });
    let native = native.serve().await;
    assert_eq!(statuses(&native, "/", 1).await, ["429"]);
}

#[tokio::test]
async fn who_is_refused_by_a_limit_is_not_judged_again_on_the_page_that_says_so() {
    let (slow, nobody) = (Some(RequestLimit { rate: 1, burst: 0 }), Some(0));
    for limits in [
        Limits { per_second: slow, ..Limits::default() },
        Limits { connections: nobody, ..Limits::default() },
    ] {
        let policy = Policy { limits, ..Policy::default() };
        let native = Host::default().path("/", "error_page 503 =503 /busy;", policy);
        let native = native.serve().await;
        told(&native, "/").await;
        assert_eq!(told(&native, "/").await, "503 main: GET /busy");
    }
}

#[tokio::test]
async fn limits_of_annotations_stand_in_place_of_those_around_and_those_within_in_place_of_them() {
    let zones =
        "limit_req_zone $host zone=one:1m rate=1r/m; limit_req_zone $host zone=two:1m rate=1r/m;
        limit_req_zone $host zone=many:1m rate=9r/s;";
    let within = "location /few/api { limit_req zone=many burst=100 nodelay;
        set $proxy_upstream_name demo-echo-80; proxy_pass http://upstream_balancer; }
        location /few/same { set $proxy_upstream_name demo-echo-80; proxy_pass http://upstream_balancer; }";
    let few = Policy {
        limits: Limits {
            // Not what the other paths of the Ingress count with.
            per_minute: Some(RequestLimit { rate: 17, burst: 0 }),
            ..Limits::default()
        },
        ..Policy::default()
    };
    let host = |server, http: String| {
        Host::default()
            .server(server)
            .path("/", "", Policy::default())
            .path("/annotated", "", limited(100))
            .path("/both", "limit_req zone=two;", limited(100))
            .path("/few", within, few.clone())
            .http(http.leak())
    };
    let all = "limit_req zone=one; limit_req_status 429;";
    for host in [host("", format!("{zones} {all}")), host(all, zones.to_owned())] {
        let native = host.serve().await;
        assert_eq!(statuses(&native, "/", 2).await, ["200", "429"]);
        assert_eq!(statuses(&native, "/annotated", 3).await, ["200"; 3]);
        assert_eq!(statuses(&native, "/both", 2).await, ["200", "429"], "one list");
        assert_eq!(statuses(&native, "/few/x", 2).await, ["200", "429"], "the status is inherited");
        assert_eq!(statuses(&native, "/few/api", 3).await, ["200"; 3]);
        assert_eq!(statuses(&native, "/few/same", 1).await, ["429"]);
    }
}

#[tokio::test]
async fn error_pages_of_a_server_or_location_stand_in_place_of_those_of_the_config_map() {
    let server = "location @sorry { return 503 sorry; } location = /page { return 200 page; }";
    let own = "error_page 503 = @sorry;";
    let of_server = format!("{server} {own}").leak();
    let status = "if ($arg_s) { return 503; }";
    let of_location = "error_page 503 = @sorry; if ($arg_s) { return 503; }";
    let answered = async |native: &Native, target: &str, status: &str| {
        brief(&get(native, target, &format!("X-Answer: {status}\r\n")).await)
    };
    for (server, location) in [(&*of_server, status), (server, of_location)] {
        let native = Host::default().server(server).path("/", location, pages(&[404, 503], true));
        let native = native.serve().await;
        assert_eq!(told(&native, "/?s=1").await, "503 sorry");
        assert_eq!(answered(&native, "/", "404 X").await, "404 main: GET /", "it is not theirs");
        assert_eq!(answered(&native, "/", "503 X").await, "503 sorry", "all are intercepted");
    }
    // An http-snippet adds to them.
    let native = Host::default().server(server).http("error_page 403 404 = /page;").path(
        "/",
        "if ($arg_s) { return 403; }",
        pages(&[404], true),
    );
    let native = native.serve().await;
    assert_eq!(told(&native, "/?s=1").await, "200 page");
    assert_eq!(answered(&native, "/", "404 X").await, "404 page", "the first of both counts");
    // Those of an annotation stand behind those of its location, and in place of all around.
    let native = Host::default().server(of_server).path("/", "", pages(&[404], false)).path(
        "/own",
        "error_page 404 = @sorry;",
        pages(&[404, 500], false),
    );
    let native = native.serve().await;
    assert_eq!(answered(&native, "/", "404 X").await, "404 page");
    assert_eq!(answered(&native, "/", "503 X").await, "503 main: GET /");
    assert_eq!(answered(&native, "/own", "404 X").await, "503 sorry");
    assert_eq!(answered(&native, "/own", "500 X").await, "404 page");
}

#[tokio::test]
async fn what_a_snippet_says_is_replaced_by_no_error_page_of_the_controller() {
    let native = Host::default().path("/", "return 503 \"own\";", pages(&[503], true));
    let native = native.serve().await;
    assert_eq!(told(&native, "/").await, "503 own");
}

#[tokio::test]
async fn a_variable_brings_a_path_a_name_or_an_address_to_an_error_page() {
    let http = "map $arg_p $page { default https://login.test/; path /page?a=b; name @named; }";
    let server = "location @named { return 503 named; } location = /page { return 200 $args; }";
    let native = Host::default().server(server).http(http).path(
        "/",
        "error_page 403 = $page; deny all;",
        Policy::default(),
    );
    let native = native.serve().await;
    assert_eq!(told(&native, "/?p=path").await, "200 a=b");
    assert_eq!(told(&native, "/?p=name").await, "503 named");
    assert_eq!(told(&native, "/").await, "302 https://login.test/ page");
}

#[tokio::test]
async fn statuses_of_nginx_alone_are_bad_requests_on_an_error_page() {
    let server = "location = /page { return 200 page; } location = /same { error_page 495 /page; return 495; }
        location = /said { error_page 496 =403 /page; return 496; }";
    let native = Host::of(server, "").serve().await;
    assert_eq!(told(&native, "/same").await, "400 page");
    assert_eq!(told(&native, "/said").await, "403 page");
}

#[tokio::test]
async fn a_host_is_found_by_the_longest_wildcard_and_an_expression_keeps_its_groups() {
    let port = free_port().await;
    let http = format!(
        "server {{ listen {port}; server_name *.a.test www.*; return 200 first; }}
         server {{ listen {port}; server_name *.b.a.test www.b.*; return 200 second; }}
         server {{ listen {port}; server_name named.old.test ~^(?<tenant>[^.]+)\\.old\\.test$;
            if ($tenant = blocked) {{ return 403; }} return 200 \"$tenant $1\"; }}"
    );
    let native = Host::of("", "").http(http.leak()).serve().await;
    until_open(port, true).await;
    let at = async |host| brief(&get_at(port, host, "/").await.expect("open"));
    assert_eq!(at("x.a.test").await, "200 first");
    assert_eq!(at("x.b.a.test").await, "200 second");
    assert_eq!(at("www.b.org").await, "200 second");
    assert_eq!(at("a.old.test").await, "200 a a");
    assert_eq!(at("blocked.old.test").await, "403 page");
    assert_eq!(at("named.old.test").await, "200", "its name is no expression");
    drop(native);
}

#[tokio::test]
async fn locations_of_a_server_snippet_have_what_the_config_map_says_at_http_level() {
    let server = "location = /login { limit_req zone=r; } location = /gone { return 404; }
        location = /own { error_page 403 /x; return 404; } location = /said { return 404 said; }";
    let says = |global: &mut Global| {
        global.nowhere.request_status = 429;
        global.nowhere.errors = pages(&[404], true).errors;
    };
    let host = || Host::of(server, "").http("limit_req_zone $host zone=r:1m rate=1r/m;");
    let mut configuration = beside(host(), says).await;
    put_upstream(&mut configuration, DEFAULT_BACKEND, vec![upstream("default").await]);
    let native = start(&configuration).await;
    assert_eq!(told(&native, "/gone").await, "200 default: GET /");
    assert_eq!(told(&native, "/own").await, "404 page");
    assert_eq!(told(&native, "/said").await, "404 said");
    assert_eq!(statuses(&native, "/login", 2).await, ["200", "429"]);
    // It may change alone.
    let plain = host().configuration(upstream("main").await);
    apply(&native, &configuration, &plain).await;
    assert_eq!(told(&native, "/gone").await, "404 page");
}

#[tokio::test]
async fn a_directive_about_fields_of_requests_is_judged_once() {
    let text = "more_clear_input_headers -t x/y 'Content-Type' 'X-User';
        more_set_input_headers -t x/y 'X-Late: 1';";
    let native = Host::of("", text).serve().await;
    let answer = get(&native, "/", "Content-Type: x/y\r\nX-User: root\r\n").await;
    let is_there = |name: &str| answer.contains(&format!("\r\n{name}: "));
    assert!(!is_there("Content-Type") && !is_there("X-User") && !is_there("X-Late"), "{answer}");
    let answer = bed::talk(
        &native,
        b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX-User: me\r\n\r\n",
    );
    assert!(answer.await.contains("\r\nX-User: me\r\n"));
}
