//! How a trace gets from one process to the next: header fields in the formats that are spoken between services. What
//! clients send is bounded, and ignored where it is not exactly what its format says.

mod b3;
mod datadog;
mod jaeger;
mod w3c;

use super::context::{Context, SpanId, TraceId};
use bytes::Bytes;
use model::Propagator;
use wire::Headers;

/// Bytes of state that travel on with a trace (W3C Trace Context section 3.3.1.5 wants 512 at least).
const STATE: usize = 2048;

/// What came with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// The span that asks; none: only the decision came.
    pub parent: Option<(TraceId, SpanId)>,
    /// Whether the trace is recorded; none: that was left open.
    pub sampled: Option<bool>,
    /// What else of it travels on.
    pub carried: Carried,
}

/// What belongs to one format and travels on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// `tracestate`.
    pub tracestate: Bytes,
    /// `x-datadog-tags` without the trace's own.
    pub datadog_tags: Bytes,
    /// `x-datadog-sampling-priority`.
    pub datadog_priority: Option<i32>,
}

/// What came in the first format that a request has.
pub(crate) fn extract(propagators: &[Propagator], headers: &Headers) -> Option<Incoming> {
    propagators.iter().find_map(|propagator| match propagator {
        Propagator::TraceContext => w3c::extract(headers),
        Propagator::B3 | Propagator::B3Multi => b3::extract(headers),
        Propagator::Jaeger => jaeger::extract(headers),
        Propagator::Datadog => datadog::extract(headers),
    })
}

/// Tells the next process of a span, in every format.
pub(crate) fn inject(
    propagators: &[Propagator],
    context: &Context,
    carried: &Carried,
    mut put: impl FnMut(&'static str, &[u8]),
) {
    for propagator in propagators {
        match propagator {
            Propagator::TraceContext => w3c::inject(context, carried, &mut put),
            Propagator::B3 => put("b3", b3::single(context).as_bytes()),
            Propagator::B3Multi => b3::inject_multi(context, &mut put),
            Propagator::Jaeger => put("uber-trace-id", jaeger::value(context).as_bytes()),
            Propagator::Datadog => datadog::inject(context, carried, &mut put),
        }
    }
}

/// Whether a field of the client belongs to a format that is spoken: it is set anew.
pub(crate) fn owns(propagators: &[Propagator], name: &[u8]) -> bool {
    let is = |names: &[&str]| names.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes()));
    propagators.iter().any(|propagator| match propagator {
        Propagator::TraceContext => is(&["traceparent", "tracestate"]),
        Propagator::B3 | Propagator::B3Multi => is(&b3::FIELDS),
        Propagator::Jaeger => is(&["uber-trace-id"]),
        Propagator::Datadog => is(&datadog::FIELDS),
    })
}

/// `traceparent` for a span.
pub(crate) use w3c::parent as traceparent;

/// `b3` for a span.
pub(crate) use b3::single as b3;

/// The value of a field that may come once only.
fn single<'a>(headers: &'a Headers, name: &'a str) -> Option<&'a [u8]> {
    let mut values = headers.all(name);
    let value = values.next()?;
    values.next().is_none().then(|| value.trim_ascii())
}

/// A number of 1 to `most` hexadecimal digits in either case.
fn hex(digits: &[u8], most: usize) -> Option<u128> {
    if digits.is_empty() || digits.len() > most {
        return None;
    }
    digits.iter().try_fold(0u128, |sum, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(sum << 4 | u128::from(value))
    })
}

/// A trace of 16 or 32 digits, or fewer where `exact` is not asked for.
fn trace_of(digits: &[u8], exact: bool) -> Option<TraceId> {
    let fits = !exact || matches!(digits.len(), 16 | 32);
    TraceId::new(hex(digits, 32).filter(|_| fits)?)
}

/// A span of 16 digits, or fewer where `exact` is not asked for.
fn span_of(digits: &[u8], exact: bool) -> Option<SpanId> {
    let number = hex(digits, 16).filter(|_| !exact || digits.len() == 16)?;
    SpanId::new(u64::try_from(number).ok()?)
}

#[cfg(test)]
mod tests;
