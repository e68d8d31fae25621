//! The ExternalAuth filter over real sockets.

use crate::gateway::bed::{Answer, Bed, header};
use http::{HeaderMap, Response};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What the authenticator that is called was told, each call in its bytes.
type Told = Arc<Mutex<Vec<Vec<u8>>>>;

async fn start() -> (Bed, Told) {
    let (port, told) = calls().await;
    let objects = include_str!("guards.yaml").replace("PORT-calls", &port.to_string());
    (Bed::start(&objects).await, told)
}

/// What the authenticator `c` saw last under an id; nothing if it was not asked.
async fn asked(bed: &Bed, id: &str) -> String {
    bed.send("GET", "c.test", "/", &[("X-Of", id)]).await.seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_judges_the_request_and_says_who_it_is() {
    let (bed, _) = start().await;
    let asks = [
        ("X-Id", "1"),
        ("X-Say", "X-User: alice"),
        ("X-User", "mallory"),
        ("X_User", "mallory"),
        ("Cookie", "secret=1"),
        ("Authorization", "Bearer x"),
        ("X-Forwarded-For", "9.9.9.9"),
        ("Content-Length", "4"),
    ];
    let answer = bed.send_with("PUT", "a.test", "/in/x/../y?z=1", &asks, "body").await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"), "{}", answer.head);
    assert_eq!(header(&answer.seen, "x-user"), ["alice"]);
    assert!(!answer.seen.contains("mallory"), "{}", answer.seen);
    assert_eq!(header(&answer.seen, "content-length"), ["4"]);
    let seen = asked(&bed, "1").await;
    assert!(seen.starts_with("PUT /check/in/y?z=1 HTTP/1.1\r\n"), "{seen}");
    for (name, expected) in [
        ("host", "a.test"),
        ("content-length", "0"),
        ("authorization", "Bearer x"),
        ("x-forwarded-for", "127.0.0.1"),
    ] {
        assert_eq!(header(&seen, name), [expected], "{seen}");
    }
    for name in ["cookie", "x-user", "x-real-ip", "x-request-id"] {
        assert_eq!(header(&seen, name), [""; 0], "{seen}");
    }
    // Without a list the backend gets all that does not describe the authenticator's own message.
    let asks = [("X-Say", "X-Who: alice"), ("X-Who", "mallory")];
    let answer = bed.send("GET", "a.test", "/all", &asks).await;
    assert_eq!((answer.status, header(&answer.seen, "x-who")), (200, vec!["alice"]));
    assert_eq!(header(&answer.seen, "content-length"), [""; 0]);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_gets_the_answer_of_whoever_was_asked() {
    let (bed, _) = start().await;
    for (id, code, say, expected, pod) in [
        ("1", "401", "WWW-Authenticate: Bearer", 401, "c"),
        ("2", "302", "Location: https://login.test/", 302, "c"),
        ("3", "403", "", 403, "c"),
        ("4", "204", "", 403, ""),
        ("5", "500", "", 500, ""),
        ("6", "503", "", 500, ""),
    ] {
        let asks = [("X-Id", id), ("X-Fails", "9"), ("X-Code", code), ("X-Say", say)];
        let answer = bed.send("GET", "a.test", "/in", &asks).await;
        assert_eq!((answer.status, answer.pod.as_str()), (expected, pod), "{code}");
        if let Some((name, value)) = say.split_once(": ") {
            assert_eq!(header(&answer.head, name), [value], "{}", answer.head);
        }
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_be_asked_nobody_is_let_in() {
    let (bed, _) = start().await;
    for (path, expected) in
        [("/missing", 500), ("/share", 500), ("/forbidden", 500), ("/nobody", 500), ("/open", 200)]
    {
        assert_eq!(bed.get("a.test", path).await.status, expected, "{path}");
    }
    // Whoever would be asked is told, and not asked.
    for (path, said) in [
        ("/in?X", "gateway:demo/c:80 is asked  [ExternalAuth of HTTPRoute demo/guarded]"),
        ("/missing", "broken, 500: external authentication: Service demo/missing does not exist"),
    ] {
        let told = bed.explain(&format!("http://a.test{path}"));
        assert!(told.contains(said), "{told}");
    }
    // Two of them: one could be judged, and the other one believed.
    let asks = [("Authorization", "Bearer x"), ("Authorization", "Bearer y")];
    assert_eq!(bed.send("GET", "a.test", "/in", &asks).await.status, 400);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_judged_whole_or_not_taken() {
    let (bed, _) = start().await;
    let send = async |id: &str, body: &str| {
        let length = body.len().to_string();
        let asks = [("X-Id", id), ("Content-Length", length.as_str())];
        bed.send_with("POST", "a.test", "/body", &asks, body).await
    };
    let answer = send("1", "12345678").await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"));
    assert_eq!(header(&answer.seen, "content-length"), ["8"]);
    let seen = asked(&bed, "1").await;
    assert!(seen.starts_with("POST /body ") && seen.ends_with("12345678"), "{seen}");
    let answer = send("2", "123456789").await;
    assert_eq!((answer.status, answer.pod.as_str()), (413, ""));
    assert!(!asked(&bed, "2").await.contains("/body"), "nobody was asked");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_ext_authz_judges_a_request() {
    let (bed, told) = start().await;
    let last = || told.lock().expect("nobody panics").last().cloned().expect("it was called");
    let has =
        |call: &[u8], text: &str| call.windows(text.len()).any(|part| part == text.as_bytes());
    let asks =
        [("X-Want", "in"), ("X-User", "mallory"), ("X-Secret", "s"), ("Content-Length", "4")];
    let answer = bed.send_with("PUT", "a.test", "/call?z=1", &asks, "body").await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"), "{}", answer.head);
    assert_eq!(header(&answer.seen, "x-user"), ["alice"]);
    assert_eq!(header(&answer.seen, "x-secret"), [""; 0]);
    assert_eq!(header(&answer.head, "x-told"), ["yes"]);
    let call = last();
    for text in ["PUT", "/call?z=1", "a.test", "mallory", "127.0.0.1", "body", "HTTP/1.1"] {
        assert!(has(&call, text), "{text}: {}", String::from_utf8_lossy(&call));
    }
    let answer = bed.send("GET", "a.test", "/few", &[("X-Want", "in"), ("X-Other", "o1")]).await;
    assert_eq!(answer.status, 200);
    let call = last();
    assert!(has(&call, "x-want") && !has(&call, "o1"), "{}", String::from_utf8_lossy(&call));
    let refused = async |want: &str| bed.send("GET", "a.test", "/call", &[("X-Want", want)]).await;
    let said = |answer: &Answer| header(&answer.head, "x-told").concat();
    let out = refused("out").await;
    assert_eq!((out.status, said(&out).as_str()), (401, "no"));
    assert!(out.pod.is_empty());
    for (want, expected) in [
        ("nothing", 403),
        ("failure", 500),
        ("garbage", 500),
        ("query", 500),
        ("many", 500),
        ("too-long", 500),
        // The client's own field would go on in its place.
        ("odd-value", 500),
        ("odd-name", 500),
        ("odd-removal", 500),
    ] {
        assert_eq!(refused(want).await.status, expected, "{want}");
    }
    bed.stop().await;
}

/// A field of a message that is bytes: a number below 16, and less than 128 bytes.
fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("it is short");
    [&[number << 3 | 2, length], bytes].concat()
}

/// A field of a message that is a number.
fn number(number: u8, value: u16) -> Vec<u8> {
    let low = u8::try_from(value & 0x7f).expect("seven bits") | 0x80;
    vec![number << 3, low, u8::try_from(value >> 7).expect("it is small")]
}

/// The same as [`part`] of up to 16,383 bytes.
fn long(place: u8, bytes: &[u8]) -> Vec<u8> {
    let length = number(place, u16::try_from(bytes.len()).expect("it is short"));
    // A number's type is 0, that of bytes 2.
    [&[length[0] | 2], &length[1..], bytes].concat()
}

/// A header with its value, as an option.
fn option(place: u8, name: &str, value: &str) -> Vec<u8> {
    part(place, &part(1, &[part(1, name.as_bytes()), part(2, value.as_bytes())].concat()))
}

/// What is answered to a call, and its status.
fn decided(call: &[u8]) -> (Vec<u8>, &'static str) {
    let wants = |text: &str| call.windows(text.len()).any(|part| part == text.as_bytes());
    let good = || part(1, &number(1, 0));
    let allowed = [option(2, "x-user", "alice"), part(5, b"x-secret"), option(6, "x-told", "yes")];
    match () {
        () if wants("out") => {
            let denied = [part(1, &number(1, 401)), option(2, "x-told", "no"), part(3, b"go away")];
            ([part(1, &number(1, 7)), part(2, &denied.concat())].concat(), "0")
        }
        () if wants("nothing") => (Vec::new(), "0"),
        () if wants("failure") => (good(), "14"),
        () if wants("garbage") => (vec![0xff; 9], "0"),
        // Names of fields, one more than may be in a list: `X`, 65 times.
        () if wants("many") => ([good(), long(3, &part(5, b"x").repeat(65))].concat(), "0"),
        () if wants("too-long") => {
            ([part(1, &number(1, 7)), long(2, &option(2, "x", "").repeat(65))].concat(), "0")
        }
        () if wants("query") => ([good(), part(3, &part(8, b"z"))].concat(), "0"),
        () if wants("odd-value") => {
            ([good(), part(3, &option(2, "x-user", "bob\n"))].concat(), "0")
        }
        () if wants("odd-name") => ([good(), part(3, &option(2, "x-user ", "bob"))].concat(), "0"),
        () if wants("odd-removal") => ([good(), part(3, &part(5, b"x-user\n"))].concat(), "0"),
        () => ([good(), part(3, &allowed.concat())].concat(), "0"),
    }
}

/// An authenticator that is called; its port.
async fn calls() -> (u16, Told) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let told = Told::default();
    let keeps = told.clone();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve(tcp, keeps.clone()));
        }
    });
    (port, told)
}

