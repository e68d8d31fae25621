//! Why a request went where it went: what each phase decided, and who asked for it. Made after the fact, from what the
//! phases leave in the exchange, so that a request that nobody asks about pays for one byte: the phase it is in.

mod guards;
mod live;
mod near_misses;
mod routing;
mod towards_upstream;

pub use live::{begin, end};

use crate::exchange::Exchange;
use crate::http::{Response, Source};
use crate::upstream::Head;
use serde::Serialize;
use std::cell::RefCell;

/// The phases of a request, in nginx's order (compat/behaviour.md section 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The client's address, and what it is believed.
    #[default]
    Client,
    /// Block lists.
    Blocks,
    /// The server and location.
    Location,
    /// `/` to the application's root.
    AppRoot,
    /// Answers to preflight requests.
    Preflight,
    /// Configured redirects.
    Redirect,
    /// The path towards the upstream.
    Rewrite,
    /// To HTTPS.
    HttpsRedirect,
    /// Whether anybody is there.
    Endpoints,
    /// Rates and connections.
    Limits,
    /// Addresses, passwords, authenticators.
    Access,
    /// The request's body.
    Body,
    /// Main side or canary, and the upstream.
    Upstream,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What was decided about.
    pub step: &'static str,
    /// What was decided.
    pub outcome: String,
    /// The annotation, key or field, and the object that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What is kept while a request is followed.
#[derive(Debug, Default)]
pub struct Trace {
    /// Nothing is sent to anybody: authenticators are taken to agree, the upstream to answer 200.
    pub dry: bool,
    /// The head that went, or would go, to the upstream.
    pub head: RefCell<Option<String>>,
    /// The authenticators that were asked, or would be.
    pub asked: RefCell<Vec<String>>,
}

impl Trace {
    /// Keeps the head that goes to the upstream.
    pub fn note_head(&self, head: &Head) {
        let text = match head {
            Head::Http1(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Head::Http2(request) => {
                let fields = request.headers().iter().map(|(name, value)| {
                    format!("\n{name}: {}", String::from_utf8_lossy(value.as_bytes()))
                });
                format!("{} {}{}", request.method(), request.uri(), fields.collect::<String>())
            }
            Head::FastCgi(_) => "FastCGI parameters".to_owned(),
        };
        *self.head.borrow_mut() = Some(text);
    }
}

/// Decisions as they are told.
struct Story<'a> {
    exchange: &'a Exchange,
    decisions: Vec<Decision>,
}

impl Story<'_> {
    fn say(&mut self, step: &'static str, outcome: impl Into<String>) {
        self.decisions.push(Decision { step, outcome: outcome.into(), by: None });
    }

    /// A decision that an annotation of the location's Ingress asks for.
    fn say_by(&mut self, step: &'static str, outcome: impl Into<String>, annotation: &str) {
        let place = self.exchange.place.as_ref();
        let origin = place.and_then(|place| place.spot().location.origin.as_ref());
        let by = match origin {
            Some(origin) => format!("{annotation} of {origin}"),
            None => format!("{annotation} of the ConfigMap"),
        };
        self.decisions.push(Decision { step, outcome: outcome.into(), by: Some(by) });
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
pub fn decisions(exchange: &Exchange, response: &Response) -> Vec<Decision> {
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
        let name = String::from_utf8_lossy(&field.name);
        let value = String::from_utf8_lossy(&field.value);
        story.say("answer field", format!("{name}: {value}"));
    }
}
