//! How many requests a client may make: `limit-rps` and `limit-rpm`, then `limit-connections`
//! (ngx_http_limit_req_module, ngx_http_limit_conn_module; compat/behaviour.md section 17).

use super::effects;
use super::{Stop, failed, program};
use crate::exchange::{Exchange, Place};
use crate::limits::{Client, Gate};
use crate::snippet::{Full, Judgement, Running, on_machine};
use crate::told::About;
use crate::variables;
use http::StatusCode;
use model::policy::{LimitKey, Limits};
use std::fmt::Debug;
use std::time::Duration;
use wire::{Pace, Response};

pub(super) fn check(exchange: &mut Exchange) -> Result<(), Stop> {
    let spot = exchange.spot();
    let Some(gate) = spot.extras().gate.clone() else { return Ok(()) };
    if exchange.is_made_up() {
        return Ok(());
    }
    let limits = &spot.location.policy.limits;
    let Some(client) = client(exchange, limits, &gate) else { return Ok(()) };
    let (most, status) = (limits.connections, limits.connection_status);
    // Counted once for its namespace, however often the request is sent on: who is refused is not judged again on the
    // page that says so (nginx: limit_req_status of the main request).
    let owner = exchange.place.as_ref().and_then(Place::owner).cloned();
    let has_rate = gate.per_second.is_some() || gate.per_minute.is_some();
    if has_rate && !exchange.onward.counted.requests.has(owner.as_ref()) {
        let (may_come, status) = (may_come(limits, &gate, client), limits.request_status);
        exchange.onward.counted.requests.add(owner.as_ref());
        if !may_come {
            tell(exchange, "limiting requests: limit-rps or limit-rpm is exceeded");
            return Err(refusal(status));
        }
    }
    if let (Some(most), Some(slots)) = (most, &gate.connections)
        && !exchange.onward.counted.connections.has(owner.as_ref())
    {
        let slot = slots.take(client, most);
        exchange.onward.counted.connections.add(owner.as_ref());
        let Some(slot) = slot else {
            tell(exchange, "limiting connections: limit-connections is exceeded");
            return Err(refusal(status));
        };
        exchange.slot = Some(slot.beside(exchange.slot.take()));
    }
    Ok(())
}

/// The place whose snippets have limits that the request counts for.
pub(super) fn place_of_snippets(exchange: &Exchange) -> Option<Place> {
    let has_limits = exchange.effects().is_some_and(|effects| !effects.limits.is_empty());
    exchange.place_with_effects().filter(|_| has_limits)
}

/// `limit_req` and `limit_conn` of snippets: counted once each, too.
pub(super) async fn of_snippets(exchange: &mut Exchange, place: Place) -> Result<(), Stop> {
    let limits = &effects::of(&place).limits;
    if limits.broken {
        return Err(refusal(request_status(&place)));
    }
    let wait = requests_of_snippets(exchange, &place)?;
    if let Some(wait) = wait.filter(|_| !exchange.is_dry()) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the delay that a limit of a snippet asks for"
        )]
        tokio::time::sleep(wait).await;
    }
    connections_of_snippets(exchange, &place)
}

fn request_status(place: &Place) -> u16 {
    let of_policy = place.spot().location.policy.limits.request_status;
    effects::of(place).limits.request_status.unwrap_or(of_policy)
}

/// `limit_req`: how long the request waits.
fn requests_of_snippets(exchange: &mut Exchange, place: &Place) -> Result<Option<Duration>, Stop> {
    let limits = &effects::of(place).limits;
    let is_counted = |running: &Running| running.of_request.counted.requests.has(place.owner());
    if exchange.snippet.as_deref().is_none_or(is_counted) {
        return Ok(None);
    }
    let keys = on_machine(exchange, |machine| limits.request_keys(machine))?.unwrap_or_default();
    let dry = limits.request_dry_run;
    let judgement = match (exchange.is_made_up(), keys.iter().flatten().next()) {
        (false, _) => limits.judge(&keys),
        (true, None) => Judgement::Nothing,
        (true, Some(_)) => Judgement::Pass(Duration::ZERO),
    };
    let (said, wait) = match judgement {
        Judgement::Nothing => ("", None),
        Judgement::Pass(wait) if wait.is_zero() => ("PASSED", None),
        Judgement::Pass(_) if dry => ("DELAYED_DRY_RUN", None),
        Judgement::Pass(wait) => ("DELAYED", Some(wait)),
        Judgement::Refuse if dry => ("REJECTED_DRY_RUN", None),
        Judgement::Refuse => ("REJECTED", None),
    };
    // A request without a key was not counted here, and may be where it is led to.
    note(exchange, |running| {
        running.request_limit = said;
        if !said.is_empty() {
            running.of_request.counted.requests.add(place.owner());
        }
    });
    if said == "REJECTED" {
        tell(exchange, "limiting requests: limit_req of a snippet is exceeded");
        return Err(refusal(request_status(place)));
    }
    Ok(wait)
}