async fn serve(tcp: tokio::net::TcpStream, told: Told) -> Option<()> {
    let mut connection = h2::server::handshake(tcp).await.ok()?;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let told = told.clone();
        tokio::spawn(async move {
            assert_eq!(request.uri().path(), "/envoy.service.auth.v3.Authorization/Check");
            assert_eq!(request.headers()["content-type"], "application/grpc");
            let (mut body, mut call) = (request.into_body(), Vec::new());
            while let Some(Ok(data)) = body.data().await {
                body.flow_control().release_capacity(data.len()).ok()?;
                call.extend_from_slice(&data);
            }
            let length = u32::try_from(call.len() - 5).expect("it is short");
            assert_eq!(call[..5], [&[0][..], &length.to_be_bytes()].concat());
            let (message, status) = decided(&call);
            told.lock().expect("nobody panics").push(call);
            let head = Response::builder().header("content-type", "application/grpc");
            let mut stream = respond.send_response(head.body(()).ok()?, false).ok()?;
            let length = u32::try_from(message.len()).expect("it is short");
            let framed = [&[0][..], &length.to_be_bytes(), &message].concat();
            stream.send_data(framed.into(), false).ok()?;
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", status.parse().expect("a number"));
            stream.send_trailers(trailers).ok()
        });
    }
    Some(())
}
