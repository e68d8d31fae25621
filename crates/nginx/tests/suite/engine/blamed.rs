//! Who is to blame where a text of the ConfigMap and something else do not go together: whoever is new, never the text
//! that guards everybody.

use crate::engine::bed::{
    PATIENCE, apply, backend, configuration, folder, free_port, get, get_path, start,
};
use engine::Engine;
use model::policy::{Ciphers, Policy, RawGlobal, RawServer};
use model::{Configuration, Global, Kind, Location, Origin, PathKind, Server, ServerName};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use tokio::time::timeout;

const ALL: [&str; 3] = ["a.test", "b.test", "c.test"];
/// A guard of the operator, which takes itself to be the only one to say so.
const GUARD: &str = "deny 192.0.2.1; limit_rate_after 1m; more_set_headers \"X-Guard: on\";";

/// The same with texts of the ConfigMap.
fn with(mut next: Configuration, change: impl FnOnce(&mut RawGlobal)) -> Configuration {
    let mut raw = next.global.raw.as_deref().cloned().unwrap_or_default();
    raw.origin = Some(Origin::new(Kind::ConfigMap, "fairway", "settings"));
    change(&mut raw);
    next.global = Arc::new(Global { raw: Some(raw.into()), ..Global::clone(&next.global) });
    next
}

fn edit(mut next: Configuration, host: &str, change: impl FnOnce(&mut Server)) -> Configuration {
    let server = next.servers.get_mut(&ServerName::new(host)).expect("a host");
    change(Arc::make_mut(server));
    next
}

/// The same where a path says what the text for all locations says, too.
fn slower(next: Configuration, host: &str) -> Configuration {
    edit(next, host, |server| {
        let location = Arc::make_mut(server.locations.first_mut().expect("a path"));
        let mut policy = Policy::clone(&location.policy);
        policy.limit_rate.after = 2 << 20;
        location.policy = Arc::new(policy);
    })
}

