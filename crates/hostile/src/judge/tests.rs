//! Verdicts on hand-made observations.

use super::{Verdict, judge};
use crate::backend::{Event, Seen};
use crate::case::{Case, Input, Piece, Wanted};
use crate::client::{End, Got};
use crate::h2::{State, script};
use crate::lane::{Client, Observation};
use crate::message::{Read, Response, read_request};

fn case(raw: &str, code: &str) -> Case {
    let wanted = Wanted::parse(code, code).expect("a known code");
    let pieces = vec![Piece::Bytes(raw.as_bytes().to_vec())];
    let input = Input::Request { pieces, early: false };
    Case { id: "T1".to_owned(), input, wanted, expected: code.to_owned() }
}

fn observation(statuses: &[u16], end: Option<End>, upstream: Vec<Event>) -> Observation {
    let answer = |status: &u16| Response { status: *status, ..Response::default() };
    let answers = statuses.iter().map(answer).collect();
    let upstream = upstream.into_iter().map(|event| Seen { connection: 1, event }).collect();
    let client = Client::Http1(Got { answers, end, ..Got::default() });
    let added = vec!["x-forwarded-for".to_owned()];
    Observation { upstream, client, probe: Ok(()), reused: false, added, streaming: false }
}

fn arrived(text: &str) -> Vec<Event> {
    let Read::Whole(request, _) = read_request(text.as_bytes()) else { panic!("{text}") };
    vec![Event::Began, Event::Whole(Box::new(request))]
}

const BAD: &str = "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n";
const GOOD: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const PASSED: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\n\r\n";

fn verdict(raw: &str, code: &str, seen: &Observation) -> Verdict {
    judge(&case(raw, code), seen).0
}

#[test]
fn a_refusal_needs_its_status_the_close_and_an_untouched_upstream() {
    let refuse = |seen| verdict(BAD, "REJECT_400_CLOSE", &seen);
    let closed = Some(End::Closed);
    assert_eq!(refuse(observation(&[400], closed, vec![])), Verdict::AsExpected);
    assert_eq!(refuse(observation(&[400], None, vec![])), Verdict::Worse);
    assert_eq!(refuse(observation(&[502], closed, vec![])), Verdict::Worse);
    assert_eq!(refuse(observation(&[], closed, vec![])), Verdict::Worse);
    assert_eq!(refuse(observation(&[400], closed, arrived(PASSED))), Verdict::Worse);
    assert_eq!(refuse(observation(&[200], closed, arrived(PASSED))), Verdict::Worse);
}

#[test]
fn a_legal_request_may_pass_or_be_refused_but_not_change() {
    let accept = |seen| verdict(GOOD, "ACCEPT", &seen);
    assert_eq!(accept(observation(&[200], None, arrived(PASSED))), Verdict::AsExpected);
    assert_eq!(accept(observation(&[400], Some(End::Closed), vec![])), Verdict::Stricter);
    assert_eq!(accept(observation(&[502], None, vec![])), Verdict::Worse);
    let other = arrived("GET /other HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\n\r\n");
    assert_eq!(accept(observation(&[200], None, other)), Verdict::Worse);
    let twice = [arrived(PASSED), arrived(PASSED)].concat();
    assert_eq!(accept(observation(&[200], None, twice)), Verdict::Worse);
}

#[test]
fn dirt_at_the_upstream_is_worse_whatever_the_client_got() {
    for text in [
        GOOD,
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\nKeep-Alive: timeout=5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\nContent-Length: 00\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\nConnection: Host\r\n\r\n",
    ] {
        let seen = observation(&[200], None, arrived(text));
        assert_eq!(verdict(GOOD, "NORMALISE", &seen), Verdict::Worse, "{text}");
    }
    let seen =
        observation(&[400], Some(End::Closed), vec![Event::Ambiguous("TE and CL".to_owned())]);
    assert_eq!(verdict(BAD, "REJECT_400_CLOSE", &seen), Verdict::Worse);
}

#[test]
fn white_space_of_http2_goes_no_further_than_the_proxy() {
    let script = script::parse(r"HEADERS{:method=GET | x= a\t}").expect("the notation");
    let case = Case { input: Input::Http2(script), ..case(GOOD, "RST_OR_NORMALISE") };
    let judged = |text: &str| {
        let state = State { statuses: [(1, 200)].into(), ..State::default() };
        let seen = observation(&[], None, arrived(text));
        judge(&case, &Observation { client: Client::Http2(state), ..seen }).0
    };
    let passed = PASSED.strip_suffix("\r\n").expect("the end of the head");
    assert_eq!(judged(&format!("{passed}x: a\r\n\r\n")), Verdict::AsExpected);
    for padded in ["x: a\t", "x:  a", "x:\ta", "x:  "] {
        assert_eq!(judged(&format!("{passed}{padded}\r\n\r\n")), Verdict::Worse, "{padded:?}");
    }
}

#[test]
fn an_aborted_message_is_neither_complete_nor_left_hanging() {
    let cut = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc";
    let abort = |upstream| verdict(cut, "ABORT", &observation(&[], None, upstream));
    assert_eq!(abort(vec![]), Verdict::AsExpected);
    assert_eq!(abort(vec![Event::Began, Event::Cut(String::new())]), Verdict::AsExpected);
    assert_eq!(abort(vec![Event::Began]), Verdict::Worse);
    assert_eq!(abort(arrived(PASSED)), Verdict::Worse);
}

#[test]
fn a_proxy_that_no_longer_answers_plain_requests_fails_the_case() {
    let mut seen = observation(&[400], Some(End::Closed), vec![]);
    seen.probe = Err("no answer".to_owned());
    assert_eq!(verdict(BAD, "REJECT_400_CLOSE", &seen), Verdict::Worse);
}
