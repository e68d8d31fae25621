//! The part of a request in a trace.

use crate::exchange::Exchange;
use crate::telemetry::propagation;
use model::Variable;

/// Appends the value of a variable of tracing; nothing where the request is not traced.
pub(super) fn push(variable: &Variable, exchange: &Exchange, out: &mut String) {
    let Some(span) = exchange.span.as_deref() else { return };
    match variable {
        Variable::OpentelemetryTraceId => out.push_str(&span.context.trace.to_string()),
        Variable::OpentelemetrySpanId => out.push_str(&span.context.span.to_string()),
        Variable::OpentelemetryTraceparent => {
            out.push_str(&propagation::traceparent(&span.context));
        }
        Variable::OpentelemetryTracestate => {
            out.push_str(&String::from_utf8_lossy(span.tracestate()));
        }
        Variable::OpentelemetryB3 => out.push_str(&propagation::b3(&span.context)),
        _ => {}
    }
}
