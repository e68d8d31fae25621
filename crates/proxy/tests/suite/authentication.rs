//! Passwords and authenticators over real sockets: digest from challenge to answer, slow hashes beside other requests.

use crate::bed::{self, answering, put_host, put_upstream, start, talk};
use md5::{Digest, Md5};
use model::policy::{AuthBasic, AuthCache, AuthScheme, CacheDuration, Password, Policy, Users};
use model::{Configuration, Template};
use proxy::Native;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, channel};

/// Sends a GET with these fields; the whole answer.
async fn get(native: &Native, host: &str, fields: &str) -> String {
    let request =
        format!("GET /x?y=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n");
    talk(native, request.as_bytes()).await
}

fn password(scheme: AuthScheme, known: Password) -> Policy {
    let users = Arc::new(Users([(b"alice".as_slice().into(), known)].into()));
    Policy {
        auth_basic: Some(AuthBasic { scheme, realm: "R".to_owned(), users }.into()),
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

/// An authenticator whose answers do not end; tells of each of its connections that does.
async fn without_end() -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (told, ended) = channel(9);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let told = told.clone();
            tokio::spawn(async move {
                let _ = tcp.read(&mut [0; 4096]).await;
                let begin = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 50000\r\n\r\nx";
                let _ = tcp.write_all(begin).await;
                while matches!(tcp.read(&mut [0; 4096]).await, Ok(1..)) {}
                let _ = told.send(()).await;
            });
        }
    });
    (address, ended)
}

#[tokio::test]
async fn rests_of_answers_that_do_not_end_are_read_for_so_many_of_a_namespace() {
    const OF_ONE: usize = 128;
    const MORE: usize = 8;
    let (address, mut ended) = without_end().await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, "auth", vec![address]);
    let target = Template::parse("/").expect("no variables");
    let asks = bed::authenticator("auth", target, id.clone());
    let policy = Policy { auth_external: Some(asks.into()), ..Policy::default() };
    put_host(&mut configuration, "a.test", &id, policy);
    let native = start(&configuration).await;
    let all = (0..OF_ONE + MORE).map(|_| get(&native, "a.test", ""));
    let all = futures_util::future::join_all(all).await;
    assert!(all.iter().all(|answer| answer.starts_with("HTTP/1.1 401")));
    for _ in 0..MORE {
        ended.recv().await.expect("the connection of one more ends at once");
    }
    assert!(ended.try_recv().is_err(), "the others are read on");
}

#[tokio::test]
async fn a_digest_is_right_once_for_each_count() {
    let (address, mut seen) = answering(PLAIN).await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, "echo", vec![address]);
    let known = Password::Digest(Md5::digest("alice:R:wonder").into());
    put_host(&mut configuration, "a.test", &id, password(AuthScheme::Digest, known));
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
    let (address, _seen) = answering(PLAIN).await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, "echo", vec![address]);
    let hash = "$2b$09$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
    let slow = password(AuthScheme::Basic, Password::Bcrypt(hash.into()));
    put_host(&mut configuration, "slow.test", &id, slow);
    put_host(&mut configuration, "open.test", &id, Policy::default());
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
    let (address, mut seen) = answering(PLAIN).await;
    let (nobody, _kept) = bed::nobody();
    let (nonsense, _asked) = answering(b"SSH-2.0-OpenSSH\r\n\r\n").await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, "echo", vec![address]);
    for (name, endpoint) in [("gone.test", nobody), ("nonsense.test", nonsense)] {
        let upstream = put_upstream(&mut configuration, name, vec![endpoint]);
        let authenticator = bed::authenticator("auth", Template::default(), upstream);
        let policy = Policy { auth_external: Some(authenticator.into()), ..Policy::default() };
        put_host(&mut configuration, name, &id, policy);
    }
    let native = start(&configuration).await;
    for name in ["gone.test", "nonsense.test"] {
        let answer = get(&native, name, "").await;
        assert!(answer.starts_with("HTTP/1.1 500"), "{name}: {answer}");
    }
    assert!(seen.try_recv().is_err(), "nothing reaches the application");
}

#[tokio::test]
async fn an_answer_for_all_is_asked_for_without_the_conditions_of_one() {
    const FIELDS: &str = "Range: bytes=0-1\r\nIf-Range: \"q\"\r\nIf-Match: \"z\"\r\nIf-None-Match: \"x\"\r\n\
        If-Modified-Since: Mon, 30 Nov 2026 19:51:24 GMT\r\nIf-Unmodified-Since: Mon, 30 Nov 2026 19:51:24 GMT\r\n\
        X-Other: y\r\n";
    for is_remembered in [true, false] {
        let (native, mut asked) = remembering(PLAIN, "$http_x_key", is_remembered).await;
        let answer = get(&native, "a.test", FIELDS).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let question = asked.recv().await.expect("a question");
        for name in ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since"] {
            let has = question.contains(&format!("\r\n{name}: "));
            assert_eq!(has, !is_remembered, "{name} in {question}");
        }
        assert_eq!(question.contains("If-Unmodified-Since"), !is_remembered, "{question}");
        assert!(question.contains("\r\nX-Other: y\r\n"), "{question}");
    }
}

