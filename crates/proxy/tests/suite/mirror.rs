//! Copies of requests behind the engine, and requests that come back to it, over real sockets.

use crate::bed::{self, MAIN, answer, apply, configuration, is_whole, start, talk, upstream};
use model::policy::{Body, Errors, Mirror, Policy, Protocol};
use model::{Template, UpstreamId, Url};
use proxy::Native;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

const COPY: &str = "url:demo/copy:80";

fn mirrored(target: &str, body: bool) -> Policy {
    let template = |text| Template::parse(text).expect("known variables");
    let url = Url {
        secure: false,
        authority: template("copy.demo.svc:80").into(),
        target: template(target).into(),
        upstream: Some(UpstreamId::new(COPY)),
    };
    Policy { mirror: Some(Mirror { url, host: None, body }.into()), ..Policy::default() }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

const POST: &[u8] =
    b"POST /a%20b?x=1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX-A: b\r\nProxy: p\r\n\
    Content-Length: 4\r\n\r\nbody";

async fn copy_of(request: &[u8], policy: Policy) -> String {
    let (main, _main) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let (copy, mut seen) = upstream(answer("500 Oh", "", "copy"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (COPY, vec![copy])];
    let native = start(&configuration(&upstreams, policy)).await;
    let got = talk(&native, request).await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("main"), "{got}");
    text(seen.recv().await.expect("a copy"))
}

#[tokio::test]
async fn a_copy_is_what_the_client_sent_and_nothing_else() {
    let seen = copy_of(POST, mirrored("$request_uri", true)).await;
    assert_eq!(
        seen,
        "POST /a%20b?x=1 HTTP/1.0\r\nHost: copy.demo.svc\r\nConnection: close\r\nContent-Length: 4\r\nX-A: b\r\n\r\nbody"
    );
}

#[tokio::test]
async fn a_copy_without_its_body_is_a_whole_request() {
    let seen = copy_of(POST, mirrored("/fixed", false)).await;
    assert_eq!(
        seen,
        "POST /fixed?x=1 HTTP/1.0\r\nHost: copy.demo.svc\r\nConnection: close\r\nX-A: b\r\n\r\n"
    );
}

#[tokio::test]
async fn a_body_that_would_be_streamed_is_read_whole_for_its_copy() {
    let body = Body { request_buffering: false, ..Body::default() };
    let policy = Policy { body, ..mirrored("/", true) };
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
        4\r\nbody\r\n0\r\n\r\n";
    let seen = copy_of(request, policy).await;
    assert!(seen.contains("\r\nContent-Length: 4\r\n") && seen.ends_with("\r\n\r\nbody"), "{seen}");
}

#[tokio::test]
async fn what_a_variable_brings_does_not_end_the_request_line() {
    let request = b"GET /%0d%0aX-Evil:%20yes HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let seen = copy_of(request, mirrored("/copy$uri", true)).await;
    assert!(seen.starts_with("GET /copy/X-Evil:yes HTTP/1.0\r\nHost: "), "{seen}");
}

#[tokio::test]
async fn what_a_variable_brings_does_not_end_the_host_either() {
    let mut policy = mirrored("/copy", true);
    if let Some(mirror) = &mut policy.mirror {
        Arc::make_mut(mirror).host = Some(Template::parse("copy$uri").expect("a known variable"));
    }
    let request = b"GET /%0d%0aX-Evil:%20yes HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let seen = copy_of(request, policy).await;
    assert!(seen.contains("\r\nHost: copy/%0D%0AX-Evil: yes\r\nConnection: close\r\n"), "{seen}");
}

#[tokio::test]
async fn a_mirror_that_never_answers_delays_nothing() {
    let (main, _main) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let (copy, _seen) = upstream(Vec::new(), |_| false).await;
    let upstreams = [(MAIN, vec![main]), (COPY, vec![copy])];
    let native = start(&configuration(&upstreams, mirrored("/", true))).await;
    let started = Instant::now();
    // More than may be in flight at a time.
    for _ in 0..100 {
        let got = talk(&native, POST).await;
        assert!(got.ends_with("main"), "{got}");
    }
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_mirror_where_nobody_is_changes_nothing() {
    let (main, _main) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (COPY, Vec::new())];
    let native = start(&configuration(&upstreams, mirrored("/", true))).await;
    let got = talk(&native, POST).await;
    assert!(got.ends_with("main"), "{got}");
}

#[tokio::test]
async fn an_error_page_and_a_copy_get_the_same_body() {
    let (main, _main) = upstream(answer("404 Not Found", "", "main"), is_whole).await;
    let (copy, mut copied) = upstream(answer("200 OK", "", ""), is_whole).await;
    let (pages, mut paged) = upstream(answer("404 Not Found", "", "page"), is_whole).await;
    let pages_id = "custom-default-backend-demo-pages";
    let upstreams = [(MAIN, vec![main]), (COPY, vec![copy]), (pages_id, vec![pages])];
    let errors = Errors {
        statuses: [404].into(),
        intercept: true,
        backend: Some(UpstreamId::new(pages_id)),
        of_all: false,
    };
    let policy = Policy { errors: Some(errors), ..mirrored("$request_uri", true) };
    let native = start(&configuration(&upstreams, policy)).await;
    let got = talk(&native, POST).await;
    assert!(got.starts_with("HTTP/1.1 404 ") && got.ends_with("page"), "{got}");
    for seen in [copied.recv().await, paged.recv().await] {
        let seen = text(seen.expect("a request"));
        assert!(seen.ends_with("\r\n\r\nbody"), "{seen}");
    }
}

#[tokio::test]
async fn a_copy_that_comes_back_is_not_copied_again() {
    let (main, mut seen) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let mut policy = mirrored("$request_uri", false);
    let own = Template::parse("a.test").expect("a name");
    policy.mirror =
        policy.mirror.map(|mirror| Mirror { host: Some(own), ..Mirror::clone(&mirror) }.into());
    let before = configuration(&[(MAIN, vec![main])], policy.clone());
    let native = start(&before).await;
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, native.listening().http_port));
    let next = configuration(&[(MAIN, vec![main]), (COPY, vec![here])], policy);
    apply(&native, &before, &next).await;
    let mut all = Vec::new();
    for path in ["/one", "/two"] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert!(talk(&native, get.as_bytes()).await.ends_with("main"));
        let of_path = |all: &[String]| all.iter().filter(|seen| seen.contains(path)).count();
        while of_path(&all) < 2 {
            all.push(text(seen.recv().await.expect("the request and its copy")));
        }
    }
    assert_eq!(all.len(), 4, "{all:?}");
}

