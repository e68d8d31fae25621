//! B3, Zipkin's format: one field or several. Both are understood wherever one of them is asked for.

use super::super::context::Context;
use super::{Carried, Incoming, hex, single as field, span_of, trace_of};
use wire::Headers;

/// The fields of both spellings.
pub(super) const FIELDS: [&str; 6] =
    ["b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags"];

pub(super) fn extract(headers: &Headers) -> Option<Incoming> {
    match field(headers, "b3").and_then(read) {
        Some(incoming) => Some(incoming),
        None => several(headers),
    }
}

/// `{trace}-{span}-{sampling}-{parent}`, of which the last two may be absent; or the sampling alone.
fn read(value: &[u8]) -> Option<Incoming> {
    let incoming = |parent, sampled| Incoming { parent, sampled, carried: Carried::default() };
    if let Some(decision) = decision(value) {
        return Some(incoming(None, Some(decision)));
    }
    let parts: Vec<&[u8]> = value.splitn(5, |byte| *byte == b'-').collect();
    let (trace, span, rest) = match parts.as_slice() {
        [trace, span, rest @ ..] if rest.len() <= 2 => (trace, span, rest),
        _ => return None,
    };
    let parent = (trace_of(trace, true)?, span_of(span, true)?);
    let sampled = rest.first().map(|text| decision(text).ok_or(())).transpose().ok()?;
    rest.get(1).is_none_or(|parent| span_of(parent, true).is_some()).then_some(())?;
    Some(incoming(Some(parent), sampled))
}

/// `d` stands for debug, which is recorded, too.
fn decision(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"d" => Some(true),
        b"0" => Some(false),
        _ => None,
    }
}

fn several(headers: &Headers) -> Option<Incoming> {
    let sampled = match field(headers, "x-b3-sampled") {
        _ if field(headers, "x-b3-flags") == Some(b"1") => Some(true),
        Some(b"1" | b"true") => Some(true),
        Some(b"0" | b"false") => Some(false),
        _ => None,
    };
    let trace = field(headers, "x-b3-traceid").and_then(|digits| trace_of(digits, true));
    let span = field(headers, "x-b3-spanid").and_then(|digits| span_of(digits, true));
    // The parent's parent says nothing here, but a message with a broken one is not B3.
    let grandparent = field(headers, "x-b3-parentspanid");
    let parent = trace.zip(span).filter(|_| grandparent.is_none_or(|id| hex(id, 16).is_some()));
    let said = parent.is_some() || sampled.is_some();
    said.then(|| Incoming { parent, sampled, carried: Carried::default() })
}

/// `b3` for a span.
pub(crate) fn single(context: &Context) -> String {
    format!("{}-{}-{}", context.trace, context.span, u8::from(context.sampled))
}

pub(super) fn inject_multi(context: &Context, put: &mut impl FnMut(&'static str, &[u8])) {
    put("X-B3-TraceId", context.trace.to_string().as_bytes());
    put("X-B3-SpanId", context.span.to_string().as_bytes());
    put("X-B3-Sampled", if context.sampled { b"1" } else { b"0" });
}
