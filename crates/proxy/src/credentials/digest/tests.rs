//! Digest authentication: what is right, what is stale, who is locked out.

use super::{Client, Digests, Judgement, KEPT, LOCKED, MISTAKES, UNUSED, USED, response};
use crate::credentials::authorization::DigestAnswer;
use crate::crowds::Crowd;
use md5::{Digest, Md5};
use model::policy::{AuthBasic, AuthScheme, Password, Users};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn secret() -> [u8; 16] {
    Md5::digest(b"alice:R:wonder").into()
}

fn policy() -> AuthBasic {
    let users = Users([(b"alice".as_slice().into(), Password::Digest(secret()))].into());
    AuthBasic { scheme: AuthScheme::Digest, realm: "R".to_owned(), users: Arc::new(users) }
}

fn answer(nonce: &str, count: &str, uri: &str) -> DigestAnswer {
    let mut answer = DigestAnswer {
        user: b"alice".to_vec(),
        realm: b"R".to_vec(),
        nonce: nonce.into(),
        uri: uri.into(),
        qop: b"auth".to_vec(),
        count: count.into(),
        client_nonce: b"0a4f113b".to_vec(),
        response: Vec::new(),
    };
    answer.response = response(&secret(), &answer, "GET").into();
    answer
}

fn judge_at(digests: &Digests, answer: &DigestAnswer, namespace: &str) -> Judgement {
    let client = Client { namespace: &namespace.into(), address: HERE };
    digests.judge(&policy(), answer, "GET", b"/x?y=1", client)
}

fn judge(digests: &Digests, answer: &DigestAnswer) -> Judgement {
    judge_at(digests, answer, "a")
}

fn is_locked(digests: &Digests, namespace: &str, address: IpAddr) -> bool {
    digests.is_locked(Client { namespace: &namespace.into(), address })
}

#[test]
fn the_response_is_that_of_the_recording() {
    let answer = answer("14905bc06b0143f2", "00000001", "/x");
    assert_eq!(hex::encode(secret()), "190677b5fa7f7f2f307ed961595b06d8");
    assert_eq!(answer.response, b"13b07694e9786ebdec25003ac2e14b5f");
}

#[tokio::test]
async fn each_count_of_a_number_is_right_once() {
    let digests = Digests::default();
    let number = digests.number();
    assert_eq!(digests.crowd().now, 0, "a number that was given out is kept nowhere");
    for count in ["00000001", "00000002", "13"] {
        let answer = answer(&number, count, "/x?y=1");
        assert!(
            matches!(judge(&digests, &answer), Judgement::Right(info) if info.ends_with(count))
        );
        assert_eq!(judge(&digests, &answer), Judgement::Wrong);
    }
    let Crowd { now, most, refused } = digests.crowd();
    assert_eq!((now, most, refused), (1, 65_536, 0));
    assert_eq!(judge(&digests, &answer(&number, "14", "/x?y=1")), Judgement::Stale);
    assert_eq!(judge(&digests, &answer(&number, "0", "/x?y=1")), Judgement::Wrong);
}

#[tokio::test]
async fn another_path_another_method_or_a_number_of_somebody_else_is_wrong() {
    let digests = Digests::default();
    let number = digests.number();
    assert_eq!(judge(&digests, &answer(&number, "1", "/other")), Judgement::Wrong);
    assert_eq!(judge(&digests, &answer(&number, "1", "/x?y=2")), Judgement::Wrong);
    let client = Client { namespace: &"a".into(), address: HERE };
    let posted = digests.judge(&policy(), &answer(&number, "1", "/x"), "POST", b"/x", client);
    assert_eq!(posted, Judgement::Wrong);
    let foreign = Digests::default().number();
    assert_eq!(judge(&digests, &answer(&foreign, "1", "/x")), Judgement::Wrong);
    assert!(matches!(judge(&digests, &answer(&number, "1", "/x")), Judgement::Right(_)));
}

#[tokio::test(start_paused = true)]
async fn numbers_grow_stale() {
    let digests = Digests::default();
    let (used, unused) = (digests.number(), digests.number());
    assert!(matches!(judge(&digests, &answer(&used, "1", "/x")), Judgement::Right(_)));
    tokio::time::advance(USED).await;
    assert_eq!(judge(&digests, &answer(&used, "2", "/x")), Judgement::Stale);
    tokio::time::advance(UNUSED).await;
    assert_eq!(judge(&digests, &answer(&unused, "1", "/x")), Judgement::Stale);
    assert_eq!(judge(&digests, &answer(&used, "3", "/x")), Judgement::Stale);
}

#[tokio::test(start_paused = true)]
async fn mistakes_lock_an_address_out_for_a_while() {
    let digests = Digests::default();
    let wrong = answer("made up", "1", "/x");
    for _ in 0..MISTAKES {
        assert!(!is_locked(&digests, "a", HERE));
        judge(&digests, &wrong);
    }
    assert!(is_locked(&digests, "a", HERE));
    assert!(!is_locked(&digests, "a", IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)));
    tokio::time::advance(LOCKED + Duration::from_secs(1)).await;
    assert!(!is_locked(&digests, "a", HERE));
}

#[tokio::test]
async fn mistakes_and_right_answers_elsewhere_lock_nobody_out_and_forgive_nothing() {
    let digests = Digests::default();
    let wrong = answer("made up", "1", "/x");
    for _ in 0..MISTAKES {
        judge_at(&digests, &wrong, "evil");
        let right = answer(&digests.number(), "1", "/x");
        assert!(matches!(judge_at(&digests, &right, "another"), Judgement::Right(_)));
    }
    assert!(is_locked(&digests, "evil", HERE) && !is_locked(&digests, "a", HERE));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_half_of_the_numbers_and_they_are_given_back() {
    let digests = Digests::default();
    let ask = |namespace| {
        let right = answer(&digests.number(), "1", "/x");
        matches!(judge_at(&digests, &right, namespace), Judgement::Right(_))
    };
    // Of so many numbers by chance two may be the same, and the second one is no login.
    let full = (0..KEPT).any(|_| {
        ask("evil");
        digests.crowd().now == KEPT as u64 / 2
    });
    assert!(full);
    assert!(!ask("evil") && ask("a"));
    tokio::time::advance(UNUSED + USED).await;
    assert!(ask("a"));
    let Crowd { now, refused, .. } = digests.crowd();
    assert_eq!((now, refused), (1, 1));
}
