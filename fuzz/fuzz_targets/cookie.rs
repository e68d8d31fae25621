//! The session that a Cookie field tells, and what it says to a canary, are the same however it is cut into lines; and
//! whatever it tells, the request has an endpoint.
#![no_main]

use balance::{Asked, Claim, Cookie, Kept, Sessions, Side, side};
use libfuzzer_sys::fuzz_target;
use model::Steps;
use model::policy::{AffinityMode, CanaryRules};
use proxy::parsers::{cookie, session_cookie};
use std::net::SocketAddr;
use std::sync::LazyLock;

static OPEN: LazyLock<[SocketAddr; 2]> =
    LazyLock::new(|| [1, 2].map(|host| SocketAddr::from(([10, 77, 0, host], 8000))));
static ENDING: LazyLock<[SocketAddr; 1]> = LazyLock::new(|| [([10, 77, 0, 3], 8000).into()]);
static SESSIONS: LazyLock<Sessions> = LazyLock::new(|| Sessions::new("fuzz", &*OPEN, &*ENDING));

fuzz_target!(|bytes: &[u8]| {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let Ok(name) = str::from_utf8(lines.remove(0)) else { return };
    let (session, said) = (session_cookie(&lines, name), cookie(&lines, name));
    let joined = lines.join(&b"; "[..]);
    assert_eq!((session_cookie(&[&joined], name), cookie(&[&joined], name)), (session, said));
    read(session_cookie(&lines, name).as_deref());
    decide(cookie(&lines, name).as_deref());
    if name.bytes().all(|byte| byte.is_ascii_graphic() && !b"=;".contains(&byte)) {
        let last = format!("x=y;{name}=last");
        let with_last = [lines.as_slice(), &[last.as_bytes()]].concat();
        assert_eq!(session_cookie(&with_last, name).as_deref(), Some("last"));
        let first = format!("{}=first; x=y", name.to_ascii_uppercase());
        let with_first = [&[first.as_bytes()], lines.as_slice()].concat();
        assert_eq!(cookie(&with_first, name).as_deref(), Some("first"));
    }
});

/// The endpoint of a session that a client tells.
fn read(session: Option<&str>) {
    assert!(!session.is_some_and(|value| value.contains([';', ' ', '\t'])));
    let cookie = session.and_then(Cookie::read);
    if let Some(told) = cookie {
        assert_eq!(Cookie::read(&told.value()), cookie);
    }
    let session = cookie.map(|cookie| cookie.endpoint);
    for mode in [AffinityMode::Balanced, AffinityMode::Persistent] {
        let claim = Claim { mode, session, failed: &[], change_on_failure: false };
        match SESSIONS.choose(claim, |number| number.to_string(), |_| 0) {
            Some(Kept::Same(at)) => {
                assert!(session.is_some() && (OPEN.contains(&at) || ENDING.contains(&at)));
            }
            Some(Kept::New(at, _)) => {
                assert!(OPEN.contains(&at));
                assert!(session.is_none() || mode == AffinityMode::Persistent);
            }
            None => panic!("endpoints are there"),
        }
    }
}

/// The side of a canary that has no weight.
fn decide(cookie: Option<&str>) {
    let asked = Asked { cookie, ..Asked::default() };
    let is_canary =
        side(&CanaryRules::default(), asked, &Steps::default(), |_| 0) == Ok(Side::Canary);
    assert_eq!(is_canary, cookie == Some("always"));
}
