//! What nginx takes in a test and does not run with: whoever is new goes without it, and everybody else is served.

use crate::engine::bed::{apply, backend, configuration, folder, free_port, get, start, until};
use crate::engine::refused::authenticator;
use engine::Engine;
use model::policy::{Policy, RawGlobal, RawServer};
use model::{Changes, Configuration, Endpoints, Global, Kind, Origin, ServerName, Upstream};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn ok(name: &str) -> Option<(u16, String)> {
    Some((200, name.to_owned()))
}

/// The same with an `http-snippet` of the ConfigMap.
fn with_http(mut next: Configuration, text: &str) -> Configuration {
    let origin = Some(Origin::new(Kind::ConfigMap, "fairway", "settings"));
    let http = Some(text.to_owned().into());
    let raw = Some(RawGlobal { origin, http, ..RawGlobal::default() }.into());
    next.global = Arc::new(Global { raw, ..Global::clone(&next.global) });
    next
}

/// A port that somebody has, and an `http-snippet` that asks for it.
fn taken() -> (TcpListener, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, format!("server {{ listen 127.0.0.1:{port}; }}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_somebody_has_keeps_nobody_else_from_being_served_not_even_at_a_start() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let (_held, text) = taken();
    let engine = start(&folder, port);
    let hosts = [("a.test", one, None), ("b.test", one, Some("more_set_headers \"X-B: 1\";"))];
    let left_out = apply(&engine, &with_http(configuration(&hosts[..1]), &text)).await;
    assert_eq!(left_out, ["settings"]);
    assert_eq!(get(port, "a.test"), ok("one"));
    let before = engine.reloads();
    let left_out = apply(&engine, &with_http(configuration(&hosts), &text)).await;
    assert_eq!(left_out, ["settings"]);
    assert_eq!((get(port, "a.test"), get(port, "b.test")), (ok("one"), ok("one")));
    assert_eq!(engine.reloads(), before + 1, "what is known is not tried again");
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_gets_another_key_keeps_the_one_that_it_has_and_others_go_on() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let zone = |key: &str| format!("limit_req_zone {key} zone=z:1m rate=100r/s;");
    let hosts = [("a.test", one, Some("limit_req zone=z burst=9;")), ("b.test", one, None)];
    let first = with_http(configuration(&hosts[..1]), &zone("$binary_remote_addr"));
    assert!(apply(&engine, &first).await.is_empty());
    let next = with_http(configuration(&hosts), &zone("$http_x"));
    assert_eq!(apply(&engine, &next).await, ["settings"]);
    assert_eq!((get(port, "a.test"), get(port, "b.test")), (ok("one"), ok("one")));
    let conf = std::fs::read_to_string(engine.environment().conf()).expect("nginx.conf");
    assert!(conf.contains(&zone("$binary_remote_addr")), "the text before stays");
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_has_no_ports_of_its_own() {
    closes_its_host(["listen 127.0.0.1:1;", "set $x 1; \"listen\" 127.0.0.1:1;"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_has_no_names_of_its_own_but_those_of_its_hosts() {
    let stolen = "return 200 stolen;";
    closes_its_host([
        &format!("server_name b.test; {stolen}"),
        &format!("set $x 1;\n'server_name' c.test b.test; {stolen}"),
    ])
    .await;
}

/// Nobody else notices a host with one of these texts. It stands before the other one, whose name it could take.
async fn closes_its_host(texts: [&str; 2]) {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let mut next = configuration(&[("a.test", one, None), ("b.test", one, None)]);
    for text in texts {
        let server = next.servers.get_mut(&ServerName::new("a.test")).expect("it was put there");
        let origin = server.locations[0].origin.clone().expect("of an Ingress");
        let raw = RawServer { origin, text: text.to_owned().into() };
        Arc::make_mut(server).raw = Some(Arc::new(raw));
        assert_eq!(apply(&engine, &next).await, ["a.test"], "{text}");
        assert_eq!(get(port, "a.test").map(|(status, _)| status), Some(503), "{text}");
        assert_eq!(get(port, "b.test"), ok("one"), "{text}");
    }
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_ends_does_not_wait_for_a_reload_that_does_not_come() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let (_held, text) = taken();
    let engine = start(&folder, port);
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    let (next, before) =
        (with_http(configuration(&[("a.test", one, None)]), &text), engine.reloads());
    let applying = engine.clone();
    let applying =
        tokio::spawn(async move { applying.apply(&next, &Changes::default()).await.is_err() });
    until("nginx was asked to reload", || engine.reloads() > before).await;
    let begun = Instant::now();
    engine.drain(Duration::from_secs(60)).await;
    // A machine that is busy takes seconds for it; who waited for the change took a minute.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(applying.await.expect("it does not panic"), "it was meant to end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_for_all_that_may_guard_and_was_never_known_closes_everything_until_it_is_mended() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let next =
        |text| with_http(configuration(&[("a.test", one, None), ("b.test", one, None)]), text);
    let served = || ["a.test", "b.test"].map(|host| get(port, host).map(|(status, _)| status));
    for text in [
        "deny 10.0.0.1; no_such_word 1;",
        "server_rewrite_by_lua_block { } no_such_word 7;",
        "server { no_such_word 2; return 403; }",
    ] {
        assert_eq!(apply(&engine, &next(text)).await, ["settings"], "{text}");
        assert_eq!(served(), [Some(503); 2], "{text}");
    }
    // What needs no reload changes nothing about that.
    let mut pushed = next("server { no_such_word 2; return 403; }");
    for upstream in pushed.upstreams.clone().values() {
        let endpoints = Arc::new(Endpoints { ready: vec![backend("two")], draining: Vec::new() });
        let upstream = Upstream { endpoints, ..Upstream::clone(upstream) };
        pushed.upstreams.insert(upstream.id.clone(), Arc::new(upstream));
    }
    apply(&engine, &pushed).await;
    assert_eq!(served(), [Some(503); 2]);
    // Nor does a text for all servers answer.
    let mut with_server = next("rewrite_by_lua_block { } no_such_word 6;");
    let raw = Arc::make_mut(&mut with_server.global).raw.as_mut().expect("it has a text");
    raw.server = Some("return 200;".to_owned().into());
    assert_eq!(apply(&engine, &with_server).await, ["settings"]);
    assert_eq!(served(), [Some(503); 2], "a text for all servers");
    // Nor is there anybody whom an authenticator should have been asked about with a text that is missing.
    let mut with_auth = next("");
    let raw = Arc::make_mut(&mut with_auth.global).raw.as_mut().expect("it has a text");
    raw.http = None;
    raw.auth = Some("if ($http_x_token != 1) { return 401; } no_such_word 8;".to_owned().into());
    let server = with_auth.servers.get_mut(&ServerName::new("a.test")).expect("a host");
    let location = Arc::make_mut(&mut Arc::make_mut(server).locations[0]);
    let asked = Some(authenticator("demo-a.test-80").into());
    location.policy = Arc::new(Policy { auth_external: asked, ..Policy::default() });
    assert_eq!(apply(&engine, &with_auth).await, ["settings"]);
    assert_eq!(served(), [Some(503); 2], "a text for authenticators");
    // What guards nothing keeps nobody out.
    assert_eq!(apply(&engine, &next("no_such_word 3;")).await, ["settings"]);
    assert_eq!(served(), [Some(200); 2]);
    // From now on it is known what was there before: nothing, and then this.
    for text in
        ["deny 10.0.0.1; no_such_word 4;", "deny 127.0.0.1;", "deny 10.0.0.1; no_such_word 5;"]
    {
        apply(&engine, &next(text)).await;
        let status = if text.ends_with("4;") { 200 } else { 403 };
        assert_eq!(served(), [Some(status); 2], "{text}");
    }
    engine.drain(Duration::from_secs(5)).await;
}
