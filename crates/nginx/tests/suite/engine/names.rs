//! Upstreams that stand for names: nginx follows what a real name server says, and nobody waits for one that is silent.

use crate::engine::bed::{
    PATIENCE, apply, backend, backend_at, configuration, environment, folder, free_port, get,
    options, until,
};
use crate::engine::ok;
use engine::Engine;
use model::{Configuration, Server, ServerName, Upstream, UpstreamId};
use nginx::{Environment, Nginx, Options};
use openssl::ssl::{SslConnector, SslMethod};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use stream::Resolver;
use testkit::name_server::{NameServer, Says};
use testkit::namespace;
use tokio::time::timeout;

/// Addresses of the namespace that names may lead to: those of the machine itself they may not.
const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 10));
const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 11));

/// An engine whose resolver waits for an answer longer than a test may take: whoever waits for it fails.
fn options_with(environment: Environment, server: &NameServer) -> Options {
    let resolver = Arc::new(Resolver::from(server.resolver(PATIENCE * 10)));
    Options { resolver, ..options(environment) }
}

/// The upstream of `host` stands for a name from now on.
fn stands_for(configuration: &mut Configuration, host: &str, name: &str, port: u16) {
    let id = UpstreamId::new(format!("demo-{host}-80"));
    let external = Some((name.to_owned(), port));
    let upstream =
        Upstream { id: id.clone(), endpoints: Arc::default(), external, namespace: "".into() };
    configuration.upstreams.insert(id, Arc::new(upstream));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_server_that_is_silent_delays_no_other_change() {
    let name = "a_name_server_that_is_silent_delays_no_other_change";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let (folder, port, server) = (folder(), free_port(), NameServer::start().await);
    let (one, two) = (backend("one"), backend("two"));
    let named = backend_at("named", SocketAddr::new(ONE, 0));
    server.says("db.example", Says::Nothing);
    let engine = Nginx::start(options_with(environment(&folder, port), &server));
    let engine = Arc::new(engine.expect("the engine starts"));
    for (address, body) in [(one, "one"), (two, "two")] {
        let mut next = configuration(&[("a.test", address, None), ("n.test", one, None)]);
        stands_for(&mut next, "n.test", "db.example", named.port());
        apply(&engine, &next).await;
        assert_eq!(get(port, "a.test"), ok(body));
        assert_eq!(get(port, "n.test").map(|(status, _)| status), Some(503));
    }
    let reloads = engine.reloads();
    server.says("db.example", Says::Addresses(vec![ONE], 60));
    until("the name leads somewhere", || get(port, "n.test") == ok("named")).await;
    assert_eq!(engine.reloads(), reloads, "what arrives later is pushed");
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_followed_keeps_its_last_good_answer_and_is_forgotten_when_it_goes() {
    let name = "a_name_is_followed_keeps_its_last_good_answer_and_is_forgotten_when_it_goes";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let (folder, port, server) = (folder(), free_port(), NameServer::start().await);
    let one = backend_at("one", SocketAddr::new(ONE, 0));
    backend_at("two", SocketAddr::new(TWO, one.port()));
    // Asked again as soon as it may be, and never kept by the resolver.
    let says = |address| server.says("db.example", Says::Addresses(vec![address], 0));
    says(ONE);
    let engine = Nginx::start(options_with(environment(&folder, port), &server));
    let engine = Arc::new(engine.expect("the engine starts"));
    let hosts = [("n.test", one, None), ("other.test", one, None)];
    let mut with_name = configuration(&hosts);
    stands_for(&mut with_name, "n.test", "db.example", one.port());
    apply(&engine, &with_name).await;
    assert_eq!(get(port, "n.test"), ok("one"), "it is there when apply returns");
    says(TWO);
    until("the new address", || get(port, "n.test") == ok("two")).await;
    server.says("db.example", Says::Unknown);
    let enough = server.asked("db.example") + 3;
    until("it is asked again", || server.asked("db.example") >= enough).await;
    assert_eq!(get(port, "n.test"), ok("two"), "the last good answer stays");

    server.says("db.example", Says::Nothing);
    // Workers that leave keep it until they are gone.
    let mut status = None;
    for _ in 0..30 {
        apply(&engine, &configuration(&hosts[1..])).await;
        #[expect(
            clippy::disallowed_methods,
            reason = "a pause between tries, in which workers go"
        )]
        tokio::time::sleep(Duration::from_secs(2)).await;
        apply(&engine, &with_name).await;
        status = get(port, "n.test").map(|(status, _)| status);
        if status == Some(503) {
            break;
        }
    }
    assert_eq!(status, Some(503), "it was forgotten");
    says(ONE);
    until("it is known again", || get(port, "n.test") == ok("one")).await;
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_two_namespaces_have_is_looked_up_for_each_of_them() {
    let name = "a_name_that_two_namespaces_have_is_looked_up_for_each_of_them";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let (folder, port, server) = (folder(), free_port(), NameServer::start().await);
    let one = backend_at("one", SocketAddr::new(ONE, 0));
    server.says("db.example", Says::Addresses(vec![ONE], 60));
    let engine = Nginx::start(options_with(environment(&folder, port), &server));
    let engine = Arc::new(engine.expect("the engine starts"));
    let mut next = configuration(&[("n.test", one, None)]);
    let mut add = |namespace: &str, id: &str, name: &str| {
        let id = UpstreamId::new(id);
        let external = Some((name.to_owned(), one.port()));
        let (endpoints, namespace) = (Arc::default(), namespace.into());
        let upstream = Upstream { id: id.clone(), endpoints, external, namespace };
        next.upstreams.insert(id, Arc::new(upstream));
    };
    // Eight at a time, ten seconds each, of a server each: whoever waits for these waits for minutes.
    for number in 0..200 {
        let silent = format!("n.slow{number}.example");
        server.says(&silent, Says::Nothing);
        add("a", &format!("a-n{number}-80"), &silent);
    }
    add("a", "a-same-80", "db.example");
    add("demo", "demo-n.test-80", "db.example");
    apply(&engine, &next).await;
    until("the name leads somewhere", || get(port, "n.test") == ok("one")).await;
    engine.drain(Duration::from_secs(5)).await;
}

/// TLS of a host goes to its upstream as it is.
fn pass_through(configuration: &mut Configuration, host: &str) {
    let (id, host) = (UpstreamId::new(format!("demo-{host}-80")), ServerName::new(host));
    let passed = Server { passthrough: Some(id), ..Server::new(host.clone()) };
    configuration.servers.insert(host, Arc::new(passed));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_that_is_passed_through_to_this_machine_goes_round_a_few_times_only() {
    let name = "tls_that_is_passed_through_to_this_machine_goes_round_a_few_times_only";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let folder = folder();
    let mut environment = environment(&folder, free_port());
    environment.passthrough = true;
    let here = SocketAddr::from(([127, 0, 0, 1], environment.https_port));
    let engine = Arc::new(Nginx::start(options(environment)).expect("the engine starts"));
    let mut next = configuration(&[("p.test", here, None)]);
    pass_through(&mut next, "p.test");
    apply(&engine, &next).await;
    let asking = tokio::task::spawn_blocking(move || {
        let tcp = TcpStream::connect(here).expect("somebody listens");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let connector = SslConnector::builder(SslMethod::tls()).expect("OpenSSL works").build();
        connector.connect("p.test", tcp).map(drop).expect_err("nobody answers");
    });
    asking.await.expect("it does not panic");
    // All connections of this namespace, those that have ended included: each has two ends.
    let all = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let of_port = format!(":{:04X} ", here.port());
    let rounds = all.lines().filter(|line| line.contains(&of_port)).count();
    assert!((3..20).contains(&rounds), "{rounds} ends of connections:\n{all}");
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_passed_through_to_a_name() {
    let name = "tls_is_passed_through_to_a_name";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let (folder, port, server) = (folder(), free_port(), NameServer::start().await);
    let backend = TcpListener::bind((ONE, 0)).expect("a port");
    let behind = backend.local_addr().expect("bound");
    server.says("db.example", Says::Addresses(vec![ONE], 60));
    let mut environment = environment(&folder, port);
    environment.passthrough = true;
    let https = environment.https_port;
    let engine = Nginx::start(options_with(environment, &server)).expect("the engine starts");
    let engine = Arc::new(engine);
    let mut next = configuration(&[("p.test", behind, None)]);
    stands_for(&mut next, "p.test", "db.example", behind.port());
    pass_through(&mut next, "p.test");
    apply(&engine, &next).await;
    tokio::task::spawn_blocking(move || {
        let tcp = TcpStream::connect(("127.0.0.1", https)).expect("somebody listens");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let connector = SslConnector::builder(SslMethod::tls()).expect("OpenSSL works").build();
        // The backend says nothing about TLS: this ends with an error, once the backend was reached.
        connector.connect("p.test", tcp).map(drop).expect_err("nobody answers");
    });
    let backend = {
        backend.set_nonblocking(true).expect("a socket");
        tokio::net::TcpListener::from_std(backend).expect("a socket")
    };
    timeout(PATIENCE, backend.accept()).await.expect("in time").expect("the backend is reached");
    engine.drain(Duration::from_secs(5)).await;
}
