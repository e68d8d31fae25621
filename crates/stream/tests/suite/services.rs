//! TCP and UDP services over real sockets.

use model::{Configuration, Endpoints, Global, Stream, StreamPort, StreamSettings, Transport};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use stream::Streams;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A port that nobody uses at this moment.
pub(crate) fn free(transport: Transport) -> StreamPort {
    let any = (HERE, 0);
    let address = match transport {
        Transport::Tcp => {
            std::net::TcpListener::bind(any).expect("sockets of this machine work").local_addr()
        }
        Transport::Udp => {
            std::net::UdpSocket::bind(any).expect("sockets of this machine work").local_addr()
        }
    };
    StreamPort {
        transport,
        number: address.expect("sockets of this machine work").port(),
        address: None,
    }
}

pub(crate) fn leads_to(endpoints: Vec<SocketAddr>) -> Stream {
    Stream {
        service: "demo/s:1".into(),
        namespace: "demo".into(),
        endpoints: Arc::new(Endpoints { ready: endpoints, draining: Vec::new() }),
        external: None,
        takes_proxy: false,
        gives_proxy: false,
        shares: Vec::new(),
    }
}

pub(crate) fn configuration(
    streams: Vec<(StreamPort, Stream)>,
    settings: StreamSettings,
) -> Configuration {
    let global = Arc::new(Global { streams: settings, ..Global::default() });
    let streams = streams.into_iter().map(|(port, stream)| (port, Arc::new(stream))).collect();
    Configuration { global, streams, ..Configuration::default() }
}

fn serving(port: StreamPort, stream: Stream, settings: StreamSettings) -> Streams {
    let streams = Streams::new(vec![HERE], 1, 64);
    streams.follow(&configuration(vec![(port, stream)], settings));
    streams
}

/// Greets each connection with its own name, and answers with everything that it sent, once that has ended.
pub(crate) async fn tcp_upstream(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((HERE, 0)).await.expect("sockets of this machine work");
    let address = listener.local_addr().expect("sockets of this machine work");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                tcp.write_all(name.as_bytes()).await.expect("sockets of this machine work");
                let mut all = Vec::new();
                tcp.read_to_end(&mut all).await.expect("sockets of this machine work");
                tcp.write_all(&all).await.expect("sockets of this machine work");
            });
        }
    });
    address
}

/// Answers each datagram with so many, each its name and the datagram.
pub(crate) async fn udp_upstream(name: &'static str, answers: usize) -> SocketAddr {
    let socket = UdpSocket::bind((HERE, 0)).await.expect("sockets of this machine work");
    let address = socket.local_addr().expect("sockets of this machine work");
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
            let answer = [name.as_bytes(), &buffer[..length]].concat();
            for _ in 0..answers {
                socket.send_to(&answer, client).await.expect("sockets of this machine work");
            }
        }
    });
    address
}

/// A connection that has reached the upstream called `a:`.
pub(crate) async fn reach(port: StreamPort) -> TcpStream {
    let mut tcp =
        TcpStream::connect((HERE, port.number)).await.expect("sockets of this machine work");
    let mut name = [0; 2];
    tcp.read_exact(&mut name).await.expect("sockets of this machine work");
    assert_eq!(&name, b"a:");
    tcp
}

pub(crate) async fn ask(port: StreamPort, text: &str) -> String {
    let mut tcp =
        TcpStream::connect((HERE, port.number)).await.expect("sockets of this machine work");
    tcp.write_all(text.as_bytes()).await.expect("sockets of this machine work");
    tcp.shutdown().await.expect("sockets of this machine work");
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.expect("sockets of this machine work");
    answer
}

pub(crate) async fn client(port: StreamPort) -> UdpSocket {
    let client = UdpSocket::bind((HERE, 0)).await.expect("sockets of this machine work");
    client.connect((HERE, port.number)).await.expect("sockets of this machine work");
    client
}

pub(crate) async fn hear(client: &UdpSocket) -> String {
    let mut buffer = [0; 2048];
    let hearing = tokio::time::timeout(Duration::from_secs(10), client.recv(&mut buffer));
    let length = hearing.await.expect("an answer comes").expect("sockets of this machine work");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[tokio::test]
async fn endpoints_take_turns_and_one_that_refuses_is_passed_over() {
    let refused = SocketAddr::new(HERE, free(Transport::Tcp).number);
    let (a, b) = (tcp_upstream("a:").await, tcp_upstream("b:").await);
    let port = free(Transport::Tcp);
    let _streams = serving(port, leads_to(vec![a, refused, b]), StreamSettings::default());
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(ask(port, "x").await);
    }
    assert_eq!(heard, ["a:x", "b:x", "a:x", "b:x"]);
}

