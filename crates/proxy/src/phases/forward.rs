//! To the upstream: an endpoint, a connection, a try, and another one where that may help
//! (ngx_http_upstream_module, proxy_next_upstream).

use super::{
    Stop, choose_backend, effects, errors, headers, hops, opentelemetry, pass, program,
    request_headers, x_accel,
};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::retry_budgets::Whose;
use crate::snippet::Level;
use crate::variables;
use http::StatusCode;
use model::policy::{Condition, Policy, Protocol, Retries};
use std::rc::Rc;
use tokio::time::{Instant, sleep_until, timeout_at};
use upstream::{self, Failed, Head, Outgoing, Target, Try, TryError, is_idempotent, tries_left};
use wire::{Body, Response, Source};

/// Tries that cost an upstream nothing and that every route has, with or without `retry`.
const FREE: usize = 3;
/// What judging certificates of endpoints may cost a request: a chain may take 32 signatures. One that is not believed
/// costs so much, any other one a part of that.
const JUDGED: u8 = 16;
const NOT_BELIEVED: u8 = 4;

/// A location whose upstream has no endpoints answers 503, unless somebody stands in.
pub(super) fn has_endpoints(exchange: &mut Exchange) -> Result<(), Stop> {
    match choose_backend::main(exchange) {
        Some(group) if group.is_empty() => errors::stand_in(exchange),
        // Where nothing is behind a location, its guards are asked all the same.
        Some(_) | None => Ok(()),
    }
}

/// A location that leads nowhere answers 404, but only to whom its guards let in: it stands for a default backend.
pub(super) fn has_backend(exchange: &mut Exchange) -> Result<(), Stop> {
    pass::has_upstream(exchange)?;
    match choose_backend::main(exchange) {
        Some(_) => Ok(()),
        None if exchange.level().is_some() => program::own_content(exchange),
        None => Err(Response::page(StatusCode::NOT_FOUND).into()),
    }
}

pub(super) async fn send(exchange: &mut Exchange) -> Result<Response, Stop> {
    let before = effects::towards_upstream(exchange)?;
    let outcome = sent(exchange, before.body).await;
    if let Some(method) = before.method {
        exchange.request.method = method;
    }
    outcome
}

/// Sends the request; `clients` is the client's body, where the upstream gets another one.
async fn sent(exchange: &mut Exchange, clients: Option<Body>) -> Result<Response, Stop> {
    hops::goes_on(exchange)?;
    let policy = exchange.spot().location.policy.clone();
    opentelemetry::another_try(exchange);
    let Some(head) = request_headers::head(exchange) else {
        return Err(Response::page(StatusCode::BAD_REQUEST).into());
    };
    variables::fit(exchange)?;
    if let Some(trace) = &exchange.trace {
        trace.note_head(&head);
        if trace.dry {
            return Ok(Response { source: Source::Upstream, ..Response::empty(StatusCode::OK) });
        }
    }
    let upgrade = request_headers::upgrade(exchange).is_some();
    let mut body = Bodies::of(std::mem::replace(&mut exchange.request.body, Body::empty()));
    let outcome = tries(exchange, &policy, head, upgrade, &mut body).await;
    outcome.iter().for_each(|response| exchange.keeps(&response.headers));
    let goes_on = outcome.as_ref().is_ok_and(|response| x_accel::hear(exchange, response));
    // An error page gets the client's body, and so does where X-Accel-Redirect leads.
    let has_pages = |level: &Level| !level.settings.answers.error_pages.is_empty();
    if goes_on
        || exchange.spot().extras().errors.is_some()
        || exchange.level().is_some_and(has_pages)
    {
        exchange.request.body = clients.unwrap_or_else(|| body.kept());
    }
    outcome
}