/// A host whose authenticator answers this, which is remembered by a key, if at all.
async fn remembering(
    answer: &'static [u8],
    key: &str,
    is_remembered: bool,
) -> (Arc<Native>, Receiver<String>) {
    let (address, _seen) = answering(PLAIN).await;
    let (guard, asked) = answering(answer).await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, "echo", vec![address]);
    let upstream = put_upstream(&mut configuration, "auth", vec![guard]);
    let mut authenticator = bed::authenticator("auth", Template::default(), upstream);
    let any = CacheDuration { statuses: Vec::new(), time: Duration::from_secs(600) };
    let key = Template::parse(key).expect("a known variable");
    authenticator.cache = is_remembered.then(|| AuthCache { key, durations: vec![any] });
    let policy = Policy { auth_external: Some(authenticator.into()), ..Policy::default() };
    put_host(&mut configuration, "a.test", &id, policy);
    (start(&configuration).await, asked)
}

#[tokio::test]
async fn an_answer_that_varies_is_remembered_for_each_value() {
    let varies = b"HTTP/1.1 200 OK\r\nVary: X-Foo, Accept\r\nContent-Length: 2\r\n\r\nok";
    let (native, mut asked) = remembering(varies, "$http_x_key", true).await;
    let mut is_asked = async |fields: &str| {
        let answer = get(&native, "a.test", fields).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        asked.try_recv().is_ok()
    };
    for (fields, is_new) in [
        ("X-Foo: 1\r\n", true),
        ("X-Foo: 1\r\n", false),
        ("X-Foo: 2\r\n", true),
        ("X-Foo: 1\r\n", false),
        ("", true),
        ("X-Foo:\r\n", true),
        ("X-Foo: 1\r\nAccept: a\r\n", true),
        ("X-Foo: 1\r\nX-Key: other\r\n", true),
        ("X-Foo: 2\r\nX-Unnamed: 1\r\n", false),
        ("", false),
    ] {
        assert_eq!(is_asked(fields).await, is_new, "{fields:?}");
    }
}

#[tokio::test]
async fn an_answer_about_what_the_question_says_itself_is_for_one_request() {
    for vary in ["*", "X-Original-URL", "x-real-ip", "Host", "If-None-Match"] {
        let answer =
            format!("HTTP/1.1 200 OK\r\nVary: Accept, {vary}\r\nContent-Length: 2\r\n\r\nok");
        let (native, mut asked) = remembering(answer.leak().as_bytes(), "$http_x_key", true).await;
        for _ in 0..2 {
            get(&native, "a.test", "").await;
            assert!(asked.try_recv().is_ok(), "{vary}");
        }
    }
}

#[tokio::test]
async fn what_an_authenticator_says_of_a_field_that_it_does_not_see_is_not_remembered() {
    let (address, _seen) = answering(PLAIN).await;
    let (guard, mut asked) = answering(PLAIN).await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, "echo", vec![address]);
    let upstream = put_upstream(&mut configuration, "auth", vec![guard]);
    let mut authenticator = bed::authenticator("auth", Template::default(), upstream);
    let any = CacheDuration { statuses: Vec::new(), time: Duration::from_secs(600) };
    let key = Template::parse("$http_authorization").expect("a known variable");
    authenticator.cache = Some(AuthCache { key, durations: vec![any] });
    let policy = Policy { auth_external: Some(authenticator.into()), ..Policy::default() };
    put_host(&mut configuration, "a.test", &id, policy);
    let native = start(&configuration).await;
    let mut is_asked = async |fields: &str| {
        let fields = format!("Authorization: Bearer anything\r\n{fields}");
        let answer = get(&native, "a.test", &fields).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        asked.try_recv().ok()
    };
    let question = is_asked("Connection: Authorization\r\nCookie: good\r\n").await;
    let question = question.expect("nothing is known yet");
    assert!(question.contains("good") && !question.contains("anything"), "{question}");
    assert!(is_asked("").await.expect("it has not seen that").contains("anything"));
    assert!(is_asked("").await.is_none(), "now it has");
    assert!(is_asked("Connection: keep-alive\r\n").await.is_none());
    assert!(is_asked("Connection: Authorization\r\n").await.is_some(), "it is another question");
}
