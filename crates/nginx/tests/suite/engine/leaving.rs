//! Workers that leave still serve the connections that they took, by what they were started with.

use crate::engine::bed::{
    PATIENCE, apply, backend, configuration, folder, free_port, start, until,
};
use engine::Engine;
use model::policy::{AuthBasic, AuthScheme, Password, Policy, Users};
use model::{Backend, Configuration, Endpoints, Location, ServerName, Upstream, UpstreamId};
use nginx::Environment;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// An upstream; with nobody behind it if there is no address.
fn put(configuration: &mut Configuration, id: &str, address: Option<SocketAddr>) -> UpstreamId {
    let id = UpstreamId::new(id);
    let endpoints = Endpoints { ready: address.into_iter().collect(), draining: Vec::new() };
    let upstream = Upstream {
        id: id.clone(),
        endpoints: Arc::new(endpoints),
        external: None,
        namespace: "".into(),
    };
    configuration.upstreams.insert(id.clone(), Arc::new(upstream));
    id
}

/// Changes the location of a host.
fn edit(configuration: &mut Configuration, host: &str, change: impl FnOnce(&mut Location)) {
    let name = ServerName::new(host);
    let mut server = model::Server::clone(&configuration.servers[&name]);
    let mut location = Location::clone(&server.locations[0]);
    change(&mut location);
    server.locations = vec![Arc::new(location)];
    configuration.servers.insert(name, Arc::new(server));
}

/// Lets a user in by the name `u` and the password `p`, and another one.
fn asks_for_password(location: &mut Location, other: &str) {
    let entry = |name: &str| (name.as_bytes().into(), Password::Plain(b"p"[..].into()));
    let users = Arc::new(Users(BTreeMap::from([entry("u"), entry(other)])));
    let basic = AuthBasic { scheme: AuthScheme::Basic, realm: "x".to_owned(), users };
    location.policy =
        Arc::new(Policy { auth_basic: Some(basic.into()), ..Policy::clone(&location.policy) });
}

/// A connection with a request that lacks its end.
fn begin(port: u16, host: &str) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("nginx listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic dTpw\r\n");
    stream.write_all(head.as_bytes()).expect("nginx reads");
    stream
}

fn finish(mut stream: TcpStream) -> String {
    stream.write_all(b"Connection: close\r\n\r\n").expect("nginx reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("nginx answers");
    let line = answer.lines().next().unwrap_or_default();
    format!("{line} {}", answer.lines().last().unwrap_or_default())
}

/// What nginx is asked on its control socket.
fn control(at: &Environment, target: &str) -> String {
    let mut stream = UnixStream::connect(at.control()).expect("nginx listens");
    let own = format!("Host: x\r\nConnection: close\r\nX-Fairway-Secret: {}\r\n", at.password);
    let request = format!("GET {target} HTTP/1.1\r\n{own}\r\n");
    stream.write_all(request.as_bytes()).expect("nginx reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("nginx answers");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_on_a_connection_from_before_a_reload_is_served_as_before_it() {
    let (folder, port) = (folder(), free_port());
    let (engine, one, two) = (start(&folder, port), backend("one"), backend("two"));
    let hosts = ["upstream.test", "password.test", "standin.test"];
    let mut before = configuration(&hosts.map(|host| (host, one, None)));
    edit(&mut before, hosts[1], |location| asks_for_password(location, "a"));
    let other = put(&mut before, "demo-other-80", Some(one));
    put(&mut before, "demo-standin.test-80", None);
    edit(&mut before, hosts[2], |location| {
        location.policy =
            Arc::new(Policy { default_backend: Some(other.clone()), ..Policy::default() });
    });
    apply(&engine, &before).await;
    let at = engine.environment();
    let streams = hosts.map(|host| begin(port, host));
    until("all are read", || control(at, "/nginx_status").contains("Reading: 3")).await;
    // Services of other names take over, those before go with all that hung on them, and the password file is another.
    let mut after = configuration(&hosts.map(|host| (host, two, None)));
    for host in [hosts[0], hosts[2]] {
        let id = put(&mut after, &format!("demo-new-{host}-80"), Some(two));
        after.upstreams.remove(&UpstreamId::new(format!("demo-{host}-80")));
        edit(&mut after, host, |location| location.backend = Backend::Upstream(id));
    }
    edit(&mut after, hosts[1], |location| asks_for_password(location, "b"));
    put(&mut after, "demo-password.test-80", Some(one));
    apply(&engine, &after).await;
    assert_eq!(streams.map(finish), ["HTTP/1.1 200 OK one"; 3].map(str::to_owned));
    let new = hosts.map(|host| finish(begin(port, host)));
    assert_eq!(new, ["two", "one", "two"].map(|name| format!("HTTP/1.1 200 OK {name}")));
    // Nothing is kept longer than it is needed.
    until("what the workers before had goes", || {
        let backends = control(at, "/configuration/backends");
        let files = std::fs::read_dir(engine.environment().files()).expect("a folder").count();
        !backends.contains("demo-other-80") && backends.contains("demo-new") && files == 1
    })
    .await;
    engine.drain(Duration::from_secs(5)).await;
}