/// One try after the other; the time of a route counts from the request's first byte.
async fn tries(
    exchange: &mut Exchange,
    policy: &Policy,
    first: Head,
    upgrade: bool,
    body: &mut Bodies,
) -> Result<Response, Stop> {
    let started = if policy.route.is_some() { exchange.since } else { wire::now() };
    let budget = budget(exchange, policy);
    let may_ask = |exchange: &Exchange| {
        budget.as_ref().is_none_or(|whose| exchange.worker.retries.take(whose))
    };
    let (mut stale, mut first) = (0, Some(first));
    loop {
        let at = deadline(exchange, policy)?;
        // Each try gets a head of its own, since HTTP/2 takes it apart: a second one is rare.
        let head = match first.take() {
            Some(head) => head,
            None => another_head(exchange, body)?,
        };
        let (target, journal) = next_try(exchange)?;
        let attempt = Attempt { exchange, policy, head, upgrade, target, journal: &journal };
        let outcome = match at {
            None => body.attempt(attempt).await,
            // Boxed: its room is not for those that have none.
            Some(at) => Box::pin(body.attempt_until(attempt, at)).await,
        };
        let may_repeat = body.may_repeat(&outcome);
        let made = exchange.tries().len() + stale as usize;
        let more = |exchange: &Exchange| may_repeat && has_more(exchange, policy, made, started);
        match outcome {
            Ok(response)
                if asks_for_another(exchange, &response, &policy.retries)
                    && more(exchange)
                    && may_ask(exchange) =>
            {
                drop(response);
                journal.given_up();
                note_judged(exchange, policy, &journal);
            }
            Ok(response)
                if asks_for_another(exchange, &response, &policy.retries)
                    && is_over(exchange, policy) =>
            {
                return Err(late());
            }
            Ok(response) => return Ok(response),
            Err(mut failed) => {
                journal.failed(failed.error.status());
                let method = &exchange.request.method;
                let repeatable = failed.is_repeatable(is_idempotent(method, &policy.retries));
                if repeatable && may_repeat && failed.is_no_try(stale, method, &policy.retries) {
                    stale += 1;
                    exchange.log.tries.pop();
                    continue;
                }
                note_failure(exchange, policy, &journal, &mut failed.error);
                let again = more(exchange) && repeatable && failed.error.retry(&policy.retries);
                let is_free = !failed.sent && made < FREE;
                if !(again && (is_free || may_ask(exchange))) {
                    return Err(Error::Upstream(failed.error).into());
                }
            }
        }
        if let Some(until) = pause(exchange, policy) {
            Box::pin(sleep_until(until)).await;
        }
        opentelemetry::another_try(exchange);
    }
}

/// Whether there may be another try after so many.
fn has_more(exchange: &Exchange, policy: &Policy, made: usize, started: Instant) -> bool {
    exchange.log.judged < JUDGED && tries_left(made, &policy.retries, started)
}

/// The head once more: its texts are made anew, and have all that those before them had.
fn another_head(exchange: &mut Exchange, body: &mut Bodies) -> Result<Head, Stop> {
    exchange.texts.another_try();
    let head = body.head(exchange);
    variables::fit(exchange)?;
    head.ok_or_else(|| Response::page(StatusCode::BAD_REQUEST).into())
}

/// Whose tries count, where a route asks for them; the request is counted.
fn budget(exchange: &Exchange, policy: &Policy) -> Option<Whose> {
    policy.route.as_ref()?;
    let asks = policy.retries.conditions.contains(&Condition::NonIdempotent);
    asks.then_some(())?;
    let namespace = exchange.spot().location.origin.as_deref()?.namespace.clone();
    let whose = (choose_backend::main(exchange)?.id.clone(), namespace);
    exchange.worker.retries.ask(&whose);
    Some(whose)
}

/// Notes why a try failed, where its endpoint is to blame; one that asked nobody was none.
#[cold]
fn note_failure(exchange: &mut Exchange, policy: &Policy, journal: &Try, error: &mut TryError) {
    match error {
        TryError::RequestBody(_) | TryError::Loop => {}
        TryError::Places => drop(exchange.log.tries.pop()),
        _ => {
            let shared = &exchange.worker.shared;
            shared.watched.failed(journal.address, error, &shared.addresses);
            if !error.is_unreached() {
                note_judged(exchange, policy, journal);
            }
            if error.is_of_certificate() {
                exchange.log.judged += NOT_BELIEVED - 1;
                if exchange.log.judged >= JUDGED {
                    error.ends_tries();
                }
            }
        }
    }
}

