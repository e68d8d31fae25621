//! The keys of OpenTracing, which ingress-nginx has removed: what they ask for, as far as OTLP and today's propagators
//! can carry it. They count where `enable-opentracing` is true and `enable-opentelemetry` is absent, so that what was
//! left over by somebody who has moved on changes nothing.

use super::Area;
use super::opentelemetry::{ratio, template};
use crate::settings::{Key, Settings, parse};
use model::{Propagator, Ratio, Sampler, Severity, Template};

pub(super) const AREA: Area = Area {
    name: "opentracing",
    keys: &[
        &ON,
        &NAME,
        &LOCATION_NAME,
        &TRUST,
        &ZIPKIN_SERVICE,
        &ZIPKIN_RATE,
        &JAEGER_SERVICE,
        &JAEGER_FORMAT,
        &JAEGER_SAMPLER,
        &JAEGER_PARAMETER,
        &DATADOG_SERVICE,
        &DATADOG_ENVIRONMENT,
        &DATADOG_NAME,
        &DATADOG_PRIORITY,
        &DATADOG_RATE,
    ],
    apply: |_, _| {},
};

/// The name of the key that all others hang on.
pub(super) const ENABLE: &str = "enable-opentracing";

pub(crate) static ON: Key<bool> = Key::config_map(ENABLE, parse::boolean).switch(
    false,
    "Removed from ingress-nginx. Counts as enable-opentelemetry where that is absent, and then the keys of OpenTracing \
     count where those of OpenTelemetry are absent.",
);
pub(crate) static NAME: Key<Template> = Key::config_map("opentracing-operation-name", template)
    .says(
        "text with variables",
        "none",
        "Removed from ingress-nginx. Counts as opentelemetry-operation-name.",
    );
pub(crate) static LOCATION_NAME: Key<Template> =
    Key::config_map("opentracing-location-operation-name", template).says(
        "text with variables",
        "none",
        "Removed from ingress-nginx. Counts as opentelemetry-operation-name, after opentracing-operation-name.",
    );
pub(crate) static TRUST: Key<bool> =
    Key::config_map("opentracing-trust-incoming-span", parse::boolean)
        .switch(true, "Removed from ingress-nginx. Counts as opentelemetry-trust-incoming-span.");

const SERVICE: &str = "Removed from ingress-nginx. Counts as otel-service-name.";
const RATE: &str =
    "Removed from ingress-nginx. Counts as TraceIdRatioBased with this otel-sampler-ratio.";

static ZIPKIN_SERVICE: Key<String> =
    Key::config_map("zipkin-service-name", parse::text).says("text", "nginx", SERVICE);
static ZIPKIN_RATE: Key<Ratio> =
    Key::config_map("zipkin-sample-rate", ratio).says("number from 0 to 1", "1.0", RATE);
static JAEGER_SERVICE: Key<String> =
    Key::config_map("jaeger-service-name", parse::text).says("text", "nginx", SERVICE);
static JAEGER_FORMAT: Key<Propagator> = Key::config_map("jaeger-propagation-format", format).says(
    "jaeger, b3 or w3c",
    "jaeger",
    "Removed from ingress-nginx. Counts as opentelemetry-propagators jaeger, b3multi or tracecontext.",
);
static JAEGER_SAMPLER: Key<JaegerSampler> = Key::config_map("jaeger-sampler-type", sampler).says(
    "const or probabilistic",
    "const",
    "Removed from ingress-nginx. Counts as otel-sampler, with jaeger-sampler-param.",
);
static JAEGER_PARAMETER: Key<Ratio> = Key::config_map("jaeger-sampler-param", ratio).says(
    "number from 0 to 1",
    "1",
    "Removed from ingress-nginx. Counts with jaeger-sampler-type: const records everything unless it is 0, probabilistic \
     this part.",
);
static DATADOG_SERVICE: Key<String> =
    Key::config_map("datadog-service-name", parse::text).says("text", "nginx", SERVICE);
static DATADOG_ENVIRONMENT: Key<String> = Key::config_map("datadog-environment", parse::text).says(
    "text",
    "none",
    "Removed from ingress-nginx. Counts as the attribute deployment.environment of all spans.",
);
pub(crate) static DATADOG_NAME: Key<Template> =
    Key::config_map("datadog-operation-name-override", template).says(
        "text with variables",
        "none",
        "Removed from ingress-nginx. Counts as opentelemetry-operation-name.",
    );
static DATADOG_PRIORITY: Key<bool> =
    Key::config_map("datadog-priority-sampling", parse::boolean).switch(
        true,
        "Removed from ingress-nginx. Counts as otel-sampler AlwaysOn; false: datadog-sample-rate counts.",
    );
static DATADOG_RATE: Key<Ratio> =
    Key::config_map("datadog-sample-rate", ratio).says("number from 0 to 1", "1.0", RATE);

/// What the removed keys ask for.
#[derive(Debug, Default)]
pub(crate) struct OpenTracing {
    pub(crate) trusts_client: Option<bool>,
    pub(crate) operation_name: Option<Template>,
    pub(super) service_name: Option<String>,
    pub(super) environment: Option<String>,
    pub(super) sampler: Option<Sampler>,
    pub(super) propagators: Option<Vec<Propagator>>,
}

