//! Jaeger's own format: `uber-trace-id`. Its baggage (`uberctx-…`) travels on as it came.

use super::super::context::Context;
use super::{Carried, Incoming, hex, single, span_of, trace_of};
use std::borrow::Cow;
use wire::Headers;

/// The longest value: 32, 16, 16 and 2 digits with three colons, each of which may be escaped.
const LONGEST: usize = 75;

pub(super) fn extract(headers: &Headers) -> Option<Incoming> {
    let value = single(headers, "uber-trace-id").filter(|value| value.len() <= LONGEST)?;
    let value = unescaped(value);
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b':').collect();
    let [trace, span, before, flags] = parts.as_slice() else { return None };
    let parent = (trace_of(trace, false)?, span_of(span, false)?);
    hex(before, 16)?;
    let flags = hex(flags, 2)?;
    let carried = Carried::default();
    Some(Incoming { parent: Some(parent), sampled: Some(flags & 1 == 1), carried })
}

/// Some clients escape the colons as in URLs.
fn unescaped(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'%') {
        return Cow::Borrowed(value);
    }
    let text = String::from_utf8_lossy(value);
    Cow::Owned(text.replace("%3A", ":").replace("%3a", ":").into_bytes())
}

/// `uber-trace-id` for a span.
pub(super) fn value(context: &Context) -> String {
    format!("{}:{}:0:{}", context.trace, context.span, u8::from(context.sampled))
}
