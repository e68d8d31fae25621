//! Places are shared by all namespaces: nobody has them all, and nothing goes round for ever.

use crate::services::{
    ask, client, configuration, free, hear, leads_to, reach, tcp_upstream, udp_upstream,
};
use model::{Stream, StreamPort, StreamSettings, Transport};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::{Memory, Streams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout;

const MOST: usize = 64;
/// What one namespace may have of connections, and of sessions of UDP: half of either.
const HALVES: [usize; 2] = [24, 8];
const PATIENCE: Duration = Duration::from_secs(30);

fn of(namespace: &str, endpoint: SocketAddr) -> Stream {
    Stream { namespace: namespace.into(), ..leads_to(vec![endpoint]) }
}

fn here(port: StreamPort) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port.number).into()
}

fn serving(all: Vec<(StreamPort, Stream)>) -> Streams {
    let streams = Streams::new(vec![Ipv4Addr::LOCALHOST.into()], 2, MOST);
    streams.follow(&configuration(all, StreamSettings::default()));
    streams
}

#[tokio::test]
async fn a_service_that_leads_to_its_own_port_takes_few_places_and_ends() {
    let (own, other) = (free(Transport::Tcp), free(Transport::Tcp));
    let honest = tcp_upstream("a:").await;
    let streams = serving(vec![(own, of("bad", here(own))), (other, of("good", honest))]);
    let mut round = TcpStream::connect(here(own)).await.expect("it is open");
    let ended = timeout(PATIENCE, round.read(&mut [0])).await.expect("it does not go round");
    assert_eq!(ended.unwrap_or(0), 0);
    assert_eq!(timeout(PATIENCE, ask(other, "x")).await.expect("it is served"), "a:x");
    let most = streams.traffic().iter().map(|(_, _, traffic)| traffic.active).max();
    assert!(most < Some(MOST as u64 / 4), "{most:?}");
    // It came back five times, and once more to be told so.
    let times = streams.traffic().iter().map(|(_, _, traffic)| traffic.sessions).max();
    assert!(times <= Some(7), "{times:?}");
}

#[tokio::test]
async fn a_namespace_leaves_half_of_the_connections_to_others() {
    let (own, other) = (free(Transport::Tcp), free(Transport::Tcp));
    let honest = tcp_upstream("a:").await;
    let _streams = serving(vec![(own, of("bad", honest)), (other, of("good", honest))]);
    let mut many = Vec::new();
    for _ in 0..MOST {
        many.push(TcpStream::connect(here(own)).await.expect("the system queues it"));
    }
    assert_eq!(timeout(PATIENCE, ask(other, "x")).await.expect("it is served"), "a:x");
}

#[tokio::test]
async fn datagrams_that_nobody_answers_take_nothing_from_others() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let silent = silent.local_addr().map(|address| (address, silent)).expect("its address");
    let (own, udp, tcp) = (free(Transport::Udp), free(Transport::Udp), free(Transport::Tcp));
    let honest = (udp_upstream("u:", 1).await, tcp_upstream("a:").await);
    let _streams = serving(vec![
        (own, of("bad", silent.0)),
        (udp, of("good", honest.0)),
        (tcp, of("good", honest.1)),
    ]);
    for _ in 0..200 {
        client(own).await.send(b"x").await.expect("it is sent");
    }
    assert_eq!(timeout(PATIENCE, ask(tcp, "x")).await.expect("it is served"), "a:x");
    let asking = client(udp).await;
    asking.send(b"1").await.expect("it is sent");
    assert_eq!(timeout(PATIENCE, hear(&asking)).await.expect("it is served"), "u:1");
}

#[tokio::test]
async fn a_datagram_that_leads_to_its_own_port_takes_few_places() {
    let (own, udp) = (free(Transport::Udp), free(Transport::Udp));
    let honest = udp_upstream("u:", 1).await;
    let streams = serving(vec![(own, of("bad", here(own))), (udp, of("good", honest))]);
    client(own).await.send(b"x").await.expect("it is sent");
    let asking = client(udp).await;
    asking.send(b"1").await.expect("it is sent");
    assert_eq!(timeout(PATIENCE, hear(&asking)).await.expect("it is served"), "u:1");
    let taken = streams.traffic().iter().map(|(_, _, traffic)| traffic.active).max();
    assert!(taken <= Some(6), "{taken:?}");
}

