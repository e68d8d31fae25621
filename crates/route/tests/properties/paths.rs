//! Canonical paths.

use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use route::path::{BadPath, bytes, canonical, encode};

/// Paths made of what canonical paths are about.
fn raw_path() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "/",
            "/",
            ".",
            "..",
            "%2e",
            "%2E",
            "%2f",
            "%2F",
            "%25",
            "%3f",
            "a",
            "b",
            ";",
            "ü",
            "%C3%BC",
            "%ff",
            "\u{10FFFF}",
            "%",
            "%0",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| [b"/".to_vec(), pieces.concat()].concat())
}

/// The same by decoding everything first and splitting it into segments.
fn reference(raw: &[u8]) -> Result<Vec<u8>, BadPath> {
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        if raw[at] == b'%' {
            let digits = raw.get(at + 1..at + 3).ok_or(BadPath::Escape)?;
            let digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
            let digits: Vec<u32> = digits.collect::<Option<_>>().ok_or(BadPath::Escape)?;
            decoded.push((digits[0] * 16 + digits[1]) as u8);
            at += 3;
        } else {
            decoded.push(raw[at]);
            at += 1;
        }
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = decoded.split(|byte| *byte == b'/').skip(1).peekable();
    let mut folder = false;
    while let Some(segment) = segments.next() {
        folder = segments.peek().is_none() && matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => drop(kept.pop().ok_or(BadPath::AboveRoot)?),
            _ => kept.push(segment),
        }
    }
    let mut path: Vec<u8> = kept.iter().flat_map(|segment| [b"/", *segment].concat()).collect();
    if folder || path.is_empty() {
        path.push(b'/');
    }
    if path.contains(&0) { Err(BadPath::Nul) } else { Ok(path) }
}

proptest! {
    #[test]
    fn canonical_is_decoding_and_resolving_segment_by_segment(raw in raw_path()) {
        match (canonical(&raw), reference(&raw)) {
            (Ok(found), expected) => prop_assert_eq!(Ok(found.path.into_owned()), expected),
            // Where a path is wrong in two ways, either may be named, and a NUL is refused even if `..` removes it.
            (Err(BadPath::Nul), _) => prop_assert!(String::from_utf8_lossy(&raw).contains("%00") || raw.contains(&0)),
            (Err(_), expected) => prop_assert!(expected.is_err()),
        }
    }

    #[test]
    fn a_canonical_path_has_no_second_meaning(raw in raw_path()) {
        let Ok(first) = canonical(&raw) else { return Ok(()) };
        let wire = encode(&first.path);
        let again = canonical(wire.as_bytes()).expect("what we forward is valid");
        prop_assert_eq!(&again.path, &first.path);
        prop_assert!(!again.dotted && !again.merged);
        let path = [&first.path, &b"/"[..]].concat();
        for part in [&b"//"[..], b"/./", b"/../"] {
            let ends_in_slash = part == b"//" && first.path.ends_with(b"/");
            prop_assert!(ends_in_slash || !path.windows(part.len()).any(|window| window == part));
        }
        prop_assert!(first.path.starts_with(b"/"));
    }

    #[test]
    fn what_is_forwarded_is_printable_and_parses_as_a_target(raw in raw_path()) {
        let Ok(path) = canonical(&raw) else { return Ok(()) };
        prop_assert!(encode(&path.path).bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'?'));
    }

    #[test]
    fn text_for_patterns_loses_nothing(raw in raw_path()) {
        let Ok(path) = canonical(&raw) else { return Ok(()) };
        let text = path.text();
        prop_assert_eq!(&bytes(&text), &path.path);
        if text.len() == path.path.len() {
            prop_assert_eq!(text.as_bytes(), &*path.path);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(raw: Vec<u8>) {
        if let Ok(path) = canonical(&raw) {
            let text = path.text();
            prop_assert_eq!(bytes(&text), &*path.path);
        }
    }
}
