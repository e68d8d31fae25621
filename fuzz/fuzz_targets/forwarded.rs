//! The client's address is the peer's unless trusted peers say otherwise, and what stands before the last address that
//! is not trusted never counts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::RealIp;
use proxy::parsers::{client, forwarded_host, proxy_header};
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

static REAL: LazyLock<RealIp> = LazyLock::new(|| {
    let trusted = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().expect("it is a network"));
    RealIp { trusted: trusted.into_iter().collect(), by_default: false, ..RealIp::default() }
});
const STRANGERS: [&str; 3] = ["198.51.100.7", "198.51.100.7:80", "[2001:db8::7]:443"];

fuzz_target!(|bytes: &[u8]| {
    let [settings, length, rest @ ..] = bytes else { return };
    let is_set = |bit: u8| settings >> bit & 1 == 1;
    let (header, rest) = rest.split_at(usize::from(*length).min(rest.len()));
    let before = is_set(0).then_some(header);
    let real = RealIp { enabled: is_set(1), forwarded_headers: is_set(2), ..REAL.clone() };
    let peer = IpAddr::from(if is_set(3) { [10, 0, 0, 1] } else { [192, 0, 2, 1] });
    let lines: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
    let of = |lines: &[&[u8]]| client(&real, peer, before, lines);
    host(rest);
    let Some(found) = of(&lines) else {
        assert!(before.is_some_and(|header| !proxy_header(header)));
        return;
    };
    assert_eq!(of(&[&lines.join(&b", "[..])]), Some(found));
    let nearest = of(&[]).expect("the header is one");
    assert!(is_set(3) || nearest == peer);
    let asks = real.forwarded_headers || (real.enabled && before.is_none());
    if !asks || !is_set(3) || !is_trusted(nearest) {
        assert_eq!(found, nearest);
        return;
    }
    for stranger in STRANGERS {
        let address = stranger.parse().map_or_else(
            |_| stranger.parse::<SocketAddr>().expect("it has a port").ip(),
            |address: IpAddr| address,
        );
        assert_eq!(of(&[&lines[..], &[stranger.as_bytes()]].concat()), Some(address));
        if !is_trusted(found) {
            assert_eq!(of(&[&[stranger.as_bytes()], &lines[..]].concat()), Some(found));
        }
    }
    let proxy = IpAddr::from([10, 9, 9, 9]);
    let behind = of(&[&lines[..], &[b"10.9.9.9:1"]].concat());
    assert!(behind == Some(found) || (found == nearest && behind == Some(proxy)));
    assert_eq!(of(&[SocketAddr::new(found, 1).to_string().as_bytes()]), Some(found));
});

fn is_trusted(address: IpAddr) -> bool {
    REAL.trusted.iter().any(|net| net.contains(&address.to_canonical()))
}

/// What is taken of X-Forwarded-Host.
fn host(value: &[u8]) {
    let Some(host) = forwarded_host(value) else {
        assert!(value.iter().all(|byte| *byte == b',' || byte.is_ascii_whitespace()));
        return;
    };
    assert!(!host.is_empty() && !host.contains(&b',') && host.trim_ascii() == host);
    assert_eq!(forwarded_host(&host), Some(host));
}
