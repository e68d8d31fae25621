//! An Authorization value that is accepted has a name without a colon, and says the same when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((user, password)) = proxy::parsers::basic(bytes) {
        assert!(!user.is_empty() && !user.contains(&b':') && !password.contains(&0));
        assert!(bytes[..6].eq_ignore_ascii_case(b"basic "));
    }
    let Some(fields) = proxy::parsers::digest(bytes) else { return };
    assert!(fields.iter().all(|field| !field.is_empty()));
    let names = ["username", "realm", "nonce", "uri", "qop", "nc", "cnonce", "response"];
    let mut again = b"Digest ".to_vec();
    for (name, value) in names.iter().zip(&fields) {
        let escaped = value.iter().flat_map(|&byte| match byte {
            b'"' | b'\\' => vec![b'\\', byte],
            other => vec![other],
        });
        again.extend(name.bytes().chain(*b"=\"").chain(escaped).chain(*b"\","));
    }
    assert_eq!(proxy::parsers::digest(&again).as_ref(), Some(&fields));
});