#[tokio::test]
async fn a_request_that_comes_back_goes_round_a_few_times_only() {
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let policy = Policy { protocol, ..Policy::default() };
        let before = configuration(&[(MAIN, Vec::new())], policy.clone());
        let native = start(&before).await;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, native.listening().http_port));
        apply(&native, &before, &configuration(&[(MAIN, vec![here])], policy)).await;
        // The second one finds connections that were kept.
        for _ in 0..2 {
            let got = talk(&native, get).await;
            assert!(got.starts_with("HTTP/1.1 508 "), "{protocol:?}: {got}");
        }
    }
}

/// Somebody between, such as a load balancer: connections that come through it are not known to be our own.
async fn between(native: &Native) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, native.listening().http_port));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(here).await.expect("the engine listens");
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, count)
}

#[tokio::test]
async fn a_request_that_goes_round_through_somebody_else_ends_as_well() {
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let policy = Policy { protocol, ..Policy::default() };
        let before = configuration(&[(MAIN, Vec::new())], policy.clone());
        let native = start(&before).await;
        let (there, count) = between(&native).await;
        apply(&native, &before, &configuration(&[(MAIN, vec![there])], policy)).await;
        for _ in 0..2 {
            let got = talk(&native, get).await;
            assert!(got.starts_with("HTTP/1.1 508 "), "{protocol:?}: {got}");
        }
        assert!(count.load(Ordering::Relaxed) <= 12, "{protocol:?}: {count:?}");
    }
}

#[tokio::test]
async fn an_authenticator_that_leads_back_through_somebody_else_ends_as_well() {
    let target = Template::parse("/auth").expect("no variables");
    let asked = bed::authenticator("a.test", target, UpstreamId::new(COPY));
    let policy = Policy { auth_external: Some(asked.into()), ..Policy::default() };
    let before = configuration(&[(MAIN, Vec::new()), (COPY, Vec::new())], policy.clone());
    let native = start(&before).await;
    let (there, count) = between(&native).await;
    apply(&native, &before, &configuration(&[(MAIN, vec![there]), (COPY, vec![there])], policy))
        .await;
    let got = talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 5"), "{got}");
    assert!(count.load(Ordering::Relaxed) <= 6, "{count:?}");
}

#[tokio::test]
async fn a_copy_that_comes_back_through_somebody_else_is_soon_not_copied_again() {
    let (main, mut seen) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let mut policy = mirrored("$request_uri", false);
    let own = Template::parse("a.test").expect("a name");
    policy.mirror =
        policy.mirror.map(|mirror| Mirror { host: Some(own), ..Mirror::clone(&mirror) }.into());
    let before = configuration(&[(MAIN, vec![main])], policy.clone());
    let native = start(&before).await;
    let (there, _) = between(&native).await;
    let next = configuration(&[(MAIN, vec![main]), (COPY, vec![there])], policy);
    apply(&native, &before, &next).await;
    let mut all = Vec::new();
    for path in ["/one", "/two", "/three"] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert!(talk(&native, get.as_bytes()).await.ends_with("main"));
        let of_path = |all: &[String]| all.iter().filter(|seen| seen.contains(path)).count();
        while of_path(&all) < 4 {
            all.push(text(seen.recv().await.expect("the request and its copies")));
        }
    }
    assert_eq!(all.len(), 12, "{all:?}");
}

#[tokio::test]
async fn who_lies_about_turns_harms_nobody_else_and_what_others_say_of_them_stays() {
    let (main, mut seen) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let native = start(&configuration(&[(MAIN, vec![main])], Policy::default())).await;
    let get = |said: &str| {
        format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close, CDN-Loop\r\n{said}\r\n\r\n")
    };
    let five = get("CDN-Loop: fairway, fairway\r\nCDN-Loop: fairway,fairway; x, fairway");
    assert!(talk(&native, five.as_bytes()).await.starts_with("HTTP/1.1 508 "));
    for (said, expected) in [
        ("X-A: b", None),
        ("X-Scheme: https", None),
        ("X-Scheme: a\r\nX-Forwarded-Scheme: b\r\nX-Request-ID: c", Some("fairway")),
        ("CDN-Loop: a.example, fairway", Some("a.example, fairway, fairway")),
    ] {
        assert!(talk(&native, get(said).as_bytes()).await.ends_with("main"), "{said}");
        let got = text(seen.recv().await.expect("the request"));
        let line = got.lines().find_map(|line| line.strip_prefix("CDN-Loop: "));
        assert_eq!(line, expected, "{got}");
    }
}
