//! Responses of a bad upstream.

use super::{Judgement, expected, stricter, worse};
use crate::case::{Alternative, Case, Piece};
use crate::client::Got;
use crate::message::{Response, show, values};

/// More interim answers than these are a flood.
const INTERIM: usize = 100;

pub(super) fn judge(case: &Case, pieces: &[Piece], got: &Got, reused: bool) -> Judgement {
    if let Some(why) = &got.illegal {
        return worse(format!("the client got {why}"));
    }
    if got.interim > INTERIM {
        return worse(format!("the client got {} interim answers", got.interim));
    }
    let any = &case.wanted.any;
    let answer = match got.answers.as_slice() {
        [] if any.contains(&Alternative::Abort) && got.end.is_some() => {
            return expected("cut before it was complete");
        }
        [] if got.end.is_some() => return worse("closed without an answer"),
        [] => return worse("no answer"),
        [answer] => answer,
        several => return worse(format!("{} answers to one request", several.len())),
    };
    if answer.status == 502 {
        let wanted = any.iter().any(|one| {
            matches!(one, Alternative::BadGateway | Alternative::Refuse(_) | Alternative::Abort)
        });
        return match (reused, wanted) {
            (true, _) => worse("502, but the upstream connection is used again"),
            (false, true) => expected("502"),
            (false, false) => stricter("502"),
        };
    }
    if !case.wanted.allows_forwarding() {
        return worse(format!("relayed as {} {:?}", answer.status, show(&answer.body)));
    }
    match relayed(pieces, answer, got, reused) {
        Ok(words) => expected(words),
        Err(words) => worse(words),
    }
}

fn relayed(pieces: &[Piece], answer: &Response, got: &Got, reused: bool) -> Result<String, String> {
    let raw = match pieces.first() {
        Some(Piece::Bytes(raw)) => raw.as_slice(),
        _ => b"",
    };
    let status = answer.status;
    let sent = final_status(raw);
    if status.to_string() != sent {
        return Err(format!("{sent} arrived as {status}"));
    }
    let clean = status == 200 && raw.ends_with(&[b"\r\n\r\n".as_slice(), &answer.body].concat());
    if reused && !clean {
        return Err(
            "the upstream connection is used again although stray bytes came on it".to_owned()
        );
    }
    if !answer.blemishes.is_empty() {
        return Err(format!("relayed with {}", answer.blemishes.join(", ")));
    }
    let coded =
        values(&answer.fields, "transfer-encoding").iter().any(|value| *value != b"chunked");
    if (coded || pieces.contains(&Piece::Fin)) && got.end.is_none() {
        return Err("an answer that ends with the connection is followed by keep-alive".to_owned());
    }
    if matches!(status, 204 | 304) && !answer.body.is_empty() {
        return Err(format!("a {status} with a body"));
    }
    Ok(format!("one clean {status}"))
}

/// The status of the last status line of what the upstream sent: interim answers come before it.
fn final_status(raw: &[u8]) -> &str {
    let mut rest = raw;
    loop {
        let digits =
            rest.get(9..12).and_then(|digits| str::from_utf8(digits).ok()).unwrap_or_default();
        let next = rest.windows(4).position(|part| part == b"\r\n\r\n").map(|end| &rest[end + 4..]);
        match next {
            Some(next) if digits.starts_with('1') && next.starts_with(b"HTTP/1.") => rest = next,
            _ => return digits,
        }
    }
}
