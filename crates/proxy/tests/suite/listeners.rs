//! The listeners that the ConfigMap asks for, over real sockets.

use crate::bed;
use crate::bed::{apply, idle};
use model::policy::Policy;
use model::{
    Configuration, Global, Kind, Listener, ListenerId, Listeners, Origin, ServerName, Speaks,
};
use proxy::{Native, Options};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn configuration(addresses: Vec<IpAddr>, threads: u16, connections: usize) -> Configuration {
    let listeners = Listeners {
        addresses,
        only_ipv4: true,
        threads: threads.try_into().ok(),
        connections: Some(connections),
    };
    let global = Global { listeners, access_log: false, ..Global::default() };
    Configuration { global: Arc::new(global), ..Configuration::default() }
}

/// What a connection to this address gets; none if nobody listens, or the connection ends without an answer.
async fn answer(native: &Native, address: Ipv4Addr) -> Option<TcpStream> {
    let port = native.listening().http_port;
    let mut tcp = TcpStream::connect((address, port)).await.ok()?;
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.ok()?;
    let mut begin = [0; 12];
    tcp.read_exact(&mut begin).await.ok()?;
    assert_eq!(&begin, b"HTTP/1.1 404");
    Some(tcp)
}

#[tokio::test]
async fn addresses_and_threads_count_from_the_start_on() {
    let native = idle(Vec::new());
    let first = configuration(vec![TWO.into()], 2, 100);
    apply(&native, &Configuration::default(), &first).await;
    assert!(answer(&native, TWO).await.is_some(), "the address that the ConfigMap names");
    assert!(answer(&native, ONE).await.is_none(), "no other one");
    // Later changes leave the listeners as they are.
    apply(&native, &first, &configuration(vec![ONE.into()], 1, 100)).await;
    assert!(answer(&native, TWO).await.is_some());
    assert!(answer(&native, ONE).await.is_none());
}

#[tokio::test]
async fn an_address_that_cannot_be_had_is_not_followed() {
    let native = idle(Vec::new());
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    let wanted = configuration(vec![elsewhere.into()], 1, 100);
    apply(&native, &Configuration::default(), &wanted).await;
    assert!(answer(&native, ONE).await.is_some(), "it listens where it did");
}

#[tokio::test]
async fn a_thread_takes_as_many_connections_as_it_may() {
    let native = idle(Vec::new());
    let wanted = configuration(Vec::new(), 1, 2);
    apply(&native, &Configuration::default(), &wanted).await;
    let first = answer(&native, ONE).await.expect("there is room");
    let second = answer(&native, ONE).await.expect("there is room");
    // The newcomer goes, and with it those that wait for nothing.
    assert!(answer(&native, ONE).await.is_none(), "there is no room");
    for mut idle in [first, second] {
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.expect("it ends");
    }
    assert!(answer(&native, ONE).await.is_some(), "there is room again");
}

/// A connection from this address, with a request on it.
async fn from(native: &Native, address: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((address, 0).into()).expect("an address of this machine");
    let mut tcp =
        socket.connect((ONE, native.listening().http_port).into()).await.expect("listening");
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        .await
        .expect("written");
    tcp
}

#[tokio::test]
async fn one_address_whose_requests_hang_keeps_nobody_else_out() {
    let hangs = tokio::net::TcpListener::bind((ONE, 0)).await.expect("a port");
    let at = hangs.local_addr().expect("bound");
    let mut wanted = bed::configuration(&[(bed::MAIN, vec![at])], Policy::default());
    wanted.global = configuration(Vec::new(), 1, 8).global;
    let native = idle(Vec::new());
    apply(&native, &Configuration::default(), &wanted).await;
    let (mut hanging, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        hanging.push(from(&native, TWO).await);
        asked.push(hangs.accept().await.expect("a connection").0);
    }
    assert_eq!(to_end(&mut from(&native, TWO).await).await, "", "it holds all places itself");
    let mut other = from(&native, ONE).await;
    assert_eq!(to_end(&mut hanging[0]).await, "", "the oldest one gives way");
    asked.push(hangs.accept().await.expect("a connection").0);
    for upstream in &mut asked {
        // The first of them is gone.
        let _gone = upstream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    }
    for tcp in hanging[1..].iter_mut().chain([&mut other]) {
        assert!(
            to_end(tcp).await.starts_with("HTTP/1.1 204 "),
            "it was let in, and has its answer"
        );
    }
}

/// A connection to the TLS port from this address.
async fn to_tls(native: &Native, from: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("an address of this machine");
    let port = native.listening().https_port;
    socket.connect((ONE, port).into()).await.expect("listening")
}

