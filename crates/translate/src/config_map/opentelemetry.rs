//! Where spans go, which of them, and how traces travel on.

use super::{Area, opentracing};
use crate::settings::{Key, Settings, parse};
use model::{Collector, Global, OtlpProtocol, Propagator, Ratio, Sampler, Severity, Template};
use std::time::Duration;

pub(super) const AREA: Area = Area {
    name: "opentelemetry",
    keys: &[
        &HOST,
        &PORT,
        &PROTOCOL,
        &PROPAGATORS,
        &OPERATION_NAME,
        &SERVICE,
        &SAMPLER,
        &RATIO,
        &PARENT,
        &QUEUE,
        &BATCH,
        &DELAY,
    ],
    apply,
};

/// Spans that may wait at most: each takes up to some kilobytes.
const MOST: usize = 65_536;

static HOST: Key<(String, bool)> = Key::config_map("otlp-collector-host", host).says(
    "address or name; after https:// where it speaks TLS",
    "none: where OTEL_EXPORTER_OTLP_ENDPOINT of the container says, if it does",
    "Who takes spans: an OpenTelemetry Collector, or whatever else speaks OTLP. The container's variable counts before \
     it, as in ingress-nginx.",
);
static PORT: Key<u16> = Key::config_map("otlp-collector-port", parse::port).says(
    "port",
    "4317, with otlp-protocol http/protobuf 4318",
    "The port of otlp-collector-host.",
);
static PROTOCOL: Key<OtlpProtocol> = Key::config_map("otlp-protocol", protocol).says(
    "grpc or http/protobuf",
    "grpc",
    "How spans are sent. ingress-nginx has gRPC only, and no such key.",
);
static PROPAGATORS: Key<Vec<Propagator>> = Key::config_map("opentelemetry-propagators", propagators)
    .says(
        "tracecontext, b3, b3multi, jaeger and datadog, comma separated",
        "tracecontext",
        "The header fields that traces come in and go on with: the first that a request has counts, and all are set \
         towards upstreams. Fields of others, and baggage, travel on unchanged. ingress-nginx has tracecontext only, \
         and no such key.",
    );
/// The name of spans, with variables; annotations have none.
pub(crate) static OPERATION_NAME: Key<Template> =
    Key::config_map("opentelemetry-operation-name", template).says(
        "text with variables",
        "the path as the Ingress has it",
        "Name of the requests' spans, such as HTTP $request_method $service_name $uri.",
    );
static SERVICE: Key<String> = Key::config_map("otel-service-name", parse::text).says(
    "text",
    "nginx",
    "What all spans are said to come from (service.name).",
);
static SAMPLER: Key<Named> = Key::config_map("otel-sampler", sampler).says(
    "AlwaysOn, AlwaysOff or TraceIdRatioBased",
    "AlwaysOn",
    "Which requests are recorded. The others carry their trace on, marked as not recorded.",
);
static RATIO: Key<Ratio> = Key::config_map("otel-sampler-ratio", ratio).says(
    "number from 0 to 1",
    "0.01",
    "The part that TraceIdRatioBased records.",
);
static PARENT: Key<bool> = Key::config_map("otel-sampler-parent-based", parse::boolean).switch(
    true,
    "Whoever began a trace that goes on decides whether it is recorded, and otel-sampler decides about others.",
);
static QUEUE: Key<usize> = Key::config_map("otel-max-queuesize", spans).number(
    "number from 1 to 65536",
    "2048",
    "Spans that may wait to be sent; more are dropped, and counted.",
);
static BATCH: Key<usize> = Key::config_map("otel-max-export-batch-size", spans).number(
    "number from 1 to otel-max-queuesize",
    "512",
    "Spans sent at once.",
);
static DELAY: Key<Duration> = Key::config_map("otel-schedule-delay-millis", delay).number(
    "number of milliseconds",
    "5000",
    "How long spans wait for others, unless there are otel-max-export-batch-size of them.",
);

/// A sampler by its name.
#[derive(Clone, Copy)]
enum Named {
    AlwaysOn,
    AlwaysOff,
    TraceIdRatioBased,
}

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    opentracing::note(settings);
    let removed = opentracing::read(settings).unwrap_or_default();
    let telemetry = &mut global.telemetry;
    let port = settings.get(&PORT);
    telemetry.collector =
        settings.get(&HOST).map(|(host, secure)| Collector { host, port, secure });
    telemetry.protocol = settings.get_or(&PROTOCOL, telemetry.protocol);
    telemetry.environment = removed.environment;
    if let Some(name) = settings.get(&SERVICE).or(removed.service_name) {
        telemetry.service_name = name;
    }
    let part = settings.get(&RATIO).or_else(|| Ratio::new(0.01));
    let named = settings.get(&SAMPLER).map(|named| match (named, part) {
        (Named::TraceIdRatioBased, Some(part)) => Sampler::TraceIdRatioBased(part),
        (Named::AlwaysOff, _) => Sampler::AlwaysOff,
        (Named::AlwaysOn | Named::TraceIdRatioBased, _) => Sampler::AlwaysOn,
    });
    telemetry.sampler = named.or(removed.sampler).unwrap_or(telemetry.sampler);
    telemetry.parent_based = settings.get_or(&PARENT, telemetry.parent_based);
    if let Some(propagators) = settings.get(&PROPAGATORS).or(removed.propagators) {
        telemetry.propagators = propagators;
    }
    batches(settings, global);
    if settings.scope().raw {
        note(settings, Severity::Warning, NO_SPANS);
    } else if global.telemetry.collector.is_none() {
        note(settings, Severity::Notice, NOWHERE);
    }
}

