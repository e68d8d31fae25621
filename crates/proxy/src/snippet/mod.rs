//! Snippets in the native engine: what their values (`model::snippet`) do to a request.
//!
//! Where no snippet counts for a host, there is none of this: [`Site::snippet`](crate::generation::Site),
//! [`Spot::snippet`](crate::generation::Spot) and [`Exchange::snippet`] are `None`. The same holds for a location that
//! none counts for, beside others of its host that have some, unless a request comes there from one of those.
//!
//! Everything else that nginx has settings for is a [`Spot`](crate::generation::Spot) with a [`Level`] once a host has
//! snippets: its locations, those that snippets have, each `if` block (nginx: a nameless location) and the server
//! itself, before a location is found. Entering one of them is another number in the exchange's place; what is
//! inherited is worked out once for each generation, and settings that the rest of the engine knows as a policy
//! (time-outs, sizes, retries) are part of the spot's policy already.
//!
//! - *The settings in force*: [`Exchange::level`]; what it holds counts over what the controller says by itself.
//! - *A machine* for templates, conditions and variables: [`on_machine`]. Its steps are those of the request, its own
//!   variables live as long as the request; what exceeds its bounds is [`Error::SnippetTooHard`]: 500.

mod addresses;
mod answer_headers;
mod charset;
mod effects;
mod expires;
#[cfg(test)]
mod fixture;
mod heads;
mod http_level;
mod input_headers;
mod level;
mod limits;
mod lower;
pub(crate) mod mime;
mod plan;
mod request;
mod rewrites;
mod servers;
mod sub_filter;
mod text;
mod towards;
mod upstream_tls;

pub(crate) use addresses::lets_in;
pub(crate) use answer_headers::AnswerHeaders;
pub(crate) use effects::{Compressing, Effects, Size};
pub(crate) use expires::second_of;
pub(crate) use heads::{Heads, Said as HeadsSaid, judge as judge_head};
pub(crate) use http_level::{inherits_other, of_http_level};
pub(crate) use input_headers::InputField;
pub(crate) use level::{Level, OfSite};
pub(crate) use limits::{Full, Judgement};
pub(crate) use lower::transferred;
pub(crate) use plan::Plan;
pub(crate) use servers::{OwnServers, expressions};
pub(crate) use text::{AllPlain, Fill, bytes_of};
pub(crate) use towards::{Told, Towards, is_authority};

use crate::error::Error;
use crate::exchange::{Counted, Exchange, Place};
use crate::known::Forwarded;
use crate::under_way::Programs;
use bytes::Bytes;
use model::Steps;
use snippet::run::{Exceeded, Machine, State, Tables};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use wire::{Headers, Length};

/// What snippets know of one request.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// Path, query, variables, groups and bounds.
    pub state: State,
    /// The location of an Ingress that the request met last, a number of its site: what the controller sets for it
    /// stays set in locations that snippets have.
    pub ingress: Option<usize>,
    /// Whether the answer was made by `return` with a text: then it is no error, whatever its status is.
    pub said: bool,
    /// The length of its body, where the client has announced one.
    pub announced: Option<u64>,
    /// Whether an `error_page` was looked for.
    pub paged: bool,
    /// The status that an `error_page` shows.
    pub shown: Option<u16>,
    /// Whether the connection ends after the answer, since an error has led here.
    pub close: bool,
    /// `$limit_req_status`, once limits were asked.
    pub request_limit: &'static str,
    /// `$limit_conn_status`, once limits were asked.
    pub connection_limit: &'static str,
    /// What settings have made of it.
    pub(crate) of_request: OfRequest,
    /// What of it counts among what requests hold.
    held: Option<Programs>,
}

/// What settings have made of one request.
#[derive(Debug, Default)]
pub(crate) struct OfRequest {
    /// What the upstream is told.
    pub told: Told,
    /// Parameters for a FastCGI upstream.
    pub params: Vec<(Bytes, Bytes)>,
    /// Script and rest of the path for a FastCGI upstream, where parameters may ask for them.
    pub script: Option<(Vec<u8>, Vec<u8>)>,
    /// For which namespaces limits have counted it.
    pub counted: Counted,
    /// What the client said, and to which host, where snippets have changed that since: it says who the client is.
    pub heard: Option<(Headers, Bytes)>,
    /// How its client came in, where snippets have said it otherwise since.
    pub came: Option<Rc<Forwarded>>,
    /// Steps that the expressions of `valid_referers` have taken.
    pub steps_of_referers: Cell<usize>,
}

