//! What an authenticator said counts for who asked it, and for as long as nginx runs.

use crate::engine::bed::{
    PATIENCE, apply, backend, configuration, folder, free_port, pid, start, until,
};
use crate::engine::refused::{answering, authenticator};
use engine::Engine;
use model::policy::{AuthCache, AuthExternal, CacheDuration, Policy};
use model::{
    Configuration, Endpoints, Kind, Origin, Part, ServerName, Template, Upstream, UpstreamId,
    Variable,
};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// An authenticator that says the same to all.
fn saying(status: &str) -> SocketAddr {
    answering(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"))
}

/// One host, whose authenticator is asked once for each `X-Key`.
fn guarded(namespace: &str, one: SocketAddr, asked: SocketAddr) -> Configuration {
    let key = vec![Part::Variable(Variable::RequestHeader("x_key".to_owned()))];
    let id = UpstreamId::new(format!("to-{asked}"));
    let policy = AuthExternal {
        cache: Some(AuthCache {
            key: Template::from_parts(key),
            durations: vec![CacheDuration { statuses: vec![200], time: Duration::from_secs(9999) }],
        }),
        ..authenticator(id.as_str())
    };
    let mut next = configuration(&[("a.test", one, None)]);
    let server = next.servers.get_mut(&ServerName::new("a.test")).expect("a host");
    let location = Arc::make_mut(&mut Arc::make_mut(server).locations[0]);
    location.origin = Some(Origin::new(Kind::Ingress, namespace, "a").into());
    location.policy = Arc::new(Policy { auth_external: Some(policy.into()), ..Policy::default() });
    let endpoints = Arc::new(Endpoints { ready: vec![asked], draining: Vec::new() });
    let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
    next.upstreams.insert(id, Arc::new(upstream));
    next
}

fn status(port: u16) -> Option<u16> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    let head = "GET / HTTP/1.1\r\nHost: a.test\r\nX-Key: mine\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_authenticator_said_counts_neither_for_another_one_nor_for_another_namespace() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let (kind, strict) = (saying("200 OK"), saying("403 Forbidden"));
    apply(&engine, &guarded("a", one, kind)).await;
    assert_eq!(status(port), Some(200));
    apply(&engine, &guarded("a", one, strict)).await;
    assert_eq!(status(port), Some(403), "another one is asked");
    apply(&engine, &guarded("b", one, kind)).await;
    assert_eq!(status(port), Some(200));
    // The same that is of somebody else, and answers otherwise now.
    let mut other = guarded("c", one, kind);
    for upstream in other.upstreams.clone().values() {
        if upstream.endpoints.ready == [kind] {
            let endpoints = Arc::new(Endpoints { ready: vec![strict], draining: Vec::new() });
            let upstream = Upstream { endpoints, ..Upstream::clone(upstream) };
            other.upstreams.insert(upstream.id.clone(), Arc::new(upstream));
        }
    }
    apply(&engine, &other).await;
    assert_eq!(status(port), Some(403), "another namespace's is asked");
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_nginx_kept_in_files_is_gone_when_the_next_one_starts() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let environment = engine.environment();
    let left = |what| environment.temporary(what).join("left");
    // As a process leaves it that was killed.
    let leave = || {
        for what in ["body", "auth"] {
            std::fs::create_dir_all(environment.temporary(what)).expect("a folder");
            std::fs::write(left(what), "a body").expect("a file");
        }
    };
    leave();
    apply(&engine, &guarded("a", one, saying("200 OK"))).await;
    assert!(!left("body").exists() && !left("auth").exists());
    assert_eq!(status(port), Some(200), "what is said is remembered in a folder that is there");
    leave();
    let master = pid(&folder).and_then(rustix::process::Pid::from_raw).expect("nginx runs");
    rustix::process::kill_process_group(master, rustix::process::Signal::KILL).expect("it runs");
    until("nginx runs again", || engine.starts() == 2 && status(port) == Some(200)).await;
    assert!(!left("body").exists() && !left("auth").exists());
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_authenticators_of_a_namespace_said_goes_with_its_last_path_that_asks_one() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let kept = || {
        let folders = std::fs::read_dir(engine.environment().temporary("auth")).expect("a folder");
        folders.flatten().map(|folder| folder.file_name()).collect::<Vec<_>>()
    };
    let asked = saying("200 OK");
    apply(&engine, &guarded("a", one, asked)).await;
    assert_eq!(status(port), Some(200));
    let of_a = kept();
    assert_eq!(of_a.len(), 1);
    // The same stays for as long as it is asked for.
    apply(&engine, &guarded("a", backend("two"), asked)).await;
    assert_eq!(kept(), of_a);
    apply(&engine, &guarded("b", one, asked)).await;
    assert_eq!(status(port), Some(200));
    until("the workers that know it have left", || !kept().contains(&of_a[0])).await;
    assert_eq!((kept().len(), status(port)), (1, Some(200)));
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    until("nobody asks any more", || kept().is_empty()).await;
    engine.drain(PATIENCE).await;
}