/// Jaeger's samplers that need nobody else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JaegerSampler {
    Const,
    Probabilistic,
}

/// What the removed keys ask for, where they count.
pub(crate) fn read(settings: &mut Settings<'_>) -> Option<OpenTracing> {
    if !counts(settings) {
        return None;
    }
    let common = OpenTracing {
        trusts_client: settings.get(&TRUST),
        operation_name: settings.get(&NAME).or_else(|| settings.get(&LOCATION_NAME)),
        ..OpenTracing::default()
    };
    Some(match tracer(settings) {
        Some("zipkin") => zipkin(settings, common),
        Some("jaeger") => jaeger(settings, common),
        Some(_) => datadog(settings, common),
        None => common,
    })
}

/// The tracer that counts: the first that has a collector, as in ingress-nginx.
fn tracer(settings: &Settings<'_>) -> Option<&'static str> {
    let collectors = [
        ("zipkin", "zipkin-collector-host"),
        ("jaeger", "jaeger-collector-host"),
        ("jaeger", "jaeger-endpoint"),
        ("datadog", "datadog-collector-host"),
    ];
    collectors.into_iter().find(|(_, key)| written(settings, key).is_some()).map(|(name, _)| name)
}

/// Says of every removed key that is written what it counts as.
pub(super) fn note(settings: &mut Settings<'_>) {
    let counts = counts(settings);
    let counted = tracer(settings);
    for key in AREA.keys {
        let about = key.about();
        if written(settings, about.name).is_none() {
            continue;
        }
        let own =
            ["zipkin", "jaeger", "datadog"].into_iter().find(|own| about.name.starts_with(own));
        let message = match own {
            _ if !counts => "has no effect: ingress-nginx has removed it, and it counts only where enable-opentracing is \
                 true and enable-opentelemetry is absent"
                .to_owned(),
            Some(own) if counted != Some(own) => format!(
                "has no effect: ingress-nginx has removed it, and it counts only where {own} is the tracer, the first of \
                 zipkin, jaeger and datadog that has a collector"
            ),
            _ => format!(
                "ingress-nginx has removed it; here it c{}",
                about.doc.trim_start_matches("Removed from ingress-nginx. C").trim_end_matches('.')
            ),
        };
        settings.note(about.name, Severity::Notice, message);
    }
}

fn counts(settings: &mut Settings<'_>) -> bool {
    written(settings, "enable-opentelemetry").is_none() && settings.get(&ON) == Some(true)
}

fn written<'a>(settings: &Settings<'a>, name: &str) -> Option<&'a str> {
    let (_, data) = settings.scope().config_map?;
    data.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

fn zipkin(settings: &mut Settings<'_>, common: OpenTracing) -> OpenTracing {
    OpenTracing {
        service_name: settings.get(&ZIPKIN_SERVICE),
        sampler: settings.get(&ZIPKIN_RATE).map(Sampler::TraceIdRatioBased),
        propagators: Some(vec![Propagator::B3Multi]),
        ..common
    }
}

fn jaeger(settings: &mut Settings<'_>, common: OpenTracing) -> OpenTracing {
    let kind = settings.get_or(&JAEGER_SAMPLER, JaegerSampler::Const);
    let sampler = settings.get(&JAEGER_PARAMETER).map(|part| match kind {
        JaegerSampler::Probabilistic => Sampler::TraceIdRatioBased(part),
        JaegerSampler::Const if part.part() == 0.0 => Sampler::AlwaysOff,
        JaegerSampler::Const => Sampler::AlwaysOn,
    });
    OpenTracing {
        service_name: settings.get(&JAEGER_SERVICE),
        sampler,
        propagators: Some(vec![settings.get_or(&JAEGER_FORMAT, Propagator::Jaeger)]),
        ..common
    }
}

fn datadog(settings: &mut Settings<'_>, common: OpenTracing) -> OpenTracing {
    let by_rate = settings.get(&DATADOG_PRIORITY) == Some(false);
    let rate = settings.get(&DATADOG_RATE).filter(|_| by_rate);
    OpenTracing {
        operation_name: common.operation_name.or_else(|| settings.get(&DATADOG_NAME)),
        service_name: settings.get(&DATADOG_SERVICE),
        environment: settings.get(&DATADOG_ENVIRONMENT),
        sampler: rate.map(Sampler::TraceIdRatioBased),
        propagators: Some(vec![Propagator::Datadog]),
        trusts_client: common.trusts_client,
    }
}

fn format(text: &str) -> Result<Propagator, String> {
    match text {
        "jaeger" => Ok(Propagator::Jaeger),
        "b3" => Ok(Propagator::B3Multi),
        "w3c" => Ok(Propagator::TraceContext),
        _ => Err("is no format of Jaeger: write jaeger, b3 or w3c".to_owned()),
    }
}

fn sampler(text: &str) -> Result<JaegerSampler, String> {
    match text {
        "const" => Ok(JaegerSampler::Const),
        "probabilistic" => Ok(JaegerSampler::Probabilistic),
        "ratelimiting" | "remote" => {
            Err("needs Jaeger's own client: use otel-sampler TraceIdRatioBased with \
                                          otel-sampler-ratio"
                .to_owned())
        }
        _ => Err("is no sampler of Jaeger: write const or probabilistic".to_owned()),
    }
}