/// Waits until what is told of places of connections (0) or sessions of UDP (1) is so.
async fn until(streams: &Streams, which: usize, is: impl Fn((usize, usize, u64)) -> bool) {
    let so = async {
        while !is(streams.places()[which]) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, so).await.expect("it becomes so");
}

/// Answers each datagram with itself but for `q`.
async fn choosy() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let address = socket.local_addr().expect("its address");
    tokio::spawn(async move {
        let mut buffer = [0; 16];
        while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
            if &buffer[..length] != b"q" {
                socket.send_to(&buffer[..length], client).await.expect("it is sent");
            }
        }
    });
    address
}

/// Datagrams from as many clients that are not answered, more than there are places for.
async fn flood(port: StreamPort) -> Vec<UdpSocket> {
    let mut clients = Vec::new();
    for _ in 0..20 {
        let client = client(port).await;
        client.send(b"q").await.expect("it is sent");
        clients.push(client);
    }
    clients
}

async fn is_answered(port: StreamPort) {
    let asking = client(port).await;
    asking.send(b"1").await.expect("it is sent");
    assert_eq!(timeout(PATIENCE, hear(&asking)).await.expect("it is served"), "1");
}

#[tokio::test]
async fn datagrams_to_two_namespaces_leave_a_third_one_its_answers() {
    let [one, two, three] = [0; 3].map(|_| free(Transport::Udp));
    let to = choosy().await;
    let all = vec![(one, of("one", to)), (two, of("two", to)), (three, of("three", to))];
    let streams = serving(all);
    let _clients = (flood(one).await, flood(two).await);
    until(&streams, 1, |(taken, most, _)| taken == most && most == 2 * HALVES[1]).await;
    for _ in 0..20 {
        is_answered(three).await;
    }
}

#[tokio::test]
async fn datagrams_to_one_port_leave_another_one_of_the_same_namespace_its_answers() {
    let [one, two] = [0; 2].map(|_| free(Transport::Udp));
    let to = choosy().await;
    let streams = serving(vec![(one, of("one", to)), (two, of("one", to))]);
    let _clients = flood(one).await;
    until(&streams, 1, |(taken, ..)| taken == HALVES[1]).await;
    for _ in 0..20 {
        is_answered(two).await;
    }
}

/// Datagrams to a port without a pause, each from another client than those that have places, until this is dropped.
struct Flood(Arc<AtomicBool>);

impl Flood {
    fn begin(port: StreamPort, clients: usize) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let until = ends.clone();
        let client = |_| std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let clients: Vec<_> = (0..clients).map(client).collect();
        std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                for client in &clients {
                    // What finds no room in the system is gone, as on the way.
                    let _ = client.send_to(b"q", here(port));
                }
            }
        });
        Self(ends)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn while_new_clients_flood_one_port_each_datagram_of_another_namespace_is_answered() {
    const TIMES: usize = 50;
    const PLACES: usize = 1024;
    let [flooded, quiet] = [0; 2].map(|_| free(Transport::Udp));
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let silent = silent.local_addr().map(|address| (address, silent)).expect("its address");
    let streams = Streams::new(vec![Ipv4Addr::LOCALHOST.into()], 1, PLACES);
    let all = vec![(flooded, of("bad", silent.0)), (quiet, of("good", choosy().await))];
    streams.follow(&configuration(all, StreamSettings::default()));
    let begun = || {
        let all = streams.traffic();
        let of = all.iter().find(|(port, ..)| *port == flooded);
        of.map(|(_, _, traffic)| traffic.sessions).unwrap_or_default()
    };
    // More clients than have places: an eighth of all.
    let _flood = Flood::begin(flooded, PLACES / 4);
    until(&streams, 1, |_| begun() > PLACES as u64).await;
    let mut meanwhile = Vec::new();
    for _ in 0..TIMES {
        let before = begun();
        is_answered(quiet).await;
        meanwhile.push(begun() - before);
    }
    meanwhile.sort_unstable();
    // It is 8 where ports take turns, and was 330.
    assert!(meanwhile[TIMES / 2] < 100, "{meanwhile:?}");
}

#[tokio::test]
async fn sessions_that_have_ended_are_forgotten_and_no_datagram_is_lost_for_them() {
    let port = free(Transport::Udp);
    let streams = serving(vec![(port, of("one", choosy().await))]);
    for _ in 0..50 {
        is_answered(port).await;
    }
    until(&streams, 1, |(taken, ..)| taken == 0).await;
    let clients = flood(port).await;
    let beyond = (clients.len() - HALVES[1]) as u64;
    until(&streams, 1, |(taken, _, lost)| taken == HALVES[1] && lost == beyond).await;
    is_answered(port).await;
}

