//! The table's notation.

use super::escape::{Piece, decode};
use super::{Alternative, Input, Wanted, load};
use std::path::Path;

#[test]
fn escapes_become_bytes() {
    let pieces = decode(r"a\r\n\t\0\\\x0bé{{REPEAT:x\r:3}}b{{FIN}}").expect("legal notation");
    let wanted = [b"a\r\n\t\0\\\x0b".as_slice(), "é".as_bytes(), b"x\rx\rx\rb"].concat();
    assert_eq!(pieces, [Piece::Bytes(wanted), Piece::Fin]);
}

#[test]
fn a_colon_may_be_repeated() {
    let pieces = decode("{{REPEAT:HTTP/1.1 100 Continue\\r\\n\\r\\n:2}}").expect("legal notation");
    assert_eq!(pieces, [Piece::Bytes(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(2))]);
}

#[test]
fn the_elided_run_is_complete() {
    let text =
        r"GET / HTTP/1.1\r\nX-0: y\r\nX-1: y\{{...generated, 1 bytes...}}-2: y\r\nX-3: y\r\n\r\n";
    let wanted = b"GET / HTTP/1.1\r\nX-0: y\r\nX-1: y\r\nX-2: y\r\nX-3: y\r\n\r\n";
    assert_eq!(decode(text).expect("legal notation"), [Piece::Bytes(wanted.to_vec())]);
}

#[test]
fn unknown_notation_is_refused() {
    for text in [r"\q", r"\x1", "{{NOPE}}", "{{REPEAT:a:b}}", "{{FIN"] {
        assert!(decode(text).is_err(), "{text}");
    }
}

#[test]
fn codes_become_alternatives() {
    let wanted = |code, text| Wanted::parse(code, text).expect("a known code").any;
    assert_eq!(wanted("REJECT_400_CLOSE", ""), [Alternative::Refuse(vec![400])]);
    let long = wanted("REJECT_414_CLOSE", "REJECT_414_CLOSE: 414 (or 400/431)");
    assert_eq!(long, [Alternative::Refuse(vec![400, 414, 431])]);
    assert_eq!(wanted("RST_OR_400", ""), [Alternative::Reset, Alternative::Refuse(vec![400])]);
    let either = wanted("REJECT_502", "REJECT_502: Bare CR: 502 or SP");
    assert_eq!(either, [Alternative::BadGateway, Alternative::Normalise]);
    assert!(Wanted::parse("PERHAPS", "").is_err());
}

#[test]
fn every_row_of_our_tables_is_understood() {
    let table = |name| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile");
        load(&folder.join(name)).expect("our own table")
    };
    let cases = [table("smuggling.csv"), table("further.csv")].concat();
    assert!(cases.len() >= 158);
    for case in &cases {
        assert!(!matches!(case.input, Input::NotUnderstood(_)), "{}: {:?}", case.id, case.input);
    }
    let d33 = cases.iter().find(|case| case.id == "D33").expect("row D33");
    let Input::Request { pieces, .. } = &d33.input else { panic!("D33 is a request") };
    let [Piece::Bytes(bytes)] = pieces.as_slice() else { panic!("D33 is one piece") };
    assert_eq!(bytes.windows(2).filter(|pair| pair == b"X-").count(), 3000);
}

#[test]
fn a_row_that_is_not_understood_stops_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.csv");
    let rows = "id,raw_request_escaped,expected_outcome,source,category,proto,outcome_code\n\
        1,GET,ACCEPT: x,s,c,h3-req,ACCEPT\n2,GET,NEW: x,s,c,h1-req,NEW\n3,GET,ACCEPT: x,s,c,h1-req,ACCEPT\n";
    std::fs::write(&file, rows).expect("a file");
    let cases = load(&file).expect("a table");
    let understood: Vec<bool> =
        cases.iter().map(|case| !matches!(case.input, Input::NotUnderstood(_))).collect();
    assert_eq!(understood, [false, false, true]);
}
