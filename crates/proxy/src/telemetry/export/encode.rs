//! Spans as OTLP has them, and what the collector answers.

use super::super::record::{Kind, Record, Value};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value as Any,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span::SpanKind,
};
use prost::Message;
use std::time::Duration;

/// The bits of a span's flags that say whether its parent is of another process.
const KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// The request with these spans.
pub(super) fn request(batch: &[Record], resource: &[(String, String)]) -> Vec<u8> {
    let attributes =
        resource.iter().map(|(name, value)| attribute(name, Any::StringValue(value.clone())));
    let scope = InstrumentationScope {
        name: "fairway".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_spans = ScopeSpans {
        scope: Some(scope),
        spans: batch.iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let resource_spans = ResourceSpans {
        resource: Some(Resource { attributes: attributes.collect(), ..Resource::default() }),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }.encode_to_vec()
}

/// The spans that the collector did not want.
pub(super) fn rejected(answer: &[u8]) -> u64 {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let rejected = answer.partial_success.map(|partly| partly.rejected_spans);
    rejected.and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
}

fn span(record: &Record) -> Span {
    let Record { context, parent, .. } = record;
    let kind = match record.kind {
        Kind::Server => SpanKind::Server,
        Kind::Client => SpanKind::Client,
    };
    let attributes = record.attributes.iter().map(|(name, value)| {
        attribute(
            name,
            match value {
                Value::Text(text) => Any::StringValue(text.clone()),
                Value::Number(number) => Any::IntValue(*number),
            },
        )
    });
    let status =
        record.failed.then(|| Status { code: StatusCode::Error.into(), ..Status::default() });
    let remote = if record.remote_parent { REMOTE } else { 0 };
    Span {
        trace_id: context.trace.number().to_be_bytes().to_vec(),
        span_id: context.span.number().to_be_bytes().to_vec(),
        parent_span_id: parent.map_or_else(Vec::new, |id| id.number().to_be_bytes().to_vec()),
        flags: u32::from(context.sampled) | KNOWN | remote,
        name: record.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(record.start),
        end_time_unix_nano: nanoseconds(record.end),
        attributes: attributes.collect(),
        status,
        ..Span::default()
    }
}

fn attribute(name: &str, value: Any) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
