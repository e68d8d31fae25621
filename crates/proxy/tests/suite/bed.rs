//! What tests of the engine need: a Configuration with one host, an engine, upstreams and a client over real sockets.

use engine::Engine;
use model::policy::{
    AuthExternal, ClientCertificate, ClientDemand, ClientErrorPage, ClientVerification, Policy,
};
use model::{
    Backend, Changes, Configuration, Endpoints, Global, Location, Outside, PathKind, RouteHost,
    RouteKey, Rule, RuleMatch, Scheme, Server, ServerName, Share, Template, Upstream, UpstreamId,
    Url,
};
use proxy::{Listen, Native, Options};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use testkit::certificates::Certificates;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The upstream of the host.
pub(crate) const MAIN: &str = "demo-echo-80";

/// Host `a.test` with this policy, and the upstreams by name.
pub(crate) fn configuration(
    upstreams: &[(&str, Vec<SocketAddr>)],
    policy: Policy,
) -> Configuration {
    let mut configuration = Configuration::default();
    for (id, endpoints) in upstreams {
        put_upstream(&mut configuration, id, endpoints.clone());
    }
    put_host(&mut configuration, "a.test", &UpstreamId::new(MAIN), policy);
    configuration
}

/// What asks clients for a certificate of the shared authority, and what who shows no good one gets.
pub(crate) fn asks(demand: ClientDemand, error_page: ClientErrorPage) -> Option<ClientCertificate> {
    let shown = Certificates::shared();
    let authority = &shown.get("ca").expect("an authority").certificate;
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate");
    Some(ClientCertificate::Verified(Arc::new(ClientVerification {
        secret: "demo/clients".to_owned(),
        authorities: [authority.to_vec().into()].into(),
        revocations: [].into(),
        demand,
        depth: 1,
        subject: None,
        error_page,
        pass_certificate: false,
    })))
}

/// Has a host of a Gateway lead to an upstream, whatever its path.
pub(crate) fn put_route(
    configuration: &mut Configuration,
    host: &str,
    to: UpstreamId,
    policy: Arc<Policy>,
) {
    let matches = RuleMatch {
        scheme: Scheme::Http,
        kind: PathKind::Prefix,
        path: "/".to_owned(),
        pattern: None,
        grpc: None,
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
    };
    let shares = vec![Share { weight: 1, location: 0 }];
    let host = RouteHost {
        name: ServerName::new(host),
        certificate: None,
        named: false,
        not_shown_to: None,
        rules: vec![Rule { matches: Arc::new(matches), others: None, shares }],
        tiers: Vec::new(),
        locations: vec![Arc::new(location("/", Backend::Upstream(to), policy))],
    };
    let key = RouteKey { listener: None, host: host.name.clone() };
    configuration.routes.insert(key, Arc::new(host));
}

/// The same without a policy, with these settings.
pub(crate) fn with_global(endpoint: SocketAddr, global: Global) -> Configuration {
    let global = Arc::new(global);
    Configuration { global, ..configuration(&[(MAIN, vec![endpoint])], Policy::default()) }
}

/// An upstream with these endpoints.
pub(crate) fn put_upstream(
    configuration: &mut Configuration,
    id: &str,
    ready: Vec<SocketAddr>,
) -> UpstreamId {
    let id = UpstreamId::new(id);
    let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
    let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
    configuration.upstreams.insert(id.clone(), Arc::new(upstream));
    id
}

/// A host with this policy, in front of the upstream `id`.
pub(crate) fn put_host(
    configuration: &mut Configuration,
    name: &str,
    id: &UpstreamId,
    policy: Policy,
) {
    let name = ServerName::new(name);
    let location = location("/", Backend::Upstream(id.clone()), Arc::new(policy));
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    configuration.servers.insert(name, Arc::new(server));
}

/// All paths below `path`.
pub(crate) fn location(path: &str, backend: Backend, policy: Arc<Policy>) -> Location {
    Location {
        path: path.to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend,
        canary: None,
        service: None,
        origin: None,
        policy,
    }
}

/// An authenticator of this host behind an upstream, asked for this target: it says no more than who may pass.
pub(crate) fn authenticator(host: &str, target: Template, upstream: UpstreamId) -> AuthExternal {
    let authority = Template::parse(host).expect("no variables").into();
    AuthExternal {
        url: Url { secure: false, authority, target: target.into(), upstream: Some(upstream) },
        method: None,
        sign_in: None,
        response_headers: Vec::new(),
        request_headers: Vec::new(),
        request_redirect: None,
        always_set_cookie: false,
        cache: None,
        snippet: None,
    }
}

