//! TLS connections that are carried on as they are, and those that are not, over real sockets.

use crate::bed::{
    MAIN, PATIENCE, apply, configuration, options, put_host, put_upstream, serving, start,
};
use model::policy::{Policy, UpstreamTls};
use model::{
    Configuration, Global, Kind, Listener, ListenerId, Origin, RouteKey, ServerName, Speaks,
    StreamSettings, TlsRoute, TlsShare, UpstreamId,
};
use proxy::{Native, Options, Pressure};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Answers every connection with its name and all bytes that it got.
async fn upstream(name: &'static str) -> SocketAddr {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("sockets of this machine work");
    let address = listener.local_addr().expect("sockets of this machine work");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut all = Vec::new();
                tcp.read_to_end(&mut all).await.expect("sockets of this machine work");
                tcp.write_all(name.as_bytes()).await.expect("sockets of this machine work");
                tcp.write_all(&all).await.expect("sockets of this machine work");
            });
        }
    });
    address
}

fn passed_through(endpoints: Vec<SocketAddr>) -> Configuration {
    let mut configuration = configuration(&[(MAIN, endpoints)], Policy::default());
    let server = &mut configuration.servers[&ServerName::new("a.test")];
    Arc::make_mut(server).passthrough = Some(UpstreamId::new(MAIN));
    configuration
}

/// The first bytes of a TLS client that asks for this name.
fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config
        .expect("sockets of this machine work")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().expect("a name");
    let mut client =
        ClientConnection::new(Arc::new(config), name).expect("sockets of this machine work");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("sockets of this machine work");
    bytes
}

async fn connect(native: &Native) -> TcpStream {
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, native.listening().https_port));
    let tcp = tcp.await.expect("listening");
    tcp.set_nodelay(true).expect("sockets of this machine work");
    tcp
}

/// What comes back for these bytes, sent in pieces.
async fn ask(native: &Native, bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut tcp = connect(native).await;
    for piece in bytes.chunks(piece) {
        tcp.write_all(piece).await.expect("sockets of this machine work");
        tokio::task::yield_now().await;
    }
    tcp.shutdown().await.expect("sockets of this machine work");
    let mut answer = Vec::new();
    let _reset = tcp.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn a_hello_in_pieces_and_in_many_records_arrives_unchanged() {
    let native = start(&passed_through(vec![upstream("a:").await])).await;
    let whole = hello("a.test");
    let record = |part: &[u8]| [&[22, 3, 1, 0, part.len() as u8], part].concat();
    let split: Vec<u8> = whole[5..].chunks(50).flat_map(record).collect();
    for bytes in [&whole, &split] {
        for piece in [1, 7, bytes.len()] {
            assert_eq!(ask(&native, bytes, piece).await, [b"a:", &bytes[..]].concat(), "{piece}");
        }
    }
}

#[tokio::test]
async fn other_names_and_other_spellings_end_here() {
    let native = start(&passed_through(vec![upstream("a:").await])).await;
    for name in ["b.test", "x.a.test", "192.0.2.1"] {
        let answer = ask(&native, &hello(name), 100).await;
        // A ServerHello, or an alert after it: not what the upstream says.
        assert_eq!(answer.first(), Some(&22), "{name}");
    }
    let answer = ask(&native, b"GET / HTTP/1.1\r\n\r\n", 100).await;
    assert!(!answer.starts_with(b"a:"), "{answer:?}");
}

#[tokio::test]
async fn endpoints_take_turns_and_one_that_refuses_is_passed_over() {
    let closed =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("sockets of this machine work");
    let refused = closed.local_addr().expect("sockets of this machine work");
    drop(closed);
    let endpoints = vec![upstream("a:").await, refused, upstream("b:").await];
    let native = start(&passed_through(endpoints)).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(ask(&native, &hello("a.test"), 1000).await[..2].to_vec());
    }
    assert_eq!(heard, [b"a:", b"b:", b"a:", b"b:"]);
}

