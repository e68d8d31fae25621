//! The meaning of a path is stable: it holds no dot segment, and what is written for it means it again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use route::path::{bytes, canonical, encode};

fuzz_target!(|raw: &[u8]| {
    let Ok(meaning) = canonical(raw) else { return };
    let path = meaning.path.as_ref();
    assert!(path.starts_with(b"/"));
    assert!(!path.contains(&0));
    assert!(!path.windows(2).any(|pair| pair == b"//"));
    let dots = |segment: &[u8]| segment == b"." || segment == b"..";
    assert!(!path.split(|byte| *byte == b'/').any(dots));
    assert_eq!(bytes(&meaning.text()).as_ref(), path);
    let wire = encode(path);
    assert!(wire.bytes().all(|byte| byte > b' ' && byte < 0x7f && byte != b'#' && byte != b'?'));
    let again = canonical(wire.as_bytes()).expect("what was written for a path is a path");
    assert_eq!(again.path.as_ref(), path);
    assert!(!again.dotted && !again.merged);
});