/// `limit_conn`
fn connections_of_snippets(exchange: &mut Exchange, place: &Place) -> Result<(), Stop> {
    let limits = &effects::of(place).limits;
    let is_counted = |running: &Running| running.of_request.counted.connections.has(place.owner());
    if exchange.snippet.as_deref().is_none_or(is_counted) {
        return Ok(());
    }
    let keys = on_machine(exchange, |machine| limits.connection_keys(machine))?.unwrap_or_default();
    let (said, slot) = match limits.hold(&keys) {
        Ok(None) => ("", None),
        Ok(slot) => ("PASSED", slot),
        Err(Full) if limits.connection_dry_run => ("REJECTED_DRY_RUN", None),
        Err(Full) => ("REJECTED", None),
    };
    note(exchange, |running| {
        running.connection_limit = said;
        if !said.is_empty() {
            running.of_request.counted.connections.add(place.owner());
        }
    });
    if said == "REJECTED" {
        tell(exchange, "limiting connections: limit_conn of a snippet is exceeded");
        let of_policy = place.spot().location.policy.limits.connection_status;
        return Err(refusal(limits.connection_status.unwrap_or(of_policy)));
    }
    if let Some(slot) = slot {
        exchange.slot = Some(slot.beside(exchange.slot.take()));
    }
    Ok(())
}

fn note(exchange: &mut Exchange, what: impl FnOnce(&mut Running)) {
    if let Some(running) = &mut exchange.snippet {
        what(running);
    }
}

/// The answer at its pace. It holds its client's place until it is at its end; a connection that stopped being HTTP
/// holds it as long as it lives.
pub(super) fn hold(exchange: &mut Exchange, response: &mut Response, pace: Option<Pace>) {
    if response.status != StatusCode::SWITCHING_PROTOCOLS {
        let slot = exchange.slot.take();
        response.body.pace(pace, slot.map(|slot| Box::new(slot) as Box<dyn Debug>));
    }
}

/// Who is limited; nobody if the address is exempt or there is nothing that tells clients apart.
fn client(exchange: &Exchange, limits: &Limits, gate: &Gate) -> Option<Client> {
    if limits.exempt.contains(exchange.client) {
        return None;
    }
    match &limits.key {
        LimitKey::Address => Some(exchange.client.to_canonical().into()),
        LimitKey::Text(template) => {
            let text = variables::of_request(template, exchange);
            (!text.is_empty()).then(|| gate.names.client(&text))
        }
    }
}

/// Whether both buckets have room; if one has not, the request costs nothing in the other either.
fn may_come(limits: &Limits, gate: &Gate, client: Client) -> bool {
    let second = limits.per_second.zip(gate.per_second.as_ref());
    let minute = limits.per_minute.zip(gate.per_minute.as_ref());
    match (second, minute) {
        (None, None) => true,
        (Some((limit, buckets)), None) | (None, Some((limit, buckets))) => {
            buckets.take(client, limit)
        }
        (Some((second, seconds)), Some((minute, minutes))) => {
            let may = seconds.has_room(client, second) && minutes.take(client, minute);
            if may {
                seconds.fill(client, second);
            }
            may
        }
    }
}

/// The line of the error log about a limit.
fn tell(exchange: &Exchange, what: &'static str) {
    failed::tell_once_a_minute(exchange, About::Limit(what), &what);
}

fn refusal(status: u16) -> Stop {
    program::refused(status).into()
}
