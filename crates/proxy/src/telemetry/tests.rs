//! Where spans go, and what is told of them.

use super::{Destination, Numbers, OtlpEnvironment, SpanId, TraceId, Tracing};
use model::{Collector, OtlpProtocol, Propagator, Sampler, Telemetry};
use std::cell::Cell;
use wire::Headers;

/// 1, 2, 3, …
#[derive(Default)]
struct Counting(Cell<u64>);

impl Counting {
    fn next(&self) -> u64 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

impl Numbers for Counting {
    fn trace(&self) -> TraceId {
        TraceId::drawn(self.next().into())
    }

    fn span(&self) -> SpanId {
        SpanId::drawn(self.next())
    }
}

fn told(settings: Telemetry, fields: &[(&'static str, &'static str)], trusts: bool) -> String {
    let mut headers = Headers::default();
    fields.iter().for_each(|(name, value)| headers.add(name, *value));
    let tracer = Tracing::default().tracer(&settings);
    let span = tracer.begin(&headers, trusts, &Counting::default());
    let mut told = Vec::new();
    span.inject(span.attempt, |name, value| {
        told.push(format!("{name}: {}", String::from_utf8_lossy(value)))
    });
    told.join("\n")
}

const PARENT: (&str, &str) =
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
const STATE: (&str, &str) = ("tracestate", "a=1");

#[test]
fn a_trace_goes_on_unless_its_sender_is_not_believed() {
    let on = Telemetry::default();
    assert_eq!(
        told(on.clone(), &[PARENT, STATE], true),
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-0000000000000001-00\ntracestate: a=1"
    );
    let begun = "traceparent: 00-00000000000000000000000000000001-0000000000000002-01";
    assert_eq!(told(on.clone(), &[PARENT, STATE], false), begun);
    assert_eq!(told(on, &[("traceparent", "nonsense"), STATE], true), begun);
}

#[test]
fn a_decision_alone_begins_a_trace_that_follows_it() {
    let settings = Telemetry { propagators: vec![Propagator::B3], ..Telemetry::default() };
    let never = "b3: 00000000000000000000000000000001-0000000000000002-0";
    assert_eq!(told(settings, &[("b3", "0")], true), never);
}

#[test]
fn the_sampler_decides_where_the_parent_does_not() {
    let settings =
        Telemetry { sampler: Sampler::AlwaysOn, parent_based: false, ..Telemetry::default() };
    assert!(told(settings, &[PARENT], true).ends_with("-01"));
}

#[test]
fn the_environment_counts_before_the_config_map() {
    let collector = Collector { host: "otel.svc".to_owned(), port: None, secure: false };
    let settings = Telemetry { collector: Some(collector), ..Telemetry::default() };
    let none = OtlpEnvironment::default();
    assert_eq!(Destination::of(&Telemetry::default(), &none), None);
    let name = |settings: &Telemetry, environment: &OtlpEnvironment| {
        Destination::of(settings, environment).expect("a collector").name()
    };
    assert_eq!(name(&settings, &none), "http://otel.svc:4317");
    let over_http = Telemetry { protocol: OtlpProtocol::Http, ..settings.clone() };
    assert_eq!(name(&over_http, &none), "http://otel.svc:4318");
    let variables = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("https://[::1]:1/base".to_owned()),
        "OTEL_RESOURCE_ATTRIBUTES" => Some("service.name=x,k8s.pod.name=y".to_owned()),
        _ => None,
    };
    let (environment, _) = OtlpEnvironment::read(variables);
    assert_eq!(name(&settings, &environment), "https://[::1]:1/base");
    let destination = Destination::of(&settings, &environment).expect("a collector");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [pair("service.name", "nginx"), pair("k8s.pod.name", "y")];
    assert_eq!(destination.resource, expected);
}
