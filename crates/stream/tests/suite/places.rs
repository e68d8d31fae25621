//! Places are shared by all namespaces: nobody has them all, and nothing goes round for ever.

use crate::services::{
    ask, client, configuration, free, hear, leads_to, tcp_upstream, udp_upstream,
};
use model::{Stream, StreamPort, StreamSettings, Transport};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use stream::Streams;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

const MOST: usize = 64;
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
