//! W3C Trace Context: `traceparent` and `tracestate`.

use super::super::context::{Context, SpanId, TraceId};
use super::{Carried, Incoming, STATE, hex, single};
use bytes::Bytes;
use wire::Headers;

/// Bytes of a `traceparent` of version 00, and at least of those to come.
const LENGTH: usize = 55;

pub(super) fn extract(headers: &Headers) -> Option<Incoming> {
    let (trace, span, sampled) = read(single(headers, "traceparent")?)?;
    let carried = Carried { tracestate: state(headers), ..Carried::default() };
    Some(Incoming { parent: Some((trace, span)), sampled: Some(sampled), carried })
}

pub(super) fn inject(
    context: &Context,
    carried: &Carried,
    put: &mut impl FnMut(&'static str, &[u8]),
) {
    put("traceparent", parent(context).as_bytes());
    if !carried.tracestate.is_empty() {
        put("tracestate", &carried.tracestate);
    }
}

/// `traceparent` for a span.
pub(crate) fn parent(context: &Context) -> String {
    format!("00-{}-{}-0{}", context.trace, context.span, u8::from(context.sampled))
}

/// Trace, span and the flag of a `traceparent` (section 3.2); what a later version appends is passed over.
fn read(value: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let version = field(value, 0, 2)?;
    let is_whole = value.len() == LENGTH || (version > 0 && value.get(LENGTH) == Some(&b'-'));
    let dashed = [2, 35, 52].iter().all(|at| value.get(*at) == Some(&b'-'));
    if version == 0xff || !is_whole || !dashed {
        return None;
    }
    let trace = TraceId::new(field(value, 3, 35)?)?;
    let span = SpanId::new(u64::try_from(field(value, 36, 52)?).ok()?)?;
    let flags = field(value, 53, LENGTH)?;
    Some((trace, span, flags & 1 == 1))
}

/// Digits in lower case: capitals are not allowed.
fn field(value: &[u8], from: usize, to: usize) -> Option<u128> {
    let digits = value.get(from..to)?;
    hex(digits, 32).filter(|_| !digits.iter().any(u8::is_ascii_uppercase))
}

/// All lines of the state in one. It is nobody's business here what is in it, but for its size.
fn state(headers: &Headers) -> Bytes {
    let values: Vec<&[u8]> = headers.all("tracestate").collect();
    let state = values.join(&b","[..]);
    let is_plain = state.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    if state.len() <= STATE && is_plain { state.into() } else { Bytes::new() }
}
