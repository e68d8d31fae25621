//! Passwords and authenticators over real sockets: digest from challenge to answer, slow hashes beside other requests.

use engine::Engine;
use md5::{Digest, Md5};
use model::policy::{AuthBasic, AuthExternal, AuthScheme, Password, Policy, Users};
use model::{
    Backend, Changes, Configuration, Endpoints, Location, PathKind, Server, ServerName, Template,
    Upstream, UpstreamId, Url,
};
use proxy::{Listen, Native};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An upstream that gives `answer` to every request, and what it read.
async fn upstream(answer: &'static [u8]) -> (SocketAddr, tokio::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (seen, seeing) = tokio::sync::mpsc::channel(100);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let seen = seen.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(count @ 1..) = tcp.read(&mut buffer).await {
                    let _ = seen.send(String::from_utf8_lossy(&buffer[..count]).into_owned()).await;
                    let _ = tcp.write_all(answer).await;
                }
            });
        }
    });
    (address, seeing)
}

fn add(configuration: &mut Configuration, name: &str, endpoint: SocketAddr) -> UpstreamId {
    let id = UpstreamId::new(name);
    let endpoints = Arc::new(Endpoints { ready: vec![endpoint], draining: Vec::new() });
    let upstream = Upstream { id: id.clone(), endpoints, external: None };
    configuration.upstreams.insert(id.clone(), Arc::new(upstream));
    id
}

/// A host with this policy, in front of the upstream `id`.
fn host(configuration: &mut Configuration, name: &str, id: &UpstreamId, policy: Policy) {
    let location = Location {
        path: "/".to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend: Backend::Upstream(id.clone()),
        canary: None,
        service: None,
        origin: None,
        policy: Arc::new(policy),
    };
    let name = ServerName::new(name);
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    configuration.servers.insert(name, Arc::new(server));
}

async fn start(configuration: &Configuration) -> Arc<Native> {
    let listen = Listen {
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        http_port: 0,
        https_port: 0,
        health_path: "/healthz".to_owned(),
        trace_secret: None,
    };
    let native = Arc::new(Native::start(&listen, 1, 1000).expect("ports chosen by the system"));
    let changes = Changes::between(&Configuration::default(), configuration);
    native.apply(configuration, &changes).await.expect("a valid configuration");
    native
}

/// Sends a GET with these fields; the whole answer.
async fn get(native: &Native, host: &str, fields: &str) -> String {
    let port = native.listening().http_port;
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("listening");
    let request =
        format!("GET /x?y=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n");
    tcp.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), tcp.read_to_end(&mut answer)).await;
    read.expect("in time").expect("read");
    String::from_utf8_lossy(&answer).into_owned()
}

fn password(scheme: AuthScheme, known: Password) -> Policy {
    let users = Arc::new(Users([(b"alice".as_slice().into(), known)].into()));
    Policy {
        auth_basic: Some(AuthBasic { scheme, realm: "R".to_owned(), users }),
        ..Policy::default()
    }
}

const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn hex(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest_answer(number: &str, count: &str) -> String {
    let secret = hex("alice:R:wonder");
    let response = hex(&format!("{secret}:{number}:{count}:c:auth:{}", hex("GET:/x?y=1")));
    format!(
        "Authorization: Digest username=\"alice\", realm=\"R\", nonce=\"{number}\", uri=\"/x?y=1\", qop=auth, \
         nc={count}, cnonce=\"c\", response=\"{response}\"\r\n"
    )
}

#[tokio::test]
async fn a_digest_is_right_once_for_each_count() {
    let (address, mut seen) = upstream(PLAIN).await;
    let mut configuration = Configuration::default();
    let id = add(&mut configuration, "echo", address);
    let known = Password::Digest(Md5::digest("alice:R:wonder").into());
    host(&mut configuration, "a.test", &id, password(AuthScheme::Digest, known));
    let native = start(&configuration).await;

    let challenge = get(&native, "a.test", "").await;
    let (_, number) = challenge.split_once("nonce=\"").expect("a challenge");
    let (number, _) = number.split_once('"').expect("a number");
    let right = get(&native, "a.test", &digest_answer(number, "00000001")).await;
    assert!(
        right.starts_with("HTTP/1.1 200") && right.contains("Authentication-Info: qop=\"auth\"")
    );
    let request = seen.recv().await.expect("the upstream was asked").to_ascii_lowercase();
    assert!(!request.contains("authorization"), "{request}");
    let again = get(&native, "a.test", &digest_answer(number, "00000001")).await;
    assert!(again.starts_with("HTTP/1.1 401") && again.contains("nonce="), "{again}");
    assert!(!again.contains("stale"), "{again}");
    let next = get(&native, "a.test", &digest_answer(number, "00000002")).await;
    assert!(next.starts_with("HTTP/1.1 200"), "{next}");
    let far = get(&native, "a.test", &digest_answer(number, "00000020")).await;
    assert!(far.contains("stale=\"true\""), "{far}");
}

#[tokio::test]
async fn a_slow_hash_keeps_no_other_request_waiting() {
    let (address, _seen) = upstream(PLAIN).await;
    let mut configuration = Configuration::default();
    let id = add(&mut configuration, "echo", address);
    let hash = "$2b$09$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
    let slow = password(AuthScheme::Basic, Password::Bcrypt(hash.into()));
    host(&mut configuration, "slow.test", &id, slow);
    host(&mut configuration, "open.test", &id, Policy::default());
    let native = start(&configuration).await;

    let waiting = get(&native, "slow.test", "Authorization: Basic YWxpY2U6d29uZGVy\r\n");
    let mut waiting = std::pin::pin!(waiting);
    tokio::select! {
        biased;
        answer = &mut waiting => panic!("the hash of 512 rounds was computed at once: {answer}"),
        open = async {
            let mut last = String::new();
            for _ in 0..3 {
                last = get(&native, "open.test", "").await;
            }
            last
        } => assert!(open.starts_with("HTTP/1.1 200"), "{open}"),
    }
    let answer = waiting.await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn an_authenticator_that_is_gone_or_answers_nonsense_lets_nobody_in() {
    let (address, mut seen) = upstream(PLAIN).await;
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let nobody = gone.local_addr().expect("bound");
    drop(gone);
    let (nonsense, _asked) = upstream(b"SSH-2.0-OpenSSH\r\n\r\n").await;
    let mut configuration = Configuration::default();
    let id = add(&mut configuration, "echo", address);
    for (name, endpoint) in [("gone.test", nobody), ("nonsense.test", nonsense)] {
        let authenticator = AuthExternal {
            url: Url {
                secure: false,
                authority: Template::parse("auth").expect("no variables"),
                target: Template::default(),
                upstream: Some(add(&mut configuration, name, endpoint)),
            },
            method: None,
            sign_in: None,
            response_headers: Vec::new(),
            request_headers: Vec::new(),
            request_redirect: None,
            always_set_cookie: false,
            cache: None,
        };
        let policy = Policy { auth_external: Some(authenticator), ..Policy::default() };
        host(&mut configuration, name, &id, policy);
    }
    let native = start(&configuration).await;
    for name in ["gone.test", "nonsense.test"] {
        let answer = get(&native, name, "").await;
        assert!(answer.starts_with("HTTP/1.1 500"), "{name}: {answer}");
    }
    assert!(seen.try_recv().is_err(), "nothing reaches the application");
}