/// An engine of one thread that serves a Configuration.
pub(crate) async fn start(configuration: &Configuration) -> Arc<Native> {
    let native = Arc::new(idle(vec![Ipv4Addr::LOCALHOST.into()]));
    apply(&native, &Configuration::default(), configuration).await;
    native
}

/// An engine of one thread that serves nothing yet.
pub(crate) fn idle(addresses: Vec<IpAddr>) -> Native {
    Native::start(options(addresses)).expect("ports chosen by the system")
}

/// What an engine of one thread is told, with ports chosen by the system.
pub(crate) fn options(addresses: Vec<IpAddr>) -> Options {
    Options::new(Listen {
        addresses,
        http_port: 0,
        https_port: 0,
        health_path: "/healthz".to_owned(),
        trace_secret: None,
        outside: Outside::anywhere(),
    })
}

/// Lets the engine follow from one Configuration to the next.
pub(crate) async fn apply(native: &Native, before: &Configuration, next: &Configuration) {
    let changes = Changes::between(before, next);
    native.apply(next, &changes).await.expect("a valid configuration");
}

/// A connection to the plain port.
pub(crate) async fn connect(native: &Native) -> TcpStream {
    let address = (Ipv4Addr::LOCALHOST, native.listening().http_port);
    TcpStream::connect(address).await.expect("listening")
}

/// Sends a request that asks for the end of the connection, and reads to it.
pub(crate) async fn talk(native: &Native, request: &[u8]) -> String {
    let mut tcp = connect(native).await;
    tcp.write_all(request).await.expect("written");
    read_to_end(&mut tcp).await
}

/// What comes until the connection ends.
pub(crate) async fn read_to_end(tcp: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut answer)).await;
    let _ = read.expect("an end of the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// What comes up to this, and nothing beyond it.
pub(crate) async fn read_until(tcp: &mut TcpStream, end: &str) -> String {
    let mut read = String::new();
    while !read.ends_with(end) {
        read.push_str(&read_exactly(tcp, 1).await);
    }
    read
}

/// So many bytes.
pub(crate) async fn read_exactly(tcp: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    let read = tokio::time::timeout(PATIENCE, tcp.read_exact(&mut bytes)).await;
    read.expect("in time").expect("so many bytes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes of which no two places look the same.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect()
}

/// Takes connections, each of which is served beside the others.
pub(crate) async fn serving<S: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> S + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve(tcp));
        }
    });
    address
}

/// Takes connections one after the other: reads until `is_whole` says so, answers, closes. What was read goes to the
/// channel.
pub(crate) async fn upstream(
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

/// An upstream that answers with its name after so long.
pub(crate) async fn named(name: &'static str, status: u16, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::new();
                while !is_whole(&read) && matches!(tcp.read_buf(&mut read).await, Ok(1..)) {}
                #[expect(
                    clippy::disallowed_methods,
                    reason = "an endpoint that is slow on purpose"
                )]
                tokio::time::sleep(delay).await;
                let answer = answer(&format!("{status} X"), "Connection: close\r\n", name);
                let _ = tcp.write_all(&answer).await;
            });
        }
    });
    address
}

/// An address where nobody listens, as long as the socket is kept: a port that was given back is another test's soon.
pub(crate) fn nobody() -> (SocketAddr, TcpSocket) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    (socket.local_addr().expect("bound"), socket)
}

/// Gives `answer` to every request of every connection; what was read goes to the channel.
pub(crate) async fn answering(answer: &'static [u8]) -> (SocketAddr, Receiver<String>) {
    let (seen, seeing) = channel(100);
    let serve = move |mut tcp: TcpStream| {
        let seen = seen.clone();
        async move {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = tcp.read(&mut buffer).await {
                let _ = seen.send(String::from_utf8_lossy(&buffer[..count]).into_owned()).await;
                let _ = tcp.write_all(answer).await;
            }
        }
    };
    (serving(serve).await, seeing)
}

/// Whether an HTTP/1 message is whole, with Content-Length where it has a body.
pub(crate) fn is_whole(message: &[u8]) -> bool {
    let text = String::from_utf8_lossy(message);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// An HTTP/1 answer.
pub(crate) fn answer(status: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{fields}\r\n{body}").into_bytes()
}