/// Status for a host, and whether it is guarded.
fn guarded(port: u16, host: &str) -> (u16, bool) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("somebody listens");
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), answer.contains("X-Guard: on"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_says_what_the_text_for_all_paths_says_is_closed_and_the_text_stays() {
    let one = backend("one");
    let all = configuration(&ALL.map(|host| (host, one, None)));
    let all = with(all, |raw| raw.location = Some(GUARD.to_owned().into()));
    // Two at once, one of which nginx names first.
    let next = slower(slower(all.clone(), "b.test"), "c.test");
    for is_change in [true, false] {
        let (folder, port) = (folder(), free_port());
        let engine = start(&folder, port);
        if is_change {
            assert!(apply(&engine, &all).await.is_empty());
            assert_eq!(guarded(port, "c.test"), (200, true));
        }
        assert_eq!(apply(&engine, &next).await, ["b.test", "c.test"], "a change: {is_change}");
        assert_eq!(guarded(port, "a.test"), (200, true), "a change: {is_change}");
        assert_eq!(["b.test", "c.test"].map(|host| guarded(port, host).0), [503; 2]);
        engine.drain(PATIENCE).await;
    }
    // A text that is wrong by itself closes everything at a start, and is the only one to blame.
    let (folder, port) = (folder(), free_port());
    let engine = start(&folder, port);
    let wrong = with(next.clone(), |raw| {
        raw.location = Some("deny 192.0.2.1; no_such 1;".to_owned().into())
    });
    assert_eq!(apply(&engine, &wrong).await, ["settings"]);
    assert_eq!(ALL.map(|host| guarded(port, host).0), [503; 3]);
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_gets_in_the_way_of_paths_that_run_is_the_one_that_is_new() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let all = slower(configuration(&ALL.map(|host| (host, one, None))), "c.test");
    let before = "deny 192.0.2.1; more_set_headers \"X-Guard: on\";";
    let all = with(all, |raw| raw.location = Some(before.to_owned().into()));
    assert!(apply(&engine, &all).await.is_empty());
    let next = with(all, |raw| raw.location = Some(GUARD.to_owned().into()));
    assert_eq!(apply(&engine, &next).await, ["settings"]);
    assert_eq!(ALL.map(|host| guarded(port, host)), [(200, true); 3], "the one before stays");
    // Who comes with what neither goes with makes no difference to that, nor to anybody else.
    let more = slower(next.clone(), "b.test");
    let told = apply(&engine, &more).await;
    assert!(told.contains(&"settings".to_owned()), "{told:?}");
    assert_eq!(guarded(port, "a.test"), (200, true));
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_says_what_the_text_for_all_hosts_says_loses_it_and_the_text_stays() {
    let one = backend("one");
    let text = "ssl_prefer_server_ciphers on; deny 192.0.2.1; more_set_headers \"X-Guard: on\";";
    let all = configuration(&ALL.map(|host| (host, one, None)));
    let all = with(all, |raw| raw.server = Some(text.to_owned().into()));
    let next = edit(all.clone(), "b.test", |server| {
        server.ciphers = Some(Ciphers { suites: Vec::new(), prefer_server: Some(false) });
    });
    for is_change in [true, false] {
        let (folder, port) = (folder(), free_port());
        let engine = start(&folder, port);
        if is_change {
            assert!(apply(&engine, &all).await.is_empty());
        }
        assert_eq!(apply(&engine, &next).await, ["b.test"], "a change: {is_change}");
        assert_eq!(ALL.map(|host| guarded(port, host)), [(200, true); 3], "a change: {is_change}");
        engine.drain(PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_nobody_declares_is_whose_it_is_and_not_who_remarks_on_it() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let remark =
        "# $tenant_id is of the gateway\nmap $uri $of_uri { default 1; ~^/v1$tenant_id 2; }";
    let hosts = [("a.test", one, None), ("b.test", one, Some("set $b $tenant_id;"))];
    let text = |raw: &mut RawGlobal| raw.http = Some(remark.to_owned().into());
    assert!(apply(&engine, &with(configuration(&hosts[..1]), text)).await.is_empty());
    assert_eq!(apply(&engine, &with(configuration(&hosts), text)).await, ["b.test"]);
    let status = |host| get(port, host).map(|(status, _)| status);
    assert_eq!((status("a.test"), status("b.test")), (Some(200), Some(503)));
    let conf = std::fs::read_to_string(engine.environment().conf()).expect("nginx.conf");
    assert!(conf.contains(remark), "the text stays");
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_relied_on_one_that_goes_stays_in_force_with_it() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let all = configuration(&ALL.map(|host| (host, one, None)));
    let guard = "limit_req zone=z burst=99 nodelay; more_set_headers \"X-Guard: on\";";
    let all = with(all, |raw| {
        raw.http = Some("limit_req_zone $http_x zone=z:1m rate=9r/s;".to_owned().into());
        raw.location = Some(guard.to_owned().into());
    });
    assert!(apply(&engine, &all).await.is_empty());
    let next = with(all, |raw| raw.http = None);
    assert_eq!(apply(&engine, &next).await, ["settings"]);
    assert_eq!(ALL.map(|host| guarded(port, host)), [(200, true); 3]);
    engine.drain(PATIENCE).await;
}

/// A host of a namespace, with what it says in nginx's words.
fn put(all: &mut Configuration, host: &str, namespace: &str, snippet: Option<&str>) {
    let one =
        *all.upstreams.values().next().expect("it has one").endpoints.ready.first().expect("one");
    let other = configuration(&[(host, one, snippet)]);
    for (name, mut server) in other.servers {
        let of_namespace = Arc::make_mut(&mut server);
        let location = Arc::make_mut(&mut of_namespace.locations[0]);
        location.origin = Some(Origin::new(Kind::Ingress, namespace, host).into());
        all.servers.insert(name, server);
    }
    all.upstreams.extend(other.upstreams);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_are_wrong_keep_nobody_of_other_namespaces_out_however_often_they_change() {
    let one = backend("one");
    for is_start in [true, false] {
        let (folder, port) = (folder(), free_port());
        let engine = start(&folder, port);
        let mut next = configuration(&[("first.test", one, None)]);
        if !is_start {
            assert!(apply(&engine, &next).await.is_empty());
        }
        let honest: Vec<String> = (0..20).map(|number| format!("c{number:02}.test")).collect();
        for host in &honest {
            put(&mut next, host, &format!("of-{host}"), None);
        }
        for change in 0..2 {
            for number in 0..200 {
                let text = format!("no_such_directive {change};");
                put(&mut next, &format!("b{number:03}.test"), "b", Some(&text));
            }
            let left_out = apply(&engine, &next).await;
            let is_of_b = |host: &String| host.starts_with('b');
            assert!(left_out.iter().all(is_of_b), "{is_start} {change}: {left_out:?}");
            assert_eq!(left_out.len(), 200);
            for host in honest.iter().map(String::as_str).chain(["first.test"]) {
                assert_eq!(guarded(port, host).0, 200, "{host}, at a start: {is_start}, {change}");
            }
        }
        engine.drain(PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_there_was_no_time_for_is_served_after_some_more_rounds_though_nothing_changes() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let mut next = configuration(&[("first.test", one, None)]);
    // One that is wrong in each of many namespaces, and others between them.
    for number in 0..120 {
        let host = format!("h{number:03}.test");
        let text = (number % 3 < 2).then_some("no_such_directive 1;");
        put(&mut next, &host, &format!("of-{host}"), text);
    }
    let mut rounds = 0;
    let mut left_out = apply(&engine, &next).await;
    assert!(left_out.len() > 80, "{} are left out", left_out.len());
    while left_out.len() > 80 {
        rounds += 1;
        assert!(rounds < 6, "{left_out:?}");
        // Others change all the time, and for them alone nobody is tried: that would hold them up.
        let (reloads, two) = (engine.reloads(), backend("two"));
        next.upstreams.extend(configuration(&[("first.test", two, None)]).upstreams);
        if rounds > 1 {
            assert_eq!(apply(&engine, &next).await, left_out);
            assert_eq!(engine.reloads(), reloads, "the pause is not over");
        }
        timeout(PATIENCE, engine.due()).await.expect("he is tried again");
        next.upstreams.extend(configuration(&[("first.test", one, None)]).upstreams);
        left_out = apply(&engine, &next).await;
    }
    assert_eq!(left_out.len(), 80);
    for number in 0..120 {
        let status = if number % 3 < 2 { 503 } else { 200 };
        assert_eq!(guarded(port, &format!("h{number:03}.test")).0, status, "{number}");
    }
    engine.drain(PATIENCE).await;
}

/// The same with more paths of a host, which are of somebody of another namespace.
fn with_paths(next: Configuration, host: &str, paths: &[(&str, PathKind)]) -> Configuration {
    edit(next, host, |server| {
        let origin = Some(Arc::new(Origin::new(Kind::Ingress, "other", "paths")));
        for (path, kind) in paths {
            let (path, origin) = ((*path).to_owned(), origin.clone());
            let location = Location::clone(&server.locations[0]);
            server.locations.push(Arc::new(Location { path, kind: *kind, origin, ..location }));
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_a_text_has_is_the_text_s_and_nobody_else_is_closed() {
    let one = backend("one");
    let text = "location = /robots.txt { return 200 robots; } location ^~ /priv/ { deny all; }\n\
        location /.well-known/ { return 200 known; } more_set_headers \"X-Guard: on\";";
    let all = configuration(&ALL.map(|host| (host, one, None)));
    let all = with(all, |raw| raw.server = Some(text.to_owned().into()));
    let paths = [
        ("/robots.txt", PathKind::Exact),
        ("/priv", PathKind::Prefix),
        ("/.well-known/", PathKind::Prefix),
        ("/more", PathKind::Prefix),
    ];
    let next = with_paths(all.clone(), "b.test", &paths);
    for is_change in [true, false] {
        let (folder, port) = (folder(), free_port());
        let engine = start(&folder, port);
        if is_change {
            assert!(apply(&engine, &all).await.is_empty());
        }
        assert_eq!(apply(&engine, &next).await, ["paths"], "a change: {is_change}");
        assert_eq!(ALL.map(|host| guarded(port, host)), [(200, true); 3], "a change: {is_change}");
        for host in ["a.test", "b.test"] {
            let status = |path| get_path(port, host, path).map(|(status, _)| status);
            let said = |path| get_path(port, host, path).map(|(_, said)| said);
            assert_eq!(said("/robots.txt").as_deref(), Some("robots"), "{host}");
            assert_eq!(said("/.well-known/x").as_deref(), Some("known"), "{host}");
            assert_eq!(status("/priv/x"), Some(403), "{host}");
            // Of that the text has only a part.
            assert_eq!((status("/priv"), status("/more")), (Some(200), Some(200)), "{host}");
        }
        engine.drain(PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_location_that_hosts_texts_have_keeps_the_text_of_the_config_map_out_of_no_server() {
    let one = backend("one");
    let mut all = configuration(&ALL.map(|host| (host, one, None)));
    let mut owners = Vec::new();
    for host in ["b.test", "c.test"] {
        all = edit(all, host, |server| {
            let origin = server.locations[0].origin.clone().expect("of an Ingress");
            // Nothing of it guards the host.
            let text = "location = /metrics { more_set_headers \"X: own\"; }\n\
                rewrite ^/admin https://login.test/ redirect;";
            let text = text.to_owned().into();
            owners.push(origin.name.to_string());
            server.raw = Some(Arc::new(RawServer { origin, text }));
        });
    }
    let all = with_paths(all, "b.test", &[("/c", PathKind::Prefix)]);
    // Of the namespace whose text leads away.
    let all = edit(all, "b.test", |server| {
        let origin = Arc::new(Origin::new(Kind::Ingress, "demo", "beside"));
        let location = Location::clone(&server.locations[0]);
        let (path, origin) = ("/admin/x".to_owned(), Some(origin));
        server.locations.push(Arc::new(Location { path, origin, ..location }));
    });
    let text = "location = /metrics { deny all; } location ~ /\\.git { deny all; }";
    let next = with(all.clone(), |raw| raw.server = Some(text.to_owned().into()));
    for is_change in [true, false] {
        let (folder, port) = (folder(), free_port());
        let engine = start(&folder, port);
        if is_change {
            assert!(apply(&engine, &all).await.is_empty());
        }
        assert_eq!(apply(&engine, &next).await, owners, "a change: {is_change}");
        let status = |host, path| get_path(port, host, path).map(|(status, _)| status);
        for host in ALL {
            let refused = ["/metrics", "/.git/x"].map(|path| status(host, path));
            assert_eq!(refused, [Some(403); 2], "{host}, a change: {is_change}");
        }
        let served = [("a.test", "/"), ("b.test", "/"), ("b.test", "/c"), ("c.test", "/")];
        let served = served.map(|(host, path)| status(host, path));
        assert_eq!(served, [Some(200), Some(503), Some(200), Some(503)], "a change: {is_change}");
        assert_eq!(status("b.test", "/admin/x"), Some(503), "it was led away");
        // Without it the hosts have theirs again.
        assert!(apply(&engine, &all).await.is_empty());
        assert_eq!((status("c.test", "/"), status("c.test", "/metrics")), (Some(200), Some(404)));
        assert_eq!(status("b.test", "/admin/x"), Some(302));
        engine.drain(PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_another_namespace_that_the_host_s_text_has_closes_nothing_of_the_host() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let all = edit(configuration(&[("a.test", one, None)]), "a.test", |server| {
        let origin = server.locations[0].origin.clone().expect("of an Ingress");
        let text = "location = /health { return 200 owner; }".to_owned().into();
        server.raw = Some(Arc::new(RawServer { origin, text }));
    });
    assert!(apply(&engine, &all).await.is_empty());
    let next = with_paths(all, "a.test", &[("/health", PathKind::Exact)]);
    assert_eq!(apply(&engine, &next).await, ["paths"]);
    assert_eq!(get_path(port, "a.test", "/health"), Some((200, "owner".to_owned())));
    assert_eq!(get(port, "a.test").map(|(status, _)| status), Some(200));
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_looks_like_a_place_in_nginx_conf_closes_nobody_else() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let mut next = configuration(&[("a.test", one, None), ("z.test", one, None)]);
    assert!(apply(&engine, &next).await.is_empty());
    let environment = engine.environment();
    let conf = std::fs::read_to_string(environment.conf()).expect("nginx.conf");
    let mut lines = conf.lines();
    let line =
        lines.position(|line| line.contains("Ingress demo/a.test")).expect("it is there") + 2;
    let path =
        format!("/x in {}:{line}\n(?<=a+)b", environment.directory.join("next.conf").display());
    for number in 0..12 {
        let host = format!("b{number}.test");
        put(&mut next, &host, "b", None);
        next = edit(next, &host, |server| {
            server.regex = true;
            Arc::make_mut(&mut server.locations[0]).path.clone_from(&path);
        });
    }
    let left_out = apply(&engine, &next).await;
    assert!(left_out.iter().all(|host| host.starts_with('b')), "{left_out:?}");
    assert_eq!(["a.test", "z.test"].map(|host| guarded(port, host).0), [200; 2]);
    engine.drain(PATIENCE).await;
}