impl Running {
    /// For a request whose path is known; where it was led to another path, the state goes on with that.
    pub(crate) fn begin_or_follow(exchange: &mut Exchange) {
        let raw = exchange.request.raw_path();
        let quoted = raw.iter().any(|byte| matches!(byte, b'%' | b'+'));
        let query = exchange.request.query().unwrap_or_default();
        let (path, query) = (route::path::text(&exchange.path), route::path::text(query));
        if let Some(running) = &mut exchange.snippet {
            let state = &mut running.state;
            (state.path, state.query) = (path.into_owned(), query.into_owned());
            (state.quoted, state.rewritten, state.requeried) = (quoted, false, false);
            // The server's program is not the one that led here.
            state.owner = None;
            return;
        }
        let mut state = State::new(&path, &query, quoted);
        state.story = exchange.trace.is_some().then(Vec::new);
        let announced = match exchange.request.body.length() {
            Length::Known(length) if length > 0 => Some(length),
            _ => None,
        };
        exchange.snippet = Some(Box::new(Self { state, announced, ..Self::default() }));
    }

    /// Path and query are these from here on, which the controller made of them.
    pub(crate) fn follow(&mut self, target: &[u8]) {
        let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
        let (path, query) = (&target[..end], target.get(end + 1..).unwrap_or_default());
        // It was canonical before it was escaped.
        if let Ok(canonical) = route::path::canonical(path) {
            self.state.path = canonical.text().into_owned();
        }
        self.state.query = route::path::text(query).into_owned();
        self.state.rewritten = true;
    }
}

impl Exchange {
    /// What snippets say where the request is: at its location, or in the last `if` that was entered. Whoever comes
    /// to where they say something has state of them, so that one look suffices for all others.
    pub(crate) fn level(&self) -> Option<&Level> {
        self.snippet.as_ref()?;
        self.place.as_ref()?.spot().extras().snippet.as_deref()
    }
}

/// Does something on a machine for a request; nothing where no snippet counts for it.
pub(crate) fn on_machine<T>(
    exchange: &mut Exchange,
    work: impl FnOnce(&mut Machine<'_, Exchange>) -> Result<T, Exceeded>,
) -> Result<Option<T>, Error> {
    with_state(exchange, |exchange, state, tables| {
        let mut machine = Machine::new(exchange, state, tables);
        let done = work(&mut machine);
        (done, machine.state)
    })
}

/// Does something with the state of a request, which is given back; nothing where no snippet counts for it.
pub(crate) fn with_state<T>(
    exchange: &mut Exchange,
    work: impl FnOnce(&Exchange, State, &Tables) -> (Result<T, Exceeded>, State),
) -> Result<Option<T>, Error> {
    let Some(running) = &mut exchange.snippet else { return Ok(None) };
    let mut state = std::mem::take(&mut running.state);
    state.steps_of_patterns = std::mem::replace(&mut exchange.steps, Steps::new(0));
    let tables = exchange.generation.tables.clone();
    let (done, mut state) = work(exchange, state, &tables);
    exchange.steps = std::mem::replace(&mut state.steps_of_patterns, Steps::new(0));
    let has_room = give_back(exchange, state);
    match done {
        Ok(_) if !has_room => Err(Error::SnippetsHoldAll(exchange.host.to_string())),
        Ok(done) => Ok(Some(done)),
        Err(Exceeded) => Err(Error::SnippetTooHard(exchange.host.to_string())),
    }
}

/// Room for so many bytes that the body of an answer keeps, until what is given back is dropped; none for a little.
pub(crate) fn room(exchange: &Exchange, size: usize) -> Result<Option<Programs>, Error> {
    let mut room = None;
    let (all, owner) = (exchange.worker.under_way(), owner(exchange));
    if Programs::hold(&mut room, all, &exchange.connection, &owner, size) {
        Ok(room)
    } else {
        Err(Error::SnippetsHoldAll(exchange.host.to_string()))
    }
}

/// The namespace that a request counts for.
fn owner(exchange: &Exchange) -> Arc<str> {
    exchange.place.as_ref().and_then(Place::owner).cloned().unwrap_or_default()
}

/// Puts the state of a request back; whether there is room for what it holds now.
fn give_back(exchange: &mut Exchange, state: State) -> bool {
    let (size, owner) = (state.held(), owner(exchange));
    let Some(running) = &mut exchange.snippet else { return true };
    running.state = state;
    let all = exchange.worker.under_way();
    Programs::hold(&mut running.held, all, &exchange.connection, &owner, size)
}