/// Notes a try that was in vain, if it had to judge a certificate.
#[cold]
fn note_judged(exchange: &mut Exchange, policy: &Policy, journal: &Try) {
    if policy.upstream_tls.verify && is_secure(exchange, policy) && !journal.reused.get() {
        exchange.log.judged += 1;
    }
}

/// Until when a try must have its answer, where a route says so: by the time of the try, and that of all. When that is
/// over nothing more is sent, not after a pause, nor where a guard took all of it: nobody waits for the answer.
fn deadline(exchange: &Exchange, policy: &Policy) -> Result<Option<Instant>, Stop> {
    let Some(filters) = &policy.route else { return Ok(None) };
    let of_try = filters.time_of_try.map(|time| Instant::now() + time);
    let of_all = filters.time.map(|time| exchange.since + time);
    if of_all.is_some() && is_over(exchange, policy) {
        return Err(late());
    }
    Ok(of_try.into_iter().chain(of_all).min())
}

#[cold]
fn late() -> Stop {
    Error::Upstream(TryError::Timeout("trying as long as the route allows")).into()
}

/// Whether the time of a route is over, all tries together.
fn is_over(exchange: &Exchange, policy: &Policy) -> bool {
    let time = policy.route.as_ref().and_then(|filters| filters.time);
    time.is_some_and(|time| Instant::now() >= exchange.since + time)
}

/// Until when the next try waits, where a route says so; not beyond the time of all.
fn pause(exchange: &Exchange, policy: &Policy) -> Option<Instant> {
    let filters = policy.route.as_ref().filter(|filters| !filters.pause.is_zero())?;
    let until = Instant::now() + filters.pause;
    Some(filters.time.map_or(until, |time| until.min(exchange.since + time)))
}

/// Whether TLS is spoken to upstreams.
fn is_secure(exchange: &Exchange, policy: &Policy) -> bool {
    match policy.protocol {
        Protocol::Http | Protocol::Grpc | Protocol::Fcgi => false,
        Protocol::Https | Protocol::Grpcs => true,
        Protocol::AutoHttp => exchange.connection.tls.is_some(),
    }
}

/// The endpoint for the next try, which is noted.
fn next_try(exchange: &mut Exchange) -> Result<(Target, Rc<Try>), Stop> {
    let address = choose_backend::endpoint(exchange)?;
    let spot = exchange.spot();
    let secure = is_secure(exchange, &spot.location.policy);
    let tls = spot.extras().upstream_tls.clone().filter(|_| secure);
    let span = exchange.span.as_ref().map(|span| span.attempt.into());
    let journal = again(exchange.worker.spare.take(), Try { span, ..Try::new(address) });
    exchange.worker.spare.set(Some(journal.clone()));
    exchange.log.tries.push(journal.clone());
    Ok((Target { address, tls }, journal))
}

/// A try, in the memory of one that is over, if there is such.
fn again(spare: Option<Rc<Try>>, next: Try) -> Rc<Try> {
    if let Some(mut journal) = spare
        && let Some(last) = Rc::get_mut(&mut journal)
    {
        *last = next;
        return journal;
    }
    Rc::new(next)
}

/// The request's body, for as many tries as it can serve.
enum Bodies {
    /// Read whole (or empty): every try gets it from its beginning.
    Kept(Option<wire::Spool>),
    /// Streamed: the first byte that is sent is gone.
    Streamed(Body),
}

impl Bodies {
    fn of(body: Body) -> Self {
        if body.is_empty() {
            return Self::Kept(None);
        }
        match body.into_spool() {
            Ok(spool) => Self::Kept(Some(spool)),
            Err(body) => Self::Streamed(body),
        }
    }