#[tokio::test]
async fn without_a_next_endpoint_a_refusal_ends_the_connection() {
    let refused = SocketAddr::new(HERE, free(Transport::Tcp).number);
    let port = free(Transport::Tcp);
    let settings = StreamSettings { next_endpoint: false, ..StreamSettings::default() };
    let upstream = tcp_upstream("a:").await;
    let _streams = serving(port, leads_to(vec![refused, upstream]), settings);
    let mut tcp =
        TcpStream::connect((HERE, port.number)).await.expect("sockets of this machine work");
    assert_eq!(tcp.read(&mut [0]).await.unwrap_or(0), 0);
    assert_eq!(ask(port, "x").await, "a:x");
}

#[tokio::test]
async fn a_proxy_header_is_taken_and_another_one_given() {
    let upstream = tcp_upstream("").await;
    let port = free(Transport::Tcp);
    let stream = Stream { takes_proxy: true, gives_proxy: true, ..leads_to(vec![upstream]) };
    let streams = serving(port, stream.clone(), StreamSettings::default());
    let header = "PROXY TCP4 203.0.113.9 198.51.100.1 4000 80\r\n";
    let heard = ask(port, &format!("{header}hello")).await;
    assert!(heard.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{heard}");
    assert!(heard.ends_with(&format!(" {}\r\nhello", port.number)), "{heard}");
    let mut tcp =
        TcpStream::connect((HERE, port.number)).await.expect("sockets of this machine work");
    tcp.write_all(b"hello\n").await.expect("sockets of this machine work");
    assert_eq!(tcp.read(&mut [0]).await.unwrap_or(0), 0, "without a header it is closed at once");
    // With enable-real-ip the announced address is that of the client.
    let mut next = configuration(vec![(port, stream)], StreamSettings::default());
    Arc::make_mut(&mut next.global).real_ip.enabled = true;
    streams.follow(&next);
    let heard = ask(port, &format!("{header}hello")).await;
    assert!(heard.starts_with("PROXY TCP4 203.0.113.9 127.0.0.1 4000 "), "{heard}");
}

#[tokio::test]
async fn what_changes_elsewhere_leaves_open_connections_and_ports_alone() {
    let (a, b) = (tcp_upstream("a:").await, tcp_upstream("b:").await);
    let (one, two) = (free(Transport::Tcp), free(Transport::Tcp));
    let settings = StreamSettings::default();
    let streams = serving(one, leads_to(vec![a]), settings);
    let mut open = reach(one).await;
    open.write_all(b"early").await.expect("sockets of this machine work");
    let both = vec![(one, leads_to(vec![b])), (two, leads_to(vec![b]))];
    streams.follow(&configuration(both, settings));
    assert_eq!((ask(one, "x").await, ask(two, "x").await), ("b:x".into(), "b:x".into()));
    streams.follow(&configuration(vec![(two, leads_to(vec![b]))], settings));
    let closed = async || TcpStream::connect((HERE, one.number)).await.is_err();
    while !closed().await {
        tokio::task::yield_now().await;
    }
    open.shutdown().await.expect("sockets of this machine work");
    let mut heard = String::new();
    open.read_to_string(&mut heard).await.expect("sockets of this machine work");
    assert_eq!(heard, "early", "the connection outlives its port");
    assert_eq!(ask(two, "x").await, "b:x");
}

#[tokio::test]
async fn a_port_that_somebody_has_is_left_alone_and_opened_later() {
    let upstream = tcp_upstream("a:").await;
    let taken = std::net::TcpListener::bind((HERE, 0)).expect("sockets of this machine work");
    let number = taken.local_addr().expect("sockets of this machine work").port();
    let port = StreamPort { transport: Transport::Tcp, number, address: None };
    let other = free(Transport::Tcp);
    let both = vec![(port, leads_to(vec![upstream])), (other, leads_to(vec![upstream]))];
    let both = configuration(both, StreamSettings::default());
    let streams = Streams::new(vec![HERE], 1, 64);
    streams.follow(&both);
    assert_eq!(ask(other, "x").await, "a:x");
    drop(taken);
    streams.follow(&both);
    assert_eq!(ask(port, "x").await, "a:x");
}

#[tokio::test]
async fn draining_waits_for_connections_and_opens_nothing_more() {
    let upstream = tcp_upstream("a:").await;
    let port = free(Transport::Tcp);
    let streams = Arc::new(serving(port, leads_to(vec![upstream]), StreamSettings::default()));
    let mut open = reach(port).await;
    open.write_all(b"x").await.expect("sockets of this machine work");
    let own = streams.clone();
    let draining = tokio::spawn(async move { own.drain(Duration::from_secs(60)).await });
    while TcpStream::connect((HERE, port.number)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    open.shutdown().await.expect("sockets of this machine work");
    let mut heard = String::new();
    open.read_to_string(&mut heard).await.expect("sockets of this machine work");
    assert_eq!(heard, "x");
    draining.await.expect("sockets of this machine work");
    let again = configuration(vec![(port, leads_to(vec![upstream]))], StreamSettings::default());
    streams.follow(&again);
    assert!(TcpStream::connect((HERE, port.number)).await.is_err());
}

#[tokio::test]
async fn a_quiet_connection_ends() {
    let upstream = tcp_upstream("a:").await;
    let port = free(Transport::Tcp);
    let settings = StreamSettings { idle: Duration::from_millis(50), ..StreamSettings::default() };
    let _streams = serving(port, leads_to(vec![upstream]), settings);
    let mut tcp = reach(port).await;
    tcp.write_all(b"x").await.expect("sockets of this machine work");
    assert_eq!(tcp.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn each_udp_session_has_its_turn_and_ends_with_its_answer() {
    let (a, b) = (udp_upstream("a:", 1).await, udp_upstream("b:", 1).await);
    let port = free(Transport::Udp);
    let _streams = serving(port, leads_to(vec![a, b]), StreamSettings::default());
    let client = client(port).await;
    let mut heard = Vec::new();
    for text in ["1", "2", "3"] {
        client.send(text.as_bytes()).await.expect("sockets of this machine work");
        heard.push(hear(&client).await);
    }
    // The session may end a moment after its answer was heard, so a turn may be missed, an answer never.
    let texts: Vec<&str> = heard.iter().map(|text| &text[2..]).collect();
    assert_eq!(texts, ["1", "2", "3"]);
    assert!(heard[0].starts_with("a:"));
}

#[tokio::test]
async fn a_udp_session_waits_for_as_many_answers_as_are_expected() {
    let upstream = udp_upstream("a:", 3).await;
    let port = free(Transport::Udp);
    let settings = StreamSettings { responses: 3, ..StreamSettings::default() };
    let _streams = serving(port, leads_to(vec![upstream]), settings);
    let (one, two) = (client(port).await, client(port).await);
    one.send(b"1").await.expect("sockets of this machine work");
    two.send(b"2").await.expect("sockets of this machine work");
    for _ in 0..3 {
        assert_eq!(hear(&one).await, "a:1");
        assert_eq!(hear(&two).await, "a:2");
    }
}

#[tokio::test]
async fn what_goes_through_a_port_is_counted_for_its_service() {
    let (tcp, udp) = (free(Transport::Tcp), free(Transport::Udp));
    let upstreams = (tcp_upstream("a:").await, udp_upstream("b:", 1).await);
    let to =
        |upstream, service: &str| Stream { service: service.into(), ..leads_to(vec![upstream]) };
    let streams = Streams::new(vec![HERE], 1, 64);
    let (first, second) = (to(upstreams.0, "demo/t:1"), to(upstreams.1, "demo/u:1"));
    let both = configuration(vec![(tcp, first), (udp, second.clone())], StreamSettings::default());
    streams.follow(&both);
    let mut open = reach(tcp).await;
    open.write_all(b"hello").await.expect("sockets of this machine work");
    open.shutdown().await.expect("sockets of this machine work");
    let mut echo = String::new();
    open.read_to_string(&mut echo).await.expect("sockets of this machine work");
    let client = client(udp).await;
    client.send(b"123").await.expect("sockets of this machine work");
    assert_eq!(hear(&client).await, "b:123");
    // Sessions end a moment after their client has heard all.
    let over = async {
        while streams.traffic().iter().any(|(_, _, traffic)| traffic.active > 0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), over).await.expect("both sessions end");
    let of =
        |port| streams.traffic().into_iter().find(|(one, ..)| *one == port).expect("it is open");
    let (_, service, traffic) = of(tcp);
    assert_eq!(
        (&*service, traffic.sessions, traffic.received, traffic.sent),
        ("demo/t:1", 1, 5, 7)
    );
    let (_, service, traffic) = of(udp);
    assert_eq!(
        (&*service, traffic.sessions, traffic.received, traffic.sent),
        ("demo/u:1", 1, 3, 5)
    );
    // Another service counts from 0, the one that stays goes on.
    let other = to(upstreams.0, "demo/other:1");
    streams.follow(&configuration(vec![(tcp, other), (udp, second)], StreamSettings::default()));
    assert_eq!((&*of(tcp).1, of(tcp).2.sessions, of(udp).2.sessions), ("demo/other:1", 0, 1));
}
