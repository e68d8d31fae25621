//! Where spans go, which of them, and how traces travel on: what is not a matter of one location
//! (`otlp-*`, `otel-*`; compat/configmap.csv).

use serde::{Serialize, Serializer};
use std::time::Duration;

/// How traces are made and sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Telemetry {
    /// `otlp-collector-host`; none: where the environment says (`OTEL_EXPORTER_OTLP_ENDPOINT`), if it does.
    pub collector: Option<Collector>,
    /// `otlp-protocol`.
    pub protocol: OtlpProtocol,
    /// `otel-service-name`.
    pub service_name: String,
    /// The attribute `deployment.environment` of everything sent.
    pub environment: Option<String>,
    /// `otel-sampler`.
    pub sampler: Sampler,
    /// `otel-sampler-parent-based`: whoever began the trace decides, if it is believed.
    pub parent_based: bool,
    /// Spans on their way out.
    pub batches: Batches,
    /// `opentelemetry-propagators`: the header fields that carry a trace, the most believed first.
    pub propagators: Vec<Propagator>,
}

/// Who takes spans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Collector {
    /// Address or name.
    pub host: String,
    /// `otlp-collector-port`; none: that of the protocol.
    pub port: Option<u16>,
    /// Whether TLS is spoken.
    pub secure: bool,
}

/// How spans are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum OtlpProtocol {
    /// gRPC.
    #[default]
    Grpc,
    /// Protocol buffers as bodies of HTTP/1.1 requests.
    Http,
}

/// Which requests are recorded, where nobody has decided it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Sampler {
    /// All.
    AlwaysOn,
    /// None.
    AlwaysOff,
    /// This part of all traces, by their ids.
    TraceIdRatioBased(Ratio),
}

/// A part of a whole, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

/// Spans on their way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Batches {
    /// `otel-max-queuesize`: spans that may wait.
    pub queue: usize,
    /// `otel-max-export-batch-size`: spans sent at once.
    pub size: usize,
    /// `otel-schedule-delay-millis`: how long the first of them waits.
    pub delay: Duration,
}

/// Header fields that carry a trace from one process to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Propagator {
    /// `traceparent` and `tracestate` (W3C Trace Context).
    TraceContext,
    /// `b3`.
    B3,
    /// `X-B3-TraceId` and its like.
    B3Multi,
    /// `uber-trace-id`.
    Jaeger,
    /// `x-datadog-trace-id` and its like.
    Datadog,
}

impl Ratio {
    const WHOLE: u32 = 1_000_000_000;

    /// A number from 0 to 1.
    pub fn new(part: f64) -> Option<Self> {
        // Within the range, and not negative: nothing is lost that counts.
        (0.0..=1.0).contains(&part).then(|| Self((part * f64::from(Self::WHOLE)).round() as u32))
    }

    /// The number.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.part())
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            collector: None,
            protocol: OtlpProtocol::Grpc,
            service_name: "nginx".to_owned(),
            environment: None,
            sampler: Sampler::AlwaysOn,
            parent_based: true,
            batches: Batches::default(),
            propagators: vec![Propagator::TraceContext],
        }
    }
}

impl Default for Batches {
    fn default() -> Self {
        Self { queue: 2048, size: 512, delay: Duration::from_secs(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn a_ratio_is_between_nothing_and_all() {
        assert_eq!(Ratio::new(0.01).map(Ratio::part), Some(0.01));
        assert_eq!(Ratio::new(1.0).map(Ratio::part), Some(1.0));
        for wrong in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::new(wrong), None, "{wrong}");
        }
    }
}
