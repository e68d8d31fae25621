//! Traces: which requests are recorded, what their spans say, and how both get to others. What is off costs a request
//! one look at its location's policy; what is on, a few numbers and strings. Everything else happens on a thread of its
//! own, which starts with the first span.

mod context;
mod environment;
mod export;
pub(crate) mod propagation;
mod queue;
mod record;
mod sampler;
mod waiting;

pub(crate) use context::{Context, SpanId, TraceId};
pub use environment::OtlpEnvironment;
pub(crate) use export::Destination;
pub(crate) use queue::Counts;
pub use queue::Spans;
pub(crate) use record::{Kind, Record, Value, bounded};

use export::Exporter;
use model::{Propagator, Telemetry};
use propagation::{Carried, Incoming};
use sampler::Decider;
use std::sync::Arc;
use std::time::Duration;
use wire::Headers;

/// Settings of tracing, compiled. It outlives generations that do not change them.
#[derive(Debug)]
pub struct Tracer {
    decider: Decider,
    propagators: Vec<Propagator>,
    exporter: Option<Exporter>,
}

/// What outlives every tracer.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    /// What the environment says about collectors.
    pub environment: OtlpEnvironment,
    /// What became of spans.
    pub counts: Arc<Counts>,
}

/// The span of a request, as long as it lasts.
#[derive(Debug)]
pub struct Span {
    /// Itself, as variables and authenticators are told of it.
    pub context: Context,
    /// The span that asks.
    pub parent: Option<SpanId>,
    /// The span of the last try at an upstream; itself before the first.
    pub attempt: SpanId,
    carried: Carried,
    tracer: Arc<Tracer>,
}

/// Numbers for new traces and spans.
pub trait Numbers {
    /// 128 random bits.
    fn trace(&self) -> TraceId;
    /// 64 random bits.
    fn span(&self) -> SpanId;
}

impl Tracing {
    /// A tracer with these settings.
    pub(crate) fn tracer(&self, settings: &Telemetry) -> Arc<Tracer> {
        let destination = Destination::of(settings, &self.environment);
        let exporter = destination
            .map(|destination| Exporter::new(destination, settings.batches, self.counts.clone()));
        Arc::new(Tracer {
            decider: Decider::new(settings),
            propagators: settings.propagators.clone(),
            exporter,
        })
    }
}

impl Tracer {
    /// Begins the span of a request with this header section, whose sender is believed or not.
    pub fn begin(
        self: &Arc<Self>,
        headers: &Headers,
        trusts_client: bool,
        numbers: &impl Numbers,
    ) -> Span {
        let incoming =
            trusts_client.then(|| propagation::extract(&self.propagators, headers)).flatten();
        let Incoming { parent, sampled, carried } = incoming.unwrap_or(Incoming {
            parent: None,
            sampled: None,
            carried: Carried::default(),
        });
        let trace = parent.map_or_else(|| numbers.trace(), |(trace, _)| trace);
        let sampled = self.decider.decides(trace, sampled);
        let span = numbers.span();
        Span {
            context: Context { trace, span, sampled },
            parent: parent.map(|(_, span)| span),
            attempt: span,
            carried,
            tracer: self.clone(),
        }
    }

    /// Waits until the spans that wait are sent, but not for ever. There will be no others.
    pub fn settle(&self, patience: Duration) {
        if let Some(exporter) = &self.exporter {
            exporter.settle(patience);
        }
    }
}

impl Span {
    /// Tells somebody that this span of the trace asks.
    pub fn inject(&self, span: SpanId, put: impl FnMut(&'static str, &[u8])) {
        let context = Context { span, ..self.context };
        propagation::inject(&self.tracer.propagators, &context, &self.carried, put);
    }

    /// Whether a field of the client is replaced by what is told of the span.
    pub fn replaces(&self, name: &[u8]) -> bool {
        propagation::owns(&self.tracer.propagators, name)
    }

    /// The state of its trace, for a variable.
    pub fn tracestate(&self) -> &[u8] {
        &self.carried.tracestate
    }

    /// Whether anybody wants to know of it once it is over.
    pub fn is_recorded(&self) -> bool {
        self.context.sampled && self.tracer.exporter.is_some()
    }

    /// Hands over what there is to know of a request of this namespace. Never waits; what is too much is dropped and
    /// counted.
    pub fn record(&self, owner: Option<&Arc<str>>, record: Record) {
        if let Some(exporter) = &self.tracer.exporter {
            exporter.push(owner.cloned(), record);
        }
    }
}

#[cfg(test)]
mod tests;