/// What is said before the connection ends.
async fn to_end(tcp: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(bed::PATIENCE, tcp.read_to_end(&mut answer)).await;
    let _ = read.expect("an end of the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn who_says_nothing_on_the_tls_port_leaves_room_to_other_addresses() {
    let native = idle(Vec::new());
    let wanted = configuration(Vec::new(), 1, 20);
    apply(&native, &Configuration::default(), &wanted).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(to_tls(&native, TWO).await);
    }
    // Eight of them wait for their handshake; there is no room for more of one address.
    for tcp in &mut silent[8..] {
        assert_eq!(to_end(tcp).await, "");
    }
    let mut other = to_tls(&native, ONE).await;
    other.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
    assert!(to_end(&mut other).await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn places_that_are_scarce_are_given_up_by_who_says_nothing() {
    let native = idle(Vec::new());
    let wanted = configuration(Vec::new(), 1, 8);
    apply(&native, &Configuration::default(), &wanted).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(to_tls(&native, TWO).await);
    }
    // Long before the time for a handshake is over, which is a minute.
    for tcp in &mut silent {
        assert_eq!(to_end(tcp).await, "");
    }
    assert!(answer(&native, ONE).await.is_some(), "there is room again");
}

#[tokio::test]
async fn http_in_clear_on_the_tls_port_is_told_so() {
    let native = idle(Vec::new());
    apply(&native, &Configuration::default(), &configuration(Vec::new(), 1, 100)).await;
    let said = "<center>The plain HTTP request was sent to HTTPS port</center>\r\n";
    for (request, told) in [("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", true), ("hello\r\n", false)]
    {
        let mut tcp = to_tls(&native, ONE).await;
        tcp.write_all(request.as_bytes()).await.expect("written");
        let answer = to_end(&mut tcp).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert_eq!(answer.contains(said), told, "{answer}");
    }
}

/// A Gateway with listeners at these addresses.
fn gateway(addresses: &[SocketAddr]) -> Configuration {
    let mut made = configuration(Vec::new(), 2, 100);
    for address in addresses {
        let id = ListenerId { address: *address, hosts: ServerName::catch_all() };
        let listener = Listener {
            id: id.clone(),
            port: None,
            speaks: Speaks::Http,
            certificate: None,
            clients: None,
            origin: Origin::new(Kind::Gateway, "op", "web"),
        };
        made.listeners.insert(id, Arc::new(listener));
    }
    made
}

#[tokio::test]
async fn ports_of_gateways_take_so_many_sockets_and_give_them_back() {
    // An address of its own: what is free there for a moment, no other test is given.
    const OWN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 61);
    let free = [(); 8].map(|()| TcpListener::bind((OWN, 0)).expect("a port"));
    let ports = free.map(|free| free.local_addr().expect("bound"));
    let native = Native::start(Options { sockets: 6, ..bed::options(vec![ONE.into()]) });
    let native = native.expect("ports chosen by the system");
    let nothing = Configuration::default();
    let open = async || {
        let mut open = 0;
        for address in ports {
            open += usize::from(TcpStream::connect(address).await.is_ok());
        }
        open
    };
    let all = gateway(&ports);
    apply(&native, &nothing, &all).await;
    // Two threads have six sockets between them: of three ports both, or of more ports one.
    let most = open().await;
    assert!((3..=6).contains(&most), "{most}");
    let last = gateway(&ports[7..]);
    apply(&native, &all, &last).await;
    let alone = async {
        while TcpStream::connect(ports[7]).await.is_err() || open().await > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(bed::PATIENCE, alone).await.expect("there is room again");
}

#[tokio::test]
async fn whoever_is_not_believed_takes_its_own_places_whatever_it_announces() {
    let native = idle(Vec::new());
    let mut wanted = configuration(Vec::new(), 1, 20);
    let mut global = Global::clone(&wanted.global);
    global.proxy_protocol = true;
    global.real_ip.trusted = [IpAddr::from(ONE).into()].into_iter().collect();
    wanted.global = Arc::new(global);
    apply(&native, &Configuration::default(), &wanted).await;
    let mut silent = Vec::new();
    for client in 0..20 {
        let mut tcp = to_tls(&native, TWO).await;
        let header = format!("PROXY TCP4 203.0.113.{client} 192.0.2.1 1234 443\r\n");
        tcp.write_all(header.as_bytes()).await.expect("written");
        silent.push(tcp);
    }
    for tcp in &mut silent[8..] {
        assert_eq!(to_end(tcp).await, "", "its own address has no more");
    }
    // The balancer is believed: these are two clients, and one of them has been announced by somebody else.
    for client in [1, 77] {
        let mut tcp = to_tls(&native, ONE).await;
        let header = format!("PROXY TCP4 203.0.113.{client} 192.0.2.1 1234 443\r\n");
        tcp.write_all(header.as_bytes()).await.expect("written");
        tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
        assert!(to_end(&mut tcp).await.starts_with("HTTP/1.1 400 "));
    }
}

#[tokio::test]
async fn who_begins_with_no_proxy_header_is_counted_and_who_only_asks_whether_somebody_listens_is_not()
 {
    let native = idle(Vec::new());
    let mut wanted = configuration(Vec::new(), 1, 20);
    let mut global = Global::clone(&wanted.global);
    global.proxy_protocol = true;
    wanted.global = Arc::new(global);
    apply(&native, &Configuration::default(), &wanted).await;
    drop(to_tls(&native, ONE).await);
    for said in ["GET / HTTP/1.1\r\n", "PROXY TCP4 nonsense\r\n"] {
        let mut tcp = to_tls(&native, ONE).await;
        tcp.write_all(said.as_bytes()).await.expect("written");
        assert_eq!(to_end(&mut tcp).await, "");
    }
    assert_eq!(native.shed().unannounced, 2);
}
