//! TCP services that stand for names: connections go where the name server said last, also while it is silent.

use model::{Configuration, Stream, StreamPort, Transport};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use stream::{Resolver, Streams};
use testkit::name_server::{NameServer, Says};
use testkit::{eventually, namespace, ports};

const PATIENCE: Duration = Duration::from_secs(60);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Addresses of the namespace that names may lead to: those of the machine itself they may not.
const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 10));
const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 11));

/// Tells each connection its name.
fn upstream(name: &'static str, address: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(address).expect("it is free");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            // A client that has gone needs no answer.
            drop(tcp.write_all(name.as_bytes()));
        }
    });
    address
}

/// Who answers on a port; nobody if the connection ends.
async fn answer(port: u16) -> String {
    let asking = tokio::task::spawn_blocking(move || {
        let mut tcp = TcpStream::connect((HERE, port)).expect("somebody listens");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut name = String::new();
        tcp.read_to_string(&mut name).expect("the end, in time");
        name
    });
    asking.await.expect("it does not panic")
}

#[tokio::test]
async fn a_tcp_service_follows_its_name_and_keeps_the_last_good_answer() {
    let name = "a_tcp_service_follows_its_name_and_keeps_the_last_good_answer";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let server = NameServer::start().await;
    let one = upstream("one", SocketAddr::new(ONE, 0));
    upstream("two", SocketAddr::new(TWO, one.port()));
    let says = |address| server.says("db.example", Says::Addresses(vec![address], 0));
    let resolver = Arc::new(Resolver::from(server.resolver(PATIENCE * 10)));
    let streams = Streams::new(vec![HERE], 1, 64).with_resolver(resolver);
    let port = StreamPort { transport: Transport::Tcp, number: ports::free(), address: None };
    let stream = |takes_proxy| Stream {
        service: "demo/db:5432".into(),
        namespace: "demo".into(),
        endpoints: Arc::default(),
        external: Some(("db.example".to_owned(), one.port())),
        takes_proxy,
        gives_proxy: false,
        shares: Vec::new(),
    };
    let configuration = |stream| Configuration {
        streams: [(port, Arc::new(stream))].into_iter().collect(),
        ..Configuration::default()
    };
    server.says("db.example", Says::Nothing);
    streams.follow(&configuration(stream(false)));
    let first = tokio::spawn(answer(port.number));
    let asked = || async { (server.asked("db.example") > 0).then_some(()) };
    eventually(PATIENCE, asked).await.expect("it is asked");
    says(ONE);
    assert_eq!(first.await.expect("an answer"), "one", "it waited for the first answer");
    says(TWO);
    let two = || async { (answer(port.number).await == "two").then_some(()) };
    eventually(PATIENCE, two).await.expect("the new address");
    let before = server.asked("db.example");
    server.says("db.example", Says::Nothing);
    let asked = || async { (server.asked("db.example") > before).then_some(()) };
    eventually(PATIENCE, asked).await.expect("it is asked again");
    assert_eq!(answer(port.number).await, "two", "the last good answer stays");
    // Another setting of the same port changes nothing about the name.
    streams.follow(&configuration(stream(true)));
    streams.follow(&configuration(stream(false)));
    assert_eq!(answer(port.number).await, "two", "what is known is kept");
}
