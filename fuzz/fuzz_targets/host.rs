//! A host that was accepted has no byte that could end it early, and is accepted again as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::host::parse;

fuzz_target!(|raw: &[u8]| {
    let Ok(host) = parse(raw) else { return };
    let name = host.name.as_ref();
    assert!(!name.is_empty());
    assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
    let literal = name.starts_with('[') && name.ends_with(']');
    assert!(literal || !name.contains(['/', '?', '#', '@', ':', '[', ']', '\\', '%']));
    let written = match host.port {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    };
    let again = parse(written.as_bytes()).expect("what was read is a host");
    assert_eq!((again.name.as_ref(), again.port), (name, host.port));
});
