//! What nginx refuses is told once, not at everybody's next change: `push::Pusher` against one that counts.

use model::policy::RawGlobal;
use model::{
    Certificate, CertificateId, Configuration, Endpoints, Global, PrivateKey, Server, ServerName,
    Upstream, UpstreamId,
};
use nginx::push::{Control, General, Pusher, Told, Wish};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Takes all but what has `bad` in its name, and `large` where there is no room.
#[derive(Default)]
struct Fake {
    generation: AtomicUsize,
    pushes: AtomicUsize,
    has_room: AtomicBool,
}

impl Fake {
    fn start() -> (Arc<Self>, Pusher, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("control.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let fake = Arc::new(Self { generation: AtomicUsize::new(1), ..Self::default() });
        let own = fake.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                own.answer(stream);
            }
        });
        let control = Control { socket, secret: String::new() };
        (fake, Pusher::new(control, certificate("fallback")), folder)
    }

    fn answer(&self, mut stream: UnixStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).expect("a line");
        }
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { chunked(&mut reader) } else { String::new() };
        let is_push = !head.starts_with("GET");
        self.pushes.fetch_add(is_push.into(), Ordering::SeqCst);
        let status = match () {
            () if body.contains("bad") => "400 Bad Request",
            () if body.contains("large") && !self.has_room.load(Ordering::SeqCst) => {
                "507 Insufficient Storage"
            }
            () => "200 OK",
        };
        let is_taken = is_push && status == "200 OK";
        let generation = self.generation.fetch_add(is_taken.into(), Ordering::SeqCst);
        let generation = generation + usize::from(is_taken);
        write!(
            stream,
            "HTTP/1.1 {status}\r\nX-Generation: {generation}\r\nContent-Length: 0\r\n\r\n"
        )
        .expect("it is read");
    }

    /// What is told of this, and how many requests that took.
    async fn settle(&self, pusher: &Pusher, next: &Configuration) -> (Told, usize) {
        let before = self.pushes.load(Ordering::SeqCst);
        let wish = Wish { now: next, all: next, resolved: &BTreeMap::new() };
        let general = General { http_redirect_code: 308, enable_ocsp: false, metrics: None };
        let told = pusher.settle(wish, general).await.expect("it is taken");
        (told, self.pushes.load(Ordering::SeqCst) - before)
    }
}

/// A body, which comes in pieces.
fn chunked(reader: &mut impl BufRead) -> String {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).expect("a line");
        let size = usize::from_str_radix(size.trim(), 16).expect("a number");
        let at = body.len();
        body.resize(at + size + 2, 0);
        reader.read_exact(&mut body[at..]).expect("a piece");
        body.truncate(at + size);
        if size == 0 {
            return String::from_utf8(body).expect("JSON");
        }
    }
}

fn certificate(id: &str) -> Arc<Certificate> {
    Arc::new(Certificate {
        id: CertificateId::new(id),
        chain: vec![vec![0x30; 400]],
        key: PrivateKey(vec![0x30; 40]),
        names: Vec::new().into(),
        not_after: i64::MAX,
    })
}

fn put(next: &mut Configuration, name: &str, endpoints: u16) {
    put_of(next, name.split('-').next().unwrap_or_default(), name, endpoints);
}

fn put_of(next: &mut Configuration, namespace: &str, name: &str, endpoints: u16) {
    let ready = (1..=endpoints).map(|port| SocketAddr::from(([10, 0, 0, 1], port))).collect();
    let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
    let id = UpstreamId::new(name);
    let namespace = namespace.into();
    let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace };
    next.upstreams.insert(id, Arc::new(upstream));
}

/// Hosts with certificates of namespace `bad`.
fn put_certificates(next: &mut Configuration, count: usize) {
    for number in 0..count {
        let certificate = certificate(&format!("bad/{number}"));
        let mut server = Server::new(ServerName::new(format!("host-{number}.test")));
        server.certificate = Some(certificate.id.clone());
        next.certificates.insert(certificate.id.clone(), certificate);
        next.servers.insert(server.name.clone(), Arc::new(server));
    }
}

