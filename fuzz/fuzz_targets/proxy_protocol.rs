//! A PROXY protocol header that is accepted is one, and is refused when it is cut short.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::parsers::proxy_header;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fuzz_target!(|bytes: &[u8]| {
    if !proxy_header(bytes) {
        return;
    }
    assert!(bytes.starts_with(b"PROXY ") || bytes.starts_with(SIGNATURE));
    let end = match bytes.starts_with(SIGNATURE) {
        true => 16 + usize::from(u16::from_be_bytes([bytes[14], bytes[15]])),
        false => bytes.iter().position(|byte| *byte == b'\n').expect("a line ends so") + 1,
    };
    assert!(!proxy_header(&bytes[..end - 1]));
});
