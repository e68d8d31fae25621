//! What tests of the engine need: a Configuration with one host, an engine, upstreams and a client over real sockets.
#![allow(dead_code, reason = "not every test needs all of it")]

use engine::Engine;
use model::policy::Policy;
use model::{
    Backend, Changes, Configuration, Endpoints, Location, PathKind, Server, ServerName, Upstream,
    UpstreamId,
};
use proxy::{Listen, Native, OtlpEnvironment};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};

/// The upstream of the host.
pub const MAIN: &str = "demo-echo-80";

/// Host `a.test` with this policy, and the upstreams by name.
pub fn configuration(upstreams: &[(&str, Vec<SocketAddr>)], policy: Policy) -> Configuration {
    let location = Location {
        path: "/".to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend: Backend::Upstream(UpstreamId::new(MAIN)),
        canary: None,
        service: None,
        origin: None,
        policy: Arc::new(policy),
    };
    let name = ServerName::new("a.test");
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    let mut configuration = Configuration::default();
    configuration.servers.insert(name, Arc::new(server));
    for (id, endpoints) in upstreams {
        let id = UpstreamId::new(*id);
        let endpoints = Arc::new(Endpoints { ready: endpoints.clone(), draining: Vec::new() });
        let upstream = Upstream { id: id.clone(), endpoints, external: None };
        configuration.upstreams.insert(id, Arc::new(upstream));
    }
    configuration
}

/// An engine of one thread that serves a Configuration.
pub async fn start(configuration: &Configuration) -> Arc<Native> {
    start_in(OtlpEnvironment::default(), configuration).await
}

/// The same in another environment.
pub async fn start_in(environment: OtlpEnvironment, configuration: &Configuration) -> Arc<Native> {
    let listen = Listen {
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        http_port: 0,
        https_port: 0,
        health_path: "/healthz".to_owned(),
        trace_secret: None,
    };
    let native = Arc::new(Native::start(&listen, 1, 1000).expect("ports chosen by the system"));
    native.locate_collector(environment);
    let changes = Changes::between(&Configuration::default(), configuration);
    native.apply(configuration, &changes).await.expect("a valid configuration");
    native
}

/// Sends a request that asks for the end of the connection, and reads to it.
pub async fn talk(native: &Native, request: &[u8]) -> String {
    let address = (Ipv4Addr::LOCALHOST, native.listening().http_port);
    let mut tcp = TcpStream::connect(address).await.expect("listening");
    tcp.write_all(request).await.expect("written");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), tcp.read_to_end(&mut answer)).await;
    let _ = read.expect("an end of the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Takes connections one after the other: reads until `is_whole` says so, answers, closes. What was read goes to the
/// channel.
pub async fn upstream(
    answer: Vec<u8>,
    is_whole: fn(&[u8]) -> bool,
) -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (seen, seeing) = channel(100);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut read = Vec::new();
            while !is_whole(&read) && matches!(tcp.read_buf(&mut read).await, Ok(1..)) {}
            let _ = tcp.write_all(&answer).await;
            let _ = seen.send(read).await;
        }
    });
    (address, seeing)
}

/// Whether an HTTP/1 message is whole, with Content-Length where it has a body.
pub fn is_whole(message: &[u8]) -> bool {
    let text = String::from_utf8_lossy(message);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// An HTTP/1 answer.
pub fn answer(status: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{fields}\r\n{body}").into_bytes()
}
