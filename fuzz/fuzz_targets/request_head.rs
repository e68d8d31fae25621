//! A request head that is accepted has one meaning: no byte that ends a line or the head for another reader, one
//! framing, two spaces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = proxy::parsers::response_head(bytes);
    if !proxy::parsers::request_head(bytes) {
        return;
    }
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("a head ends so");
    let head = &bytes[..end];
    let ends = |byte: u8| head.iter().filter(|b| **b == byte).count();
    let lines: Vec<&[u8]> = split(head);
    assert_eq!((ends(b'\r'), ends(b'\n')), (lines.len() - 1, lines.len() - 1));
    assert!(!head.contains(&0));
    assert_eq!(lines[0].iter().filter(|byte| **byte == b' ').count(), 2);
    let target = lines[0].split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    assert!(!target.is_empty() && !target.contains(&b'#') && !lines[0].contains(&b'\t'));
    let (mut lengths, mut codings, mut hosts) = (0, 0, 0);
    for line in &lines[1..] {
        assert!(!line.starts_with(b" ") && !line.starts_with(b"\t"));
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        match name.to_ascii_lowercase().as_slice() {
            b"content-length" => lengths += 1,
            b"transfer-encoding" => codings += 1,
            b"host" => hosts += 1,
            _ => {}
        }
    }
    assert!(lengths + codings <= 1 && hosts <= 1);
});

fn split(head: &[u8]) -> Vec<&[u8]> {
    head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}
