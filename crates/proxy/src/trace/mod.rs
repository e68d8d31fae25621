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
use http::StatusCode;
use model::UpstreamId;
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

    /// The status that an error page stands in for, and whose it is.
    fn page(&self) -> Option<(StatusCode, Option<UpstreamId>)> {
        self.exchange.trace.as_ref()?.page.borrow().clone()
    }

    /// The status before an error page stood in for it.
    fn status(&self, response: &Response) -> u16 {
        self.page().map_or(response.status, |(status, _)| status).as_u16()
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
    error_page(&mut story);
    answer(&mut story, response);
    story.decisions
}

/// Who words the answer in place of whom it is of.
fn error_page(story: &mut Story<'_>) {
    let Some((status, by)) = story.page() else { return };
    let whose = match &by {
        Some(by) => by.as_str(),
        None => "the built-in default backend",
    };
    let outcome = format!("{} is answered by {whose}", status.as_u16());
    story.say_of("error page", outcome, "custom-http-errors".to_owned());
}

fn answer(story: &mut Story<'_>, response: &Response) {
    let dry = story.exchange.trace.as_ref().is_some_and(|trace| trace.dry);
    if dry && let Some((_, by)) = story.page() {
        let outcome = match by {
            Some(_) => "the error page's, with these fields besides",
            None => "404 Not Found made by Fairway, with these fields besides",
        };
        story.say("answer", outcome);
    } else if dry && response.source == Source::Upstream {
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