    /// The head once more, as it is now; it says how long the body is.
    fn head(&mut self, exchange: &mut Exchange) -> Option<Head> {
        exchange.request.body = match self {
            Self::Kept(spool) => {
                spool.as_ref().map_or_else(Body::empty, |spool| Body::spool(spool.again()))
            }
            Self::Streamed(body) => std::mem::replace(body, Body::empty()),
        };
        let head = request_headers::head(exchange);
        let lent = std::mem::replace(&mut exchange.request.body, Body::empty());
        if let Self::Streamed(body) = self {
            *body = lent;
        }
        head
    }

    /// The body once more, if it can be sent again.
    fn kept(self) -> Body {
        match self {
            Self::Kept(Some(spool)) => Body::spool(spool),
            Self::Kept(None) | Self::Streamed(_) => Body::empty(),
        }
    }

    /// Whether it can be sent again: what is streamed is there once.
    fn may_repeat(&self, outcome: &Result<Response, Failed>) -> bool {
        matches!(self, Self::Kept(_)) || outcome.as_ref().is_err_and(|failed| !failed.sent)
    }

    /// One try that must have its answer by a moment.
    async fn attempt_until(
        &mut self,
        attempt: Attempt<'_>,
        at: Instant,
    ) -> Result<Response, Failed> {
        timeout_at(at, self.attempt(attempt)).await.unwrap_or_else(|_| {
            let error = TryError::Timeout("waiting for the answer as long as the route allows");
            Err(Failed { error, sent: true, refused: false, reused: false })
        })
    }

    /// One try.
    async fn attempt(&mut self, attempt: Attempt<'_>) -> Result<Response, Failed> {
        let Attempt { exchange, policy, head, upgrade, target, journal } = attempt;
        let mut kept = match self {
            Self::Kept(spool) => {
                spool.as_ref().map_or_else(Body::empty, |spool| Body::spool(spool.again()))
            }
            Self::Streamed(_) => Body::empty(),
        };
        let body = match self {
            Self::Kept(_) => &mut kept,
            Self::Streamed(body) => body,
        };
        let origin = exchange.spot().location.origin.as_deref();
        let mut outgoing = Outgoing {
            method: &exchange.request.method,
            head,
            body,
            upgrade,
            interim: &|interim| headers::pass_on(exchange, interim),
            policy,
            whose: origin.map(|origin| &origin.namespace),
            cause: exchange.connection.cause(),
        };
        upstream::send(&exchange.worker.pool, &target, &mut outgoing, journal).await
    }
}

/// What a try is made of, besides the body.
struct Attempt<'a> {
    exchange: &'a Exchange,
    policy: &'a Policy,
    head: Head,
    upgrade: bool,
    target: Target,
    journal: &'a Rc<Try>,
}

/// Whether the status of an answer counts as a failed try.
fn asks_for_another(exchange: &Exchange, response: &Response, retries: &Retries) -> bool {
    let status = response.status.as_u16();
    // Nobody can ask for one below that.
    status >= 400
        && retries.conditions.contains(&Condition::Status(status))
        && is_idempotent(&exchange.request.method, retries)
}

#[cfg(test)]
mod tests {
    use super::again;
    use std::rc::Rc;
    use upstream::Try;

    #[test]
    fn the_memory_of_a_try_serves_again_once_nobody_has_it_and_keeps_nothing_of_it() {
        let [one, two] = [1, 2].map(|last| ([192, 0, 2, last], 80).into());
        let first = again(None, Try::new(one));
        first.failed(502);
        first.received.set(7);
        let second = again(Some(first.clone()), Try::new(two));
        assert!(!Rc::ptr_eq(&first, &second) && first.status.get() == Some(502));
        let at = Rc::as_ptr(&first);
        let third = again(Some(first), Try::new(two));
        assert_eq!(Rc::as_ptr(&third), at);
        assert_eq!((third.address, third.status.get(), third.received.get()), (two, None, 0));
        assert!(third.ended.get().is_none());
    }
}
