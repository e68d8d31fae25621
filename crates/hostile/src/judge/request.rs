//! Requests over HTTP/1.

use super::{Judgement, Upstream, expected, stricter, worse};
use crate::case::{Alternative, Case, Piece};
use crate::client::Got;
use crate::lane::{Observation, legal};
use crate::message::{Request, show, values};

/// What the client was told in the end.
enum Reply {
    Refused(u16),
    Redirected(u16),
    Broken,
    Fine,
    Nothing,
}

pub(super) fn judge(
    case: &Case,
    pieces: &[Piece],
    got: &Got,
    upstream: &Upstream<'_>,
) -> Judgement {
    let (requests, wrong) = legal(pieces);
    // Where the table wants a refusal of what we read as legal, nothing may pass.
    let before = if wrong.is_some() { requests.len() } else { 0 };
    let forwarded = upstream.whole.len();
    if let Some(why) = &got.illegal {
        return worse(format!("the client got {why}"));
    }
    let reply = reply(got);
    let mut words = Vec::new();
    for one in &case.wanted.any {
        let verdict = match one {
            Alternative::Refuse(statuses) => refused(statuses, before, forwarded, got, &reply),
            Alternative::Abort => aborted(before, upstream),
            Alternative::Accept | Alternative::Normalise => {
                let exact = *one == Alternative::Accept;
                passed(case, (&requests, wrong.is_some(), exact), got, upstream)
            }
            other => Err(format!("{other:?} is not for HTTP/1 requests")),
        };
        match verdict {
            Ok(what) => return expected(what),
            Err(what) => words.push(what),
        }
    }
    let untouched =
        forwarded <= before.max(requests.len().saturating_sub(1)) && upstream.hanging == 0;
    let text = case.expected.as_str();
    match reply {
        Reply::Refused(status) if case.wanted.allows_forwarding() && untouched => {
            stricter(format!("refused with {status}, {forwarded} forwarded"))
        }
        Reply::Redirected(status) if forwarded == 0 && text.contains("redirect") => {
            expected(format!("redirected with {status}"))
        }
        Reply::Fine if got.end.is_some() && (1..requests.len()).contains(&forwarded) => {
            let words = format!("closed after {forwarded} of {} requests", requests.len());
            if text.contains("may persist") { expected(words) } else { stricter(words) }
        }
        _ => worse(words.first().cloned().unwrap_or_default()),
    }
}

/// A request whose answer comes before its body.
pub(super) fn judge_early(got: &Got, upstream: &Upstream<'_>, seen: &Observation) -> Judgement {
    match got.answers.as_slice() {
        [] if seen.upstream.is_empty() && !seen.streaming => {
            expected("waits for the body before it forwards anything")
        }
        [answer]
            if answer.status == 200 && answer.body == b"early" && upstream.whole.is_empty() =>
        {
            let end =
                if got.end.is_some() { "closed" } else { "kept open for the rest of the body" };
            expected(format!("the early answer is relayed, then {end}"))
        }
        [] => worse("the early answer is not relayed"),
        [answer, ..] => {
            worse(format!("answered {}, {} forwarded", answer.status, upstream.whole.len()))
        }
    }
}

fn reply(got: &Got) -> Reply {
    match got.answers.last().map(|answer| answer.status) {
        None => Reply::Nothing,
        Some(status @ (400..=499 | 501 | 505)) => Reply::Refused(status),
        Some(500..) => Reply::Broken,
        Some(status @ 300..=399) => Reply::Redirected(status),
        Some(_) => Reply::Fine,
    }
}

fn refused(
    statuses: &[u16],
    before: usize,
    forwarded: usize,
    got: &Got,
    reply: &Reply,
) -> Result<String, String> {
    let close = if got.end.is_some() { "closed" } else { "left open" };
    if forwarded > before {
        return Err(format!("{forwarded} forwarded, where {before} may be; {}", summary(got)));
    }
    match reply {
        Reply::Refused(status) if statuses.contains(status) && got.end.is_some() => {
            Ok(format!("{status}, closed"))
        }
        Reply::Refused(status) => Err(format!("{status}, {close}, {statuses:?} and closed wanted")),
        _ => Err(summary(got)),
    }
}