#[tokio::test]
async fn a_client_that_ends_in_the_middle_is_let_go() {
    let native = start(&passed_through(vec![upstream("a:").await])).await;
    let answer = ask(&native, &hello("a.test")[..40], 40).await;
    assert!(!answer.starts_with(b"a:"));
}

/// Places for connections that are carried on in the tests below; a namespace has half of them.
const PLACES: usize = 8;

/// An engine with few places.
async fn few_places(configuration: &Configuration) -> Native {
    let options = options(vec![Ipv4Addr::LOCALHOST.into()]);
    let native =
        Native::start(Options { carried: PLACES, ..options }).expect("ports of the system");
    apply(&native, &Configuration::default(), configuration).await;
    native
}

/// One address opens so many connections, says hello on each and falls silent; whoever ends is told of.
async fn crowd(at: SocketAddr, count: usize, name: &str) -> Receiver<()> {
    let (ended, ending) = channel(count);
    for _ in 0..count {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::new(127, 0, 0, 5), 0).into()).expect("an address of this machine");
        let mut tcp = socket.connect(at).await.expect("listening");
        tcp.write_all(&hello(name)).await.expect("written");
        let ended = ended.clone();
        tokio::spawn(async move {
            let _either = tcp.read(&mut [0]).await;
            let _nobody_waits = ended.send(()).await;
        });
    }
    ending
}

/// So many more have ended.
async fn ended(ending: &mut Receiver<()>, count: usize) {
    for _ in 0..count {
        timeout(PATIENCE, ending.recv()).await.expect("they end").expect("somebody is there");
    }
}

/// What comes back from there for a hello.
async fn asked(at: SocketAddr, name: &str) -> Vec<u8> {
    let mut tcp = TcpStream::connect(at).await.expect("listening");
    tcp.write_all(&hello(name)).await.expect("written");
    tcp.shutdown().await.expect("sockets of this machine work");
    let mut answer = vec![0; 2];
    let read = timeout(PATIENCE, tcp.read_exact(&mut answer)).await.expect("in time");
    read.map(|_| answer).unwrap_or_default()
}

/// With an Ingress of this namespace behind the host.
fn owned(mut configuration: Configuration, host: &str, namespace: &str) -> Configuration {
    let server = &mut configuration.servers[&ServerName::new(host)];
    let server = Arc::make_mut(server);
    server.passthrough = Some(UpstreamId::new(MAIN));
    for location in &mut server.locations {
        Arc::make_mut(location).origin = Some(Origin::new(Kind::Ingress, namespace, "one").into());
    }
    configuration
}

#[tokio::test]
async fn one_address_that_falls_silent_leaves_places_to_its_namespace_and_to_others() {
    let mut both = configuration(&[(MAIN, vec![upstream("a:").await])], Policy::default());
    put_host(&mut both, "b.test", &UpstreamId::new(MAIN), Policy::default());
    let native = few_places(&owned(owned(both, "a.test", "a"), "b.test", "b")).await;
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, native.listening().https_port));
    let mut ending = crowd(at, 20, "b.test").await;
    // Half of the places are those of a namespace, and a quarter of them as many may wait for one.
    ended(&mut ending, 14).await;
    assert_eq!(asked(at, "a.test").await, b"a:", "another namespace");
    assert_eq!(asked(at, "b.test").await, b"a:", "another address of the same one");
    ended(&mut ending, 1).await;
    let carried = native.crowds().carried;
    assert!(carried.now <= 4 && carried.most == 8 && carried.refused >= 13, "{carried:?}");
}

/// An engine that carries on what comes for `a.test`, with places for 8 connections, and where it takes TLS.
async fn carrying() -> (Native, SocketAddr) {
    let options = options(vec![Ipv4Addr::LOCALHOST.into()]);
    let native =
        Native::start(Options { connections: PLACES, ..options }).expect("ports of the system");
    let configuration = passed_through(vec![upstream("a:").await]);
    apply(&native, &Configuration::default(), &configuration).await;
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, native.listening().https_port));
    (native, at)
}