#[tokio::test]
async fn silent_connections_of_one_address_leave_a_third_namespace_its_places() {
    let [one, two, three] = [0; 3].map(|_| free(Transport::Tcp));
    let to = tcp_upstream("a:").await;
    let all = vec![(one, of("one", to)), (two, of("two", to)), (three, of("three", to))];
    let streams = serving(all);
    let mut many = Vec::new();
    for port in [one, two].repeat(MOST) {
        many.push(TcpStream::connect(here(port)).await.expect("the system queues it"));
    }
    until(&streams, 0, |(taken, most, _)| taken == most && most == 2 * HALVES[0]).await;
    for _ in 0..20 {
        assert_eq!(timeout(PATIENCE, ask(three, "x")).await.expect("it is served"), "a:x");
    }
}

#[tokio::test]
async fn an_address_that_holds_most_makes_way_for_others_however_busy_it_is() {
    let port = free(Transport::Tcp);
    let streams = serving(vec![(port, of("one", tcp_upstream("a:").await))]);
    let mut many = Vec::new();
    for _ in 0..HALVES[0] {
        let mut one = reach(port).await;
        one.write_all(b"x").await.expect("it is open");
        many.push(one);
    }
    until(&streams, 0, |(taken, ..)| taken == HALVES[0]).await;
    let mut others = Vec::new();
    for _ in 0..5 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).expect("an address of this machine");
        let mut other = socket.connect(here(port)).await.expect("it is open");
        let mut name = [0; 2];
        timeout(PATIENCE, other.read_exact(&mut name)).await.expect("in time").expect("a name");
        others.push(other);
    }
    assert_eq!(streams.places()[0], (HALVES[0], 2 * HALVES[0], 5));
    for mut other in others {
        other.shutdown().await.expect("it has its place still");
        assert_eq!(timeout(PATIENCE, other.read(&mut [0])).await.expect("in time").ok(), Some(0));
    }
}

#[tokio::test]
async fn connections_of_one_address_that_say_nothing_go_before_one_that_has_spoken() {
    let port = free(Transport::Tcp);
    let streams = serving(vec![(port, of("one", tcp_upstream("a:").await))]);
    let mut spoken = reach(port).await;
    spoken.write_all(b"x").await.expect("it is open");
    let received = || streams.traffic().iter().map(|(_, _, traffic)| traffic.received).sum::<u64>();
    until(&streams, 0, |_| received() == 1).await;
    let mut silent = Vec::new();
    for _ in 0..MOST {
        silent.push(TcpStream::connect(here(port)).await.expect("the system queues it"));
    }
    until(&streams, 0, |(.., lost)| lost == (1 + MOST - HALVES[0]) as u64).await;
    spoken.shutdown().await.expect("it is open");
    let mut heard = String::new();
    timeout(PATIENCE, spoken.read_to_string(&mut heard))
        .await
        .expect("in time")
        .expect("it is open");
    assert_eq!(heard, "x");
}

/// Says something for as long as the other side takes any of it.
async fn say_all(tcp: &mut TcpStream) {
    let piece = [7; 64 << 10];
    while timeout(Duration::from_millis(200), tcp.write_all(&piece)).await.is_ok() {}
}

/// How a connection ends of which nothing was taken.
async fn end_of(tcp: &mut TcpStream) -> Option<ErrorKind> {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, tcp.read_to_end(&mut rest)).await.expect("it ends");
    read.err().map(|error| error.kind())
}

#[tokio::test]
async fn where_memory_is_short_nothing_stays_in_the_system_for_a_side_that_takes_nothing() {
    for speaks in ["client", "endpoint"] {
        let endpoint = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = free(Transport::Tcp);
        let at = endpoint.local_addr().expect("bound");
        let streams = serving(vec![(port, of("one", at))]);
        let mut client = TcpStream::connect(here(port)).await.expect("it is open");
        let (mut endpoint, _) = endpoint.accept().await.expect("a connection");
        let (speaker, silent) = match speaks {
            "client" => (&mut client, &mut endpoint),
            _ => (&mut endpoint, &mut client),
        };
        say_all(speaker).await;
        streams.press(Memory::Gone(1));
        until(&streams, 0, |(taken, ..)| taken == 0).await;
        let ended = end_of(silent).await;
        assert_eq!(ended, Some(ErrorKind::ConnectionReset), "what the {speaks} said");
    }
}