fn summary(got: &Got) -> String {
    let statuses: Vec<String> =
        got.answers.iter().map(|answer| answer.status.to_string()).collect();
    let end = match got.end {
        Some(end) => format!("{end:?}").to_lowercase(),
        None => "left open".to_owned(),
    };
    match statuses.as_slice() {
        [] => format!("no answer, {end}"),
        some => format!("answered {}, {end}", some.join(" ")),
    }
}

fn aborted(before: usize, upstream: &Upstream<'_>) -> Result<String, String> {
    match (upstream.whole.len() > before, upstream.hanging) {
        (true, _) => Err("the upstream got it as a complete message".to_owned()),
        (false, 0) => Ok("never completed upstream".to_owned()),
        (false, _) => Err("begun upstream, neither completed nor aborted".to_owned()),
    }
}

/// Whether what was sent arrived: the same messages, each with its body, none more.
fn passed(
    case: &Case,
    (requests, wrong, exact): (&[Request], bool, bool),
    got: &Got,
    upstream: &Upstream<'_>,
) -> Result<String, String> {
    let wanted = if wrong { requests.len() + 1 } else { requests.len() };
    if upstream.whole.len() != wanted {
        let forwarded = upstream.whole.len();
        return Err(format!("{forwarded} forwarded, {wanted} sent; {}", summary(got)));
    }
    if got.answers.len() != wanted || got.answers.iter().any(|answer| answer.status != 200) {
        return Err(format!("{wanted} forwarded, {}", summary(got)));
    }
    for (sent, arrived) in requests.iter().zip(&upstream.whole) {
        same(sent, arrived, exact)?;
    }
    if wrong && upstream.whole.iter().any(|request| request.target == b"/smuggled") {
        return Err("/smuggled was forwarded".to_owned());
    }
    if case.expected.contains("overwrite") {
        overwritten(requests, upstream)?;
    }
    let closed = got.end.is_some();
    if requests.iter().any(|request| request.minor == 0 && !request.has("connection")) && !closed {
        return Err("the connection of an HTTP/1.0 client is left open".to_owned());
    }
    Ok(format!("{wanted} forwarded in canonical form"))
}

fn same(sent: &Request, arrived: &Request, exact: bool) -> Result<(), String> {
    let differ =
        |what: &str, a: &[u8], b: &[u8]| Err(format!("{what} {} arrived as {}", show(a), show(b)));
    if sent.method != arrived.method {
        return differ("method", sent.method.as_bytes(), arrived.method.as_bytes());
    }
    if sent.body != arrived.body {
        return differ("body", &sent.body, &arrived.body);
    }
    let host = values(&arrived.fields, "host").first().copied().unwrap_or_default();
    let authority = sent.authority();
    if !authority.is_empty() && !host.eq_ignore_ascii_case(&authority) {
        return differ("host", &authority, host);
    }
    if exact && sent.target != arrived.target {
        return differ("target", &sent.target, &arrived.target);
    }
    let segments = arrived.target.to_ascii_lowercase();
    let segments = String::from_utf8_lossy(&segments).replace("%2e", ".");
    let path = segments.split('?').next().unwrap_or_default();
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(format!("target {} arrived with dot segments", show(&arrived.target)));
    }
    Ok(())
}

/// No value that the client gave itself in the fields about itself may arrive.
fn overwritten(requests: &[Request], upstream: &Upstream<'_>) -> Result<(), String> {
    for name in ["x-forwarded-for", "x-forwarded-proto", "x-real-ip"] {
        for (sent, arrived) in requests.iter().zip(&upstream.whole) {
            for forged in values(&sent.fields, name) {
                let kept =
                    |value: &&[u8]| value.windows(forged.len().max(1)).any(|part| part == forged);
                if values(&arrived.fields, name).iter().any(kept) {
                    return Err(format!("{name} arrived with the client's {}", show(forged)));
                }
            }
        }
    }
    Ok(())
}