/// So many are carried on.
async fn are_carried(native: &Native, count: u64) {
    let carried = || async { (native.crowds().carried.now == count).then_some(()) };
    eventually(PATIENCE, carried).await.expect("they are carried on");
}

#[tokio::test]
async fn where_memory_is_short_carried_connections_end_until_it_is_enough() {
    let (native, at) = carrying().await;
    // An eighth of it is left to a namespace.
    native.bound_memory(256 << 10);
    let mut ending = crowd(at, 4, "a.test").await;
    are_carried(&native, 4).await;
    native.press(Pressure::Full);
    ended(&mut ending, 2).await;
    assert!(ending.try_recv().is_err(), "what two take is left alone");
    assert_eq!(native.shed().unread, 2);
    native.press(Pressure::Normal);
    are_carried(&native, 2).await;
}

/// Says something without end.
async fn talking() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move { while tcp.write_all(&[7; 64 << 10]).await.is_ok() {} });
        }
    });
    address
}

#[tokio::test]
async fn what_waits_for_a_carried_client_goes_with_its_connection_where_memory_is_short() {
    let native = start(&passed_through(vec![talking().await])).await;
    let at = (Ipv4Addr::LOCALHOST, native.listening().https_port);
    let mut client = TcpStream::connect(at).await.expect("listening");
    client.write_all(&hello("a.test")).await.expect("written");
    native.press(Pressure::High);
    let ended = async || (native.shed().unread >= 1).then_some(());
    eventually(PATIENCE, ended).await.expect("it takes nothing");
    let read = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await.expect("in time");
    assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn where_all_places_are_taken_the_oldest_carried_one_of_whoever_holds_most_gives_way() {
    let (native, at) = carrying().await;
    let mut ending = Vec::new();
    for count in 1..=8 {
        ending.push(crowd(at, 1, "a.test").await);
        are_carried(&native, count).await;
    }
    assert_eq!(asked(at, "a.test").await, b"a:", "another address");
    ended(&mut ending[0], 1).await;
    assert!(ending[1..].iter_mut().all(|one| one.try_recv().is_err()), "one for one");
}

/// A listener of a Gateway with an address of its own, and a TLSRoute for `b.test` there.
async fn with_tls_route(silence: Duration) -> (Configuration, SocketAddr) {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = free.local_addr().expect("bound");
    let mut made = configuration(&[(MAIN, vec![upstream("a:").await])], Policy::default());
    let id = ListenerId { address, hosts: ServerName::catch_all() };
    let listener = Listener {
        id: id.clone(),
        port: None,
        speaks: Speaks::TlsPassed,
        certificate: None,
        clients: None,
        origin: Origin::new(Kind::Gateway, "op", "web"),
    };
    made.listeners.insert(id.clone(), Arc::new(listener));
    let share = TlsShare { weight: 1, upstream: Some(UpstreamId::new(MAIN)), tls: None };
    let origin = Origin::new(Kind::TlsRoute, "b", "one");
    let route = TlsRoute { shares: vec![share], origin };
    let key = RouteKey { listener: Some(id), host: ServerName::new("b.test") };
    made.tls_routes.insert(key, Arc::new(route));
    let streams = StreamSettings { idle: silence, ..StreamSettings::default() };
    made.global = Arc::new(Global { streams, ..Global::default() });
    (made, address)
}

#[tokio::test]
async fn connections_of_a_tls_route_have_places_as_those_of_tcp_services_have() {
    let (configuration, at) = with_tls_route(Duration::from_secs(600)).await;
    let native = few_places(&configuration).await;
    let mut ending = crowd(at, 20, "b.test").await;
    ended(&mut ending, 14).await;
    assert_eq!(asked(at, "b.test").await, b"a:", "another address");
    ended(&mut ending, 1).await;
    assert!(native.crowds().carried.refused >= 13);
}

#[tokio::test]
async fn connections_of_a_tls_route_end_where_nothing_moves() {
    let (configuration, at) = with_tls_route(Duration::from_millis(50)).await;
    let _native = few_places(&configuration).await;
    let mut ending = crowd(at, 2, "b.test").await;
    ended(&mut ending, 2).await;
}

/// An engine that carries on to this endpoint under TLS what a route of TLS has, and where.
async fn under_tls(endpoint: SocketAddr) -> (Native, SocketAddr) {
    let (mut configuration, at) = with_tls_route(Duration::from_secs(600)).await;
    put_upstream(&mut configuration, MAIN, vec![endpoint]);
    let key = configuration.tls_routes.keys().next().expect("a route").clone();
    let route = Arc::make_mut(&mut configuration.tls_routes[&key]);
    route.shares[0].tls = Some(Arc::new(UpstreamTls::default()));
    (few_places(&configuration).await, at)
}

/// Sends so many tickets once a handshake is over, then what the client is to get.
async fn sends_tickets(count: usize) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key.into());
    let mut config = config.expect("a certificate");
    config.send_tls13_tickets = count;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    serving(move |tcp| {
        let acceptor = acceptor.clone();
        async move {
            let mut tls = acceptor.accept(tcp).await.expect("a handshake");
            let _either = tls.write_all(b"a:").await;
            let _either = tls.flush().await;
            let _end = tls.read_to_end(&mut Vec::new()).await;
        }
    })
    .await
}

