//! Digest authentication: who knows the password comes in, each number counts once, guessing ends.

use crate::lua::bed::{Answer, Nginx, ask};
use openssl::hash::{MessageDigest, hash};
use std::net::TcpStream;

/// Where a namespace asks for a password, and where another one does.
const HERE: &str = "/digest?x";
const ELSEWHERE: &str = "/digest/other?x";

fn md5(text: &str) -> String {
    let bytes = hash(MessageDigest::md5(), text.as_bytes()).expect("OpenSSL has MD5");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An nginx whose /digest asks alice for her password.
async fn start() -> Nginx {
    let nginx = Nginx::start().await;
    let users = format!("bob:{}\nalice:{}\n", md5("bob:R:other"), md5("alice:R:secret"));
    std::fs::write(nginx.folder().join("digest-users"), users).expect("the file is written");
    nginx
}

/// The number of a challenge, if the answer is one.
fn number(answer: &Answer) -> Option<String> {
    assert_eq!(answer.status, 401, "{}", answer.head);
    let challenge = answer.all("WWW-Authenticate").first()?.to_string();
    assert!(challenge.starts_with("Digest algorithm=\"MD5\", qop=\"auth\", realm=\"R\", nonce=\""));
    challenge.split("nonce=\"").nth(1)?.split('"').next().map(ToOwned::to_owned)
}

fn challenged(nginx: &Nginx) -> String {
    challenged_at(nginx, HERE)
}

fn challenged_at(nginx: &Nginx, place: &str) -> String {
    number(&nginx.get(place, "")).expect("a challenge")
}

/// The field by which alice answers a number.
fn field(nonce: &str, count: &str, password: &str) -> String {
    field_at(HERE, nonce, count, password)
}

fn field_at(place: &str, nonce: &str, count: &str, password: &str) -> String {
    let (secret, request) = (md5(&format!("alice:R:{password}")), md5(&format!("GET:{place}")));
    let response = md5(&format!("{secret}:{nonce}:{count}:c:auth:{request}"));
    format!(
        "Authorization: Digest username=\"alice\", realm=\"R\", nonce=\"{nonce}\", uri=\"{place}\", \
         qop=auth, nc={count}, cnonce=\"c\", response=\"{response}\"\r\n"
    )
}

fn answer(nginx: &Nginx, nonce: &str, count: &str, password: &str) -> Answer {
    answer_at(nginx, HERE, nonce, count, password)
}

fn answer_at(nginx: &Nginx, place: &str, nonce: &str, count: &str, password: &str) -> Answer {
    nginx.get(place, &field_at(place, nonce, count, password))
}

/// A login from the beginning.
fn log_in(nginx: &Nginx, place: &str) -> Answer {
    answer_at(nginx, place, &challenged_at(nginx, place), "1", "secret")
}

fn is_stale(answer: &Answer) -> bool {
    answer.all("WWW-Authenticate").iter().any(|text| text.ends_with(", stale=\"true\""))
}

#[tokio::test]
async fn each_count_of_a_number_opens_once_in_all_workers() {
    let nginx = start().await;
    let nonce = challenged(&nginx);
    for count in ["00000001", "2", "00000013"] {
        let right = answer(&nginx, &nonce, count, "secret");
        assert_eq!((right.status, right.body.as_str()), (200, "in"));
        let proof = right.all("Authentication-Info")[0];
        assert!(proof.contains(&format!("cnonce=\"c\", nc={count}")), "{proof}");
        for _ in 0..4 {
            let again = answer(&nginx, &nonce, count, "secret");
            assert!(number(&again).is_some() && !is_stale(&again), "{}", again.head);
        }
        // So that the answers that came twice do not lock the address out.
        let fresh = challenged(&nginx);
        assert_eq!(answer(&nginx, &fresh, "1", "secret").status, 200);
    }
    let spent = answer(&nginx, &nonce, "00000014", "secret");
    assert!(number(&spent).is_some() && is_stale(&spent), "{}", spent.head);
}

#[tokio::test]
async fn what_proves_nothing_is_challenged() {
    let nginx = start().await;
    let nonce = challenged(&nginx);
    let whole = field(&nonce, "1", "secret");
    let forged = format!("{}{}", &nonce[..31], if nonce.ends_with('0') { '1' } else { '0' });
    for other in [
        whole.replace("Digest ", "Basic "),
        whole.replace("cnonce", "x"),
        whole.replace("realm=\"R\"", "realm=\"r\""),
        whole.replace(", qop", " qop"),
        whole.replace("\"\r\n", "\r\n"),
        whole.replace("username", "uri=\"/\", username"),
    ] {
        assert!(number(&nginx.get("/digest?x", &other)).is_some(), "{other}");
    }
    // Three wrong ones: another target, another user, a number that nobody gave out.
    assert!(number(&nginx.get("/digest?y", &whole)).is_some());
    assert!(number(&nginx.get("/digest?x", &whole.replace("alice", "bob"))).is_some());
    assert!(number(&answer(&nginx, &forged, "1", "secret")).is_some());
    let quoted = whole.replace("qop=auth", "opaque=\"a\\\"b, c\",qop=\"auth\"");
    assert_eq!(nginx.get("/digest?x", &quoted).status, 200);
}

#[tokio::test]
async fn five_wrong_answers_lock_an_address_out_over_reloads() {
    let nginx = start().await;
    let nonce = challenged(&nginx);
    for count in 1..=5 {
        assert!(number(&answer(&nginx, &nonce, &count.to_string(), "wrong")).is_some());
    }
    nginx.reload().await;
    assert_eq!(number(&nginx.get("/digest?x", "")), None);
    assert_eq!(number(&answer(&nginx, &nonce, "6", "secret")), None);
}

#[tokio::test]
async fn mistakes_and_right_answers_elsewhere_lock_nobody_out_and_forgive_nothing() {
    let nginx = start().await;
    let nonce = challenged(&nginx);
    for count in 1..=4 {
        assert!(number(&answer(&nginx, &nonce, &count.to_string(), "wrong")).is_some());
    }
    assert_eq!(log_in(&nginx, ELSEWHERE).status, 200);
    let nonce = challenged_at(&nginx, ELSEWHERE);
    for count in 1..=5 {
        let wrong = answer_at(&nginx, ELSEWHERE, &nonce, &count.to_string(), "wrong");
        assert!(number(&wrong).is_some());
    }
    assert_eq!(number(&nginx.get(ELSEWHERE, "")), None);
    // The fifth mistake here.
    let fifth = answer(&nginx, &challenged(&nginx), "1", "wrong");
    assert!(number(&fifth).is_some());
    assert_eq!(number(&nginx.get(HERE, "")), None);
}

#[tokio::test]
async fn a_number_opens_nothing_of_another_namespace() {
    let nginx = start().await;
    let nonce = challenged(&nginx);
    assert!(number(&answer_at(&nginx, ELSEWHERE, &nonce, "1", "secret")).is_some());
    assert_eq!(answer(&nginx, &nonce, "1", "secret").status, 200);
}

#[tokio::test]
async fn a_namespace_has_half_of_the_uses_and_no_more_than_are_left_for_others() {
    let nginx = start().await;
    let held = |whose: &str, uses: u32| {
        assert_eq!(nginx.get(&format!("/digests?whose={whose}&uses={uses}"), "").status, 200);
    };
    held("", 32_768);
    held("%20of%20demo", 32_768);
    let stale = log_in(&nginx, HERE);
    assert!(number(&stale).is_some() && is_stale(&stale), "{}", stale.head);
    assert_eq!(log_in(&nginx, ELSEWHERE).status, 200);
    // A third one has taken half of the rest.
    held("", 49_152);
    held("%20of%20other", 16_384);
    let stale = log_in(&nginx, ELSEWHERE);
    assert!(number(&stale).is_some() && is_stale(&stale), "{}", stale.head);
    held("%20of%20other", 16_000);
    assert_eq!(log_in(&nginx, ELSEWHERE).status, 200);
}

#[tokio::test]
async fn who_is_locked_out_stays_so_while_others_make_mistakes_elsewhere() {
    let nginx = start().await;
    // One connection of a proxy that is believed.
    let mut stream = TcpStream::connect(("127.0.0.1", nginx.http)).expect("nginx listens");
    let mut mistake = |place: &str, client: &str, fields: &str| {
        let fields = format!("X-Client: {client}\r\n{fields}");
        assert_eq!(ask(&mut stream, "GET", place, &fields, "").status, 401);
    };
    let locked = || number(&nginx.get(HERE, "X-Client: 192.0.2.1\r\n")).is_none();
    let nonce = challenged(&nginx);
    for count in 1..=5 {
        mistake(HERE, "192.0.2.1", &field(&nonce, &count.to_string(), "wrong"));
    }
    assert!(locked());
    for (place, stays) in [(ELSEWHERE, true), (HERE, false)] {
        let wrong = field_at(place, &challenged_at(&nginx, place), "1", "wrong");
        for one in 0..2048 {
            mistake(place, &format!("10.0.{}.{}", one / 256, one % 256), &wrong);
        }
        assert_eq!(locked(), stays, "{place}");
    }
}
