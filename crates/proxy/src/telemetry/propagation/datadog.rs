//! Datadog's format: decimal numbers of 64 bits, and the other half of the trace among its tags.

use super::super::context::{Context, SpanId, TraceId};
use super::{Carried, Incoming, hex, single};
use bytes::Bytes;
use wire::Headers;

/// The fields that are set anew; `x-datadog-origin` travels on.
pub(super) const FIELDS: [&str; 4] =
    ["x-datadog-trace-id", "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-tags"];

/// The tag with the upper half of the trace.
const UPPER: &str = "_dd.p.tid=";
/// Bytes of tags that travel on (Datadog's own bound).
const TAGS: usize = 512;

pub(super) fn extract(headers: &Headers) -> Option<Incoming> {
    let low = decimal(single(headers, "x-datadog-trace-id")?)?;
    let span = SpanId::new(decimal(single(headers, "x-datadog-parent-id")?)?)?;
    let tags = single(headers, "x-datadog-tags").filter(|tags| tags.len() <= TAGS);
    let tags = tags.and_then(|tags| std::str::from_utf8(tags).ok()).unwrap_or_default();
    let trace = TraceId::new(u128::from(upper(tags)) << 64 | u128::from(low))?;
    let priority = single(headers, "x-datadog-sampling-priority").and_then(priority);
    let others: Vec<&str> = each(tags).filter(|tag| !tag.starts_with(UPPER)).collect();
    let carried = Carried {
        datadog_tags: Bytes::from(others.join(",")),
        datadog_priority: priority,
        ..Carried::default()
    };
    let sampled = priority.map(|priority| priority > 0);
    (low != 0).then_some(Incoming { parent: Some((trace, span)), sampled, carried })
}

pub(super) fn inject(
    context: &Context,
    carried: &Carried,
    put: &mut impl FnMut(&'static str, &[u8]),
) {
    if context.trace.low() == 0 {
        // No trace that Datadog could name.
        return;
    }
    put("x-datadog-trace-id", context.trace.low().to_string().as_bytes());
    put("x-datadog-parent-id", context.span.number().to_string().as_bytes());
    let kept = carried.datadog_priority.filter(|kept| (*kept > 0) == context.sampled);
    let priority = kept.unwrap_or(i32::from(context.sampled));
    put("x-datadog-sampling-priority", priority.to_string().as_bytes());
    let mut tags = String::from_utf8_lossy(&carried.datadog_tags).into_owned();
    if context.trace.high() != 0 {
        let comma = if tags.is_empty() { "" } else { "," };
        tags = format!("{UPPER}{:016x}{comma}{tags}", context.trace.high());
    }
    if !tags.is_empty() {
        put("x-datadog-tags", tags.as_bytes());
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

fn priority(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok().filter(|text| text.len() <= 3)?.parse().ok()
}

fn each(tags: &str) -> impl Iterator<Item = &str> {
    tags.split(',').map(str::trim).filter(|tag| !tag.is_empty())
}

fn upper(tags: &str) -> u64 {
    let found = each(tags).find_map(|tag| tag.strip_prefix(UPPER));
    let number = found.filter(|digits| digits.len() == 16).and_then(|it| hex(it.as_bytes(), 16));
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
}
