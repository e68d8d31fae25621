//! The listeners that the ConfigMap asks for, over real sockets.

mod bed;

use bed::{apply, idle};
use model::{Configuration, Global, Listeners};
use proxy::Native;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(60);
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

#[tokio::test]
async fn clients_that_never_finish_their_handshake_take_no_place_for_long() {
    let native = idle(vec![ONE.into()]);
    let few = configuration(vec![ONE.into()], 1, 8);
    apply(&native, &Configuration::default(), &few).await;
    let port = native.listening().https_port;
    let mut silent = Vec::new();
    let given_back = async {
        // They count, whatever the port: once they are accepted there is no place left.
        while answer(&native, ONE).await.is_some() {
            silent.push(TcpStream::connect((ONE, port)).await.expect("listening"));
        }
        while answer(&native, ONE).await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(HANDSHAKE / 2, given_back).await.expect("long before their time is over");
}
