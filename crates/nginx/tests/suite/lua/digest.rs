//! Digest authentication: who knows the password comes in, each number counts once, guessing ends.

use crate::lua::bed::{Answer, Nginx};
use openssl::hash::{MessageDigest, hash};

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
    number(&nginx.get("/digest?x", "")).expect("a challenge")
}

/// The field by which alice answers a number.
fn field(nonce: &str, count: &str, password: &str) -> String {
    let (secret, request) = (md5(&format!("alice:R:{password}")), md5("GET:/digest?x"));
    let response = md5(&format!("{secret}:{nonce}:{count}:c:auth:{request}"));
    format!(
        "Authorization: Digest username=\"alice\", realm=\"R\", nonce=\"{nonce}\", uri=\"/digest?x\", \
         qop=auth, nc={count}, cnonce=\"c\", response=\"{response}\"\r\n"
    )
}

fn answer(nginx: &Nginx, nonce: &str, count: &str, password: &str) -> Answer {
    nginx.get("/digest?x", &field(nonce, count, password))
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
