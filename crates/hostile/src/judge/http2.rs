//! Requests over HTTP/2, and floods.

use super::{Judgement, Upstream, expected, stricter, worse};
use crate::case::{Alternative, Case};
use crate::flood::Outcome;
use crate::h2::script::{Part, Script};
use crate::h2::{Ending, State, frame};
use crate::message::show;

pub(super) fn judge(
    case: &Case,
    script: &Script,
    state: &State,
    upstream: &Upstream<'_>,
) -> Judgement {
    let forwarded = upstream.whole.len();
    let (refused, words) = ending(state);
    let any = &case.wanted.any;
    let forwards =
        any.iter().any(|one| matches!(one, Alternative::Normalise | Alternative::Accept));
    if forwarded == 0 && refused {
        return match (upstream.hanging, any.iter().all(forwards_only)) {
            (0, false) => expected(words),
            (0, true) => stricter(words),
            _ => worse(format!("{words}, but begun upstream and not aborted")),
        };
    }
    if !forwards || forwarded == 0 {
        return worse(format!("{forwarded} forwarded, {words}"));
    }
    let sent = content(script);
    match upstream.whole.as_slice() {
        // Over HTTP/2 it is malformed, and who strips it does so before anybody matches the value (RFC 9113 8.2.1).
        [one] if !one.padded.is_empty() => {
            worse(format!("white space went on as it came: {}", one.padded.join(", ")))
        }
        [one] if one.body == sent && state.statuses.get(&1) == Some(&200) => {
            expected("forwarded in canonical form")
        }
        [one] if one.body != sent => worse(format!("the body arrived as {}", show(&one.body))),
        _ => worse(format!("{forwarded} forwarded, {words}")),
    }
}

pub(super) fn judge_floods(outcomes: &[Outcome]) -> Judgement {
    let words = |outcome: &Outcome| format!("{}: {}", outcome.flood.name(), outcome.words());
    let bad: Vec<String> = outcomes.iter().filter(|outcome| !outcome.ok()).map(words).collect();
    match bad.as_slice() {
        [] => expected(outcomes.iter().map(words).collect::<Vec<_>>().join("; ")),
        bad => worse(bad.join("; ")),
    }
}

fn forwards_only(one: &Alternative) -> bool {
    matches!(one, Alternative::Normalise | Alternative::Accept)
}

/// Whether the stream was refused, and what happened to it. A server may answer a malformed request with 4xx
/// (RFC 9113 8.1.1).
fn ending(state: &State) -> (bool, String) {
    let ended = match (state.resets.get(&1), state.ending()) {
        (Some(code), _) => Some(format!("RST_STREAM {}", frame::error_name(*code))),
        (None, Some(Ending::GoAway(code))) => Some(format!("GOAWAY {}", frame::error_name(code))),
        (None, Some(_)) => Some("closed".to_owned()),
        (None, None) => None,
    };
    match (state.statuses.get(&1), ended) {
        (Some(status @ 400..=499), _) => (true, format!("answered {status}")),
        // A reset after a complete answer only says that the rest of the request is not wanted.
        (Some(status), _) => (false, format!("answered {status}")),
        (None, Some(words)) => (true, words),
        (None, None) => (false, "no answer and no end".to_owned()),
    }
}

fn content(script: &Script) -> Vec<u8> {
    let Script::Stream(parts) = script else { return Vec::new() };
    let data = parts.iter().filter_map(|part| match part {
        Part::Data(bytes) => Some(bytes.as_slice()),
        Part::Headers(_) => None,
    });
    data.collect::<Vec<_>>().concat()
}