#[tokio::test]
async fn backends_under_tls_that_send_tickets_without_end_are_left() {
    for (tickets, answer) in [(4, &b"a:"[..]), (70, b"")] {
        let (_native, at) = under_tls(sends_tickets(tickets).await).await;
        assert_eq!(asked(at, "b.test").await, answer, "{tickets} tickets");
    }
}

/// Begins a ServerHello of 65,535 bytes that has no end: with 7 kB of it for who comes first, with 56 kB for others.
/// Each that was answered so is told of.
async fn begins_to_shake_hands() -> (SocketAddr, Receiver<()>) {
    let (told, asked) = channel(9);
    let pieces = Arc::new(AtomicUsize::new(1));
    let address = serving(move |mut tcp| {
        let (told, pieces) = (told.clone(), pieces.swap(8, Ordering::Relaxed));
        async move {
            let _ = tcp.read(&mut [0; 4096]).await;
            let text = [&[2, 0, 0xff, 0xff], &[0; 7_000][..]].concat();
            let length = u16::try_from(text.len()).expect("short").to_be_bytes();
            let record = [&[22, 3, 3], &length[..], &text].concat();
            let _ = tcp.write_all(&record.repeat(pieces)).await;
            let _ = told.send(()).await;
            // Until the other side has enough of it.
            while matches!(tcp.read(&mut [0; 4096]).await, Ok(1..)) {}
        }
    });
    (address.await, asked)
}

/// Two handshakes with a backend that do not end, where there is so much memory: the first one holds little, the second
/// one much. Whoever of them ends is told of.
async fn two_handshakes(memory: u64) -> (Native, [Receiver<()>; 2]) {
    let (endpoint, mut told) = begins_to_shake_hands().await;
    let (native, at) = under_tls(endpoint).await;
    native.bound_memory(memory);
    let first = crowd(at, 1, "b.test").await;
    timeout(PATIENCE, told.recv()).await.expect("in time").expect("a handshake");
    let second = crowd(at, 1, "b.test").await;
    timeout(PATIENCE, told.recv()).await.expect("in time").expect("a handshake");
    (native, [first, second])
}

#[tokio::test]
async fn handshakes_with_backends_that_are_not_whole_have_a_bound_for_a_namespace() {
    // Half of it for all, half of that for a namespace.
    let (_native, [mut first, mut second]) = two_handshakes(128 << 10).await;
    ended(&mut second, 1).await;
    assert!(first.try_recv().is_err(), "it came before, and holds little");
}

#[tokio::test]
async fn handshakes_with_backends_that_are_not_whole_count_for_their_connection() {
    // A sixteenth of it is left to them.
    let (native, [mut first, mut second]) = two_handshakes(512 << 10).await;
    native.press(Pressure::Full);
    ended(&mut second, 1).await;
    assert!(first.try_recv().is_err(), "it came before, and holds little");
}
