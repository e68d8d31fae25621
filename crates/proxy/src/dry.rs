//! Many requests that are only thought through: the phases run as for real ones, but nothing is sent to anybody, and
//! what was decided is told as values instead of lines. Made for the verdict on access logs.

use crate::end::End;
use crate::exchange::{Exchange, Place};
use crate::explain::{Question, Unanswerable, compiled, exchange, worker};
use crate::generation::Generation;
use crate::phases;
use crate::worker::Worker;
use model::{Configuration, Location, ServerName};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::LocalSet;
use wire::{Response, Source};

/// A Configuration, ready to be asked about many requests by one thread.
#[derive(Debug)]
pub struct DryRun {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
    generation: Arc<Generation>,
    worker: Rc<Worker>,
}

/// What became of a request.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status, if the upstream answered 200.
    pub status: u16,
    /// Whether it went to an upstream.
    pub sent: bool,
    /// Where it ended.
    pub end: End,
    /// The server that answers, and the index of its location; a location of a Gateway has the host of its route.
    pub server: Option<(ServerName, usize)>,
    /// The location that answers.
    pub location: Option<Arc<Location>>,
    /// The upstream that it went to, or would have gone to from that location.
    pub upstream: Option<String>,
    /// Whether `default-backend` stood in.
    pub stands_in: bool,
    /// The Location of the answer.
    pub leads_to: Option<String>,
    /// Whether the path had dot segments, so that another one than the client's is forwarded.
    pub dotted: bool,
}

impl DryRun {
    /// Compiles a Configuration; `ports` are those for HTTP and HTTPS, as clients see them.
    pub fn new(configuration: &Configuration, ports: (u16, u16)) -> Result<Self, Unanswerable> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Unanswerable::Configuration(error.to_string()))?;
        let local = LocalSet::new();
        let (generation, worker) = local.block_on(&runtime, async {
            let generation = compiled(configuration)?;
            let worker = worker(&generation, ports)?;
            Ok((generation, worker))
        })?;
        Ok(Self { runtime, local, generation, worker })
    }

    /// What would become of a request.
    pub fn ask(&self, question: Question) -> Outcome {
        self.local.block_on(&self.runtime, self.follow(question))
    }

    async fn follow(&self, question: Question) -> Outcome {
        let mut exchange = match exchange(question, &self.worker, self.generation.clone()) {
            Ok(exchange) => exchange,
            Err(Unanswerable::BadRequest(status)) => return unread(status.as_u16()),
            Err(Unanswerable::Configuration(_)) => return unread(500),
        };
        let response = phases::serve(&mut exchange).await;
        Outcome::of(&exchange, &response)
    }
}

impl Outcome {
    /// What became of a request that nothing was sent for.
    pub(crate) fn of(exchange: &Exchange, response: &Response) -> Self {
        let leads_to = response.headers.get("location");
        let place = exchange.place.as_ref();
        Self {
            status: response.status.as_u16(),
            sent: response.source == Source::Upstream,
            end: exchange.phase.into(),
            upstream: upstream(exchange),
            stands_in: exchange.visit.stands_in,
            leads_to: leads_to.map(|value| String::from_utf8_lossy(value).into_owned()),
            dotted: exchange.dotted,
            location: place.map(|place| place.spot().location.clone()),
            server: place.map(|place| (place.site.server.name.clone(), location_index(place))),
        }
    }
}

/// The index of a location among those of its server. An `if` block of a snippet is a part of the one that it stands
/// in, with the same path and the same guards.
fn location_index(place: &Place) -> usize {
    let (locations, here) = (&place.site.server.locations, &place.spot().location);
    let is_around = |own: &Arc<Location>| {
        (&own.path, own.kind, &own.origin) == (&here.path, here.kind, &here.origin)
    };
    let around = || locations.iter().position(is_around);
    if place.index() < locations.len() { place.index() } else { around().unwrap_or(place.index()) }
}

fn unread(status: u16) -> Outcome {
    Outcome {
        status,
        sent: false,
        end: End::Unread,
        server: None,
        location: None,
        upstream: None,
        stands_in: false,
        leads_to: None,
        dotted: false,
    }
}

/// The upstream that a request is sent to: the canary, who stands in, whom a snippet names, or the location's.
fn upstream(exchange: &Exchange) -> Option<String> {
    let spot = exchange.place.as_ref()?.spot();
    let group = match spot.extras().canary.as_deref().filter(|_| exchange.visit.canary) {
        Some(canary) => Some(&canary.group),
        None if exchange.visit.stands_in => spot.extras().stand_in.as_ref().map(|it| &it.group),
        None => exchange.visit.named.as_ref().or(spot.group.as_ref()),
    };
    group.map(|group| group.id.as_str().to_owned())
}