#[tokio::test]
async fn what_nginx_refuses_is_told_once_and_everybody_else_s_changes_take_one_request() {
    let (fake, pusher, _folder) = Fake::start();
    let mut next = Configuration::default();
    put_certificates(&mut next, 150);
    put(&mut next, "good-80", 1);
    let mut took = Vec::new();
    // Of many it looks for some at each change, and then for none.
    while took.last() != Some(&0) {
        let (told, requests) = fake.settle(&pusher, &next).await;
        assert_eq!(told.problems.len(), 150);
        took.push(requests);
        assert!(took.len() < 8, "{took:?}");
    }
    put(&mut next, "good-80", 2);
    let (told, requests) = fake.settle(&pusher, &next).await;
    assert_eq!((told.problems.len(), requests), (150, 1));
    pusher.forget().await;
    let (told, requests) = fake.settle(&pusher, &next).await;
    assert!(told.problems.len() == 150 && requests > 1, "a new nginx is told: {requests}");
}

#[tokio::test]
async fn what_nginx_refused_is_told_again_once_what_counts_at_its_socket_is_another_text() {
    let (fake, pusher, _folder) = Fake::start();
    let mut next = Configuration::default();
    put(&mut next, "bad-80", 1);
    put(&mut next, "good-80", 1);
    for (is_first, text) in
        [(true, None), (false, Some("client_body_in_file_only on;")), (false, None)]
    {
        let http = text.map(|text| text.to_owned().into());
        let raw = Some(RawGlobal { http, ..RawGlobal::default() }.into());
        next.global = Arc::new(Global { raw, ..Global::clone(&next.global) });
        // Before a reload it is the one before that counts.
        let wish = Wish { now: &next, all: &next, resolved: &BTreeMap::new() };
        let general = General { http_redirect_code: 308, enable_ocsp: false, metrics: None };
        pusher.extend(wish, general).await.expect("it is taken");
        let (told, requests) = fake.settle(&pusher, &next).await;
        assert_eq!((told.problems.len(), requests), (1, usize::from(!is_first)), "{text:?}");
        assert_eq!(fake.settle(&pusher, &next).await.1, 0, "{text:?}");
    }
}

#[tokio::test]
async fn what_is_changed_is_told_again_and_what_is_gone_is_told_of_no_more() {
    let (fake, pusher, _folder) = Fake::start();
    let mut next = Configuration::default();
    put(&mut next, "bad-80", 1);
    put(&mut next, "good-80", 1);
    assert_eq!(fake.settle(&pusher, &next).await.0.problems.len(), 1);
    assert_eq!(fake.settle(&pusher, &next).await.1, 0);
    put(&mut next, "bad-80", 2);
    let (told, requests) = fake.settle(&pusher, &next).await;
    assert_eq!((told.problems.len(), requests), (1, 1));
    next.upstreams.remove(&UpstreamId::new("bad-80"));
    let (told, requests) = fake.settle(&pusher, &next).await;
    assert_eq!((told.problems.len(), requests), (0, 0), "nginx never had it");
}

#[tokio::test]
async fn what_finds_no_room_is_told_again_once_some_was_made() {
    let (fake, pusher, _folder) = Fake::start();
    let mut next = Configuration::default();
    put(&mut next, "large-80", 8);
    put(&mut next, "good-80", 8);
    put(&mut next, "other-80", 1);
    assert_eq!(fake.settle(&pusher, &next).await.0.problems.len(), 1);
    fake.has_room.store(true, Ordering::SeqCst);
    put(&mut next, "other-80", 2);
    let (told, requests) = fake.settle(&pusher, &next).await;
    assert_eq!((told.problems.len(), requests), (1, 1), "nothing became free");
    next.upstreams.remove(&UpstreamId::new("good-80"));
    fake.settle(&pusher, &next).await;
    let (told, requests) = fake.settle(&pusher, &next).await;
    assert_eq!((told.problems.len(), requests), (0, 1));
}

#[tokio::test]
async fn a_namespace_s_certificates_leave_looks_for_its_upstreams() {
    let (fake, pusher, _folder) = Fake::start();
    let mut next = Configuration::default();
    put_certificates(&mut next, 150);
    // Of the same namespace, but not by their names, which are in all that is sent.
    let names = (0..99).map(|number| format!("mine-{number}-80"));
    for name in names.chain(["mine-bad-80".to_owned()]) {
        put_of(&mut next, "bad", &name, 1);
    }
    let (told, _) = fake.settle(&pusher, &next).await;
    assert_eq!(told.problems.len(), 151, "one upstream of a hundred");
}