fn batches(settings: &mut Settings<'_>, global: &mut Global) {
    let batches = &mut global.telemetry.batches;
    batches.queue = settings.get_or(&QUEUE, batches.queue);
    batches.delay = settings.get_or(&DELAY, batches.delay);
    let size = settings.get_or(&BATCH, batches.size);
    batches.size = size.min(batches.queue);
    if size > batches.queue && is_written(settings, BATCH.about.name) {
        let message = format!(
            "is more than otel-max-queuesize: {} spans are sent at once, as many as may wait",
            batches.queue
        );
        settings.note(BATCH.about.name, Severity::Warning, message);
    }
}

/// The Pod's environment is not known to the translation.
const NOWHERE: &str = "needs otlp-collector-host, the name or address of an OpenTelemetry Collector, unless \
    OTEL_EXPORTER_OTLP_ENDPOINT of the container names one: traces travel on, but no span is sent";

/// What the nginx engine makes of tracing.
pub(crate) const NO_SPANS: &str = "has no effect in the nginx engine, since Debian's nginx has no module for it: requests \
    have no spans, and traces of clients pass as they came; use --engine=native, or remove it";

/// Tracing that ends here is worth a word.
fn note(settings: &mut Settings<'_>, severity: Severity, message: &str) {
    for name in ["enable-opentelemetry", opentracing::ENABLE] {
        let text = settings.scope().config_map.and_then(|(_, data)| data.get(name));
        if text.is_some_and(|text| parse::boolean(text.trim()) == Ok(true)) {
            settings.note(name, severity, message.to_owned());
        }
    }
}

fn is_written(settings: &Settings<'_>, name: &str) -> bool {
    settings.scope().config_map.is_some_and(|(_, data)| data.contains_key(name))
}

fn host(text: &str) -> Result<(String, bool), String> {
    let (text, secure) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (_, Some(rest)) => (rest, false),
        _ => (text, false),
    };
    let host = parse::host(text, "otel-collector.otel.svc, and its port in otlp-collector-port")?;
    Ok((host, secure))
}

fn protocol(text: &str) -> Result<OtlpProtocol, String> {
    match text {
        "grpc" => Ok(OtlpProtocol::Grpc),
        "http/protobuf" | "http" => Ok(OtlpProtocol::Http),
        _ => {
            Err("is no protocol of OTLP that is spoken here: write grpc or http/protobuf"
                .to_owned())
        }
    }
}

fn propagators(text: &str) -> Result<Vec<Propagator>, String> {
    let mut found = Vec::new();
    for name in parse::list(text)? {
        let propagator = match name.as_str() {
            "tracecontext" => Propagator::TraceContext,
            "b3" => Propagator::B3,
            "b3multi" => Propagator::B3Multi,
            "jaeger" => Propagator::Jaeger,
            "datadog" => Propagator::Datadog,
            // It always travels on.
            "baggage" => continue,
            _ => {
                return Err(format!(
                    "has the item {name:?}: write tracecontext, b3, b3multi, jaeger or datadog, comma separated"
                ));
            }
        };
        if !found.contains(&propagator) {
            found.push(propagator);
        }
    }
    if found.is_empty() {
        Err("names no propagator: write one such as tracecontext".to_owned())
    } else {
        Ok(found)
    }
}

pub(super) fn template(text: &str) -> Result<Template, String> {
    Template::parse(text)
        .map_err(|unknown| format!("has the {unknown}: remove it, or write one that nginx has"))
}

fn sampler(text: &str) -> Result<Named, String> {
    match text {
        "AlwaysOn" => Ok(Named::AlwaysOn),
        "AlwaysOff" => Ok(Named::AlwaysOff),
        "TraceIdRatioBased" => Ok(Named::TraceIdRatioBased),
        _ => Err("is no sampler: write AlwaysOn, AlwaysOff or TraceIdRatioBased".to_owned()),
    }
}

pub(super) fn ratio(text: &str) -> Result<Ratio, String> {
    let part = text.parse().ok().and_then(Ratio::new);
    part.ok_or_else(|| "is no part of a whole: write a number from 0 to 1, such as 0.01".to_owned())
}

fn spans(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=MOST) => Ok(number),
        _ => Err(format!("is no number of spans: write one from 1 to {MOST}")),
    }
}

fn delay(text: &str) -> Result<Duration, String> {
    const MOST: u64 = i32::MAX as u64;
    match text.parse() {
        Ok(millis @ 1..=MOST) => Ok(Duration::from_millis(millis)),
        _ => Err("is no number of milliseconds: write digits only, such as 5000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{host, propagators, ratio, spans};
    use model::Propagator::{B3, TraceContext};

    #[test]
    fn a_collector_is_a_host_with_or_without_tls() {
        let read = |text| host(text).expect("a host");
        assert_eq!(read("otel-coll.otel.svc"), ("otel-coll.otel.svc".to_owned(), false));
        assert_eq!(read("https://otel.example"), ("otel.example".to_owned(), true));
        assert_eq!(read("http://[2001:db8::1]"), ("2001:db8::1".to_owned(), false));
        for wrong in ["otel:4317", "otel/v1", "", "https://", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn propagators_keep_their_order_and_come_once() {
        assert_eq!(propagators("b3, tracecontext,baggage,b3"), Ok(vec![B3, TraceContext]));
        assert!(propagators("baggage").is_err() && propagators("w3c").is_err());
    }

    #[test]
    fn numbers_have_bounds() {
        assert!(ratio("0.5").is_ok() && ratio("1.5").is_err() && ratio("NaN").is_err());
        assert!(spans("65536").is_ok() && spans("65537").is_err() && spans("0").is_err());
    }
}
