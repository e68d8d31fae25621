//! Why a request went where it went: what each phase decided, and who asked for it. Made after the fact, from what the
//! phases leave in the exchange, so that a request that nobody asks about pays for one byte: the phase it is in.

mod canaries;
mod copies;
mod guards;
mod kept;
mod live;
mod near_misses;
mod routing;
mod sampled;
mod shown;
mod snippets;
mod spelling;
mod towards_upstream;

pub(crate) use kept::{Asked, Phase, Trace};
pub use kept::{Decision, Nobody, Wanted};
pub(crate) use live::{begin, end};
pub use routing::CONFIGURED as CONFIGURED_REDIRECTS;
pub use sampled::Sample;
pub(crate) use sampled::Sampled;

use crate::exchange::Exchange;
use wire::{Response, Source};

/// Decisions as they are told.
struct Story<'a> {
    exchange: &'a Exchange,
    decisions: Vec<Decision>,
}

impl Story<'_> {
    fn say(&mut self, step: &'static str, outcome: impl Into<String>) {
        self.decisions.push(Decision { step, outcome: outcome.into(), by: None, nobody: None });
    }

    /// A decision, and who asks for it.
    fn say_of(&mut self, step: &'static str, outcome: impl Into<String>, by: String) {
        let (outcome, by) = (outcome.into(), Some(by));
        self.decisions.push(Decision { step, outcome, by, nobody: None });
    }

    /// A decision that an annotation of the location's Ingress asks for.
    fn say_by(&mut self, step: &'static str, outcome: impl Into<String>, annotation: &str) {
        let place = self.exchange.place.as_ref();
        let origin = place.and_then(|place| place.spot().location.origin.as_deref());
        let by = match origin {
            Some(origin) => format!("{annotation} of {origin}"),
            None => format!("{annotation} of the ConfigMap"),
        };
        self.say_of(step, outcome, by);
    }

    /// It was decided last that nobody is there: what was decided, without why.
    fn lacks(&mut self, wanted: Wanted, decided: String) {
        if let Some(last) = self.decisions.last_mut() {
            last.nobody = Some(Nobody { wanted, decided });
        }
    }

    /// Whether a phase was entered.
    fn reached(&self, phase: Phase) -> bool {
        self.exchange.phase >= phase
    }

    /// Whether a phase ended the request.
    fn ended(&self, phase: Phase) -> bool {
        self.exchange.phase == phase
    }
}

/// What became of a request, from the first phase to the answer.
pub(crate) fn decisions(exchange: &Exchange, response: &Response) -> Vec<Decision> {
    let mut story = Story { exchange, decisions: Vec::new() };
    routing::tell(&mut story, response);
    guards::tell(&mut story, response);
    towards_upstream::tell(&mut story);
    answer(&mut story, response);
    story.decisions
}

fn answer(story: &mut Story<'_>, response: &Response) {
    let dry = story.exchange.trace.as_ref().is_some_and(|trace| trace.dry);
    if dry && response.source == Source::Upstream {
        let outcome = "the upstream's, with these fields in place of its own of these names";
        story.say("answer", outcome);
    } else {
        let who = match response.source {
            Source::Own => "made by Fairway",
            Source::Upstream => "of the upstream",
        };
        story.say("answer", format!("{} {who}", response.status));
    }
    for field in response.headers.iter() {
        let name = String::from_utf8_lossy(field.name);
        let value = String::from_utf8_lossy(field.value);
        story.say("answer field", shown::field(story.exchange, &name, &value));
    }
}
