//! Main side or canary, and which endpoint of it: sessions, hashes and scores (compat/behaviour.md sections 8 to 10;
//! ingress-nginx: balancer.lua and its algorithms).

use super::{Stop, sessions};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::generation::{Site, Spot};
use crate::variables;
use balance::{Asked, Claim, Cookie, Kept, Side, side};
use http::StatusCode;
use model::policy::Algorithm;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use upstream::{Alternative, Group, Rule, Session};
use wire::{Response, since_epoch};

/// Chooses the side, once for all tries.
pub(super) fn decide(exchange: &mut Exchange) -> Result<(), Stop> {
    let spot = exchange.spot();
    let Some(canary) = spot.extras().canary.as_deref() else { return Ok(()) };
    // A canary without endpoints takes nothing.
    if canary.group.is_empty() {
        return Ok(());
    }
    let rules = &canary.rules;
    let header =
        rules.header.as_ref().and_then(|header| variables::header_of(exchange, &header.name));
    let headers = &exchange.request.headers;
    let cookie = rules.cookie.as_ref().and_then(|name| variables::cookie_of(headers, name));
    let asked = Asked {
        session: of_session(exchange, spot, canary),
        header: header.as_deref(),
        cookie: cookie.as_deref(),
    };
    let random = |below: u32| exchange.worker.numbers.below(below as usize) as u32;
    let side = side(rules, asked, &exchange.steps, random);
    exchange.visit.canary =
        side.map_err(|_| Error::too_hard(&exchange.host, &spot.location))? == Side::Canary;
    Ok(())
}

/// The side that the client's session is with.
pub(crate) fn of_session(exchange: &Exchange, spot: &Spot, canary: &Alternative) -> Option<Side> {
    let main = rule_of_main(exchange, spot)?.session.as_ref()?;
    let value = sessions::cookie(&exchange.request.headers, &main.affinity.name)?;
    let key = Cookie::read(&value)?.upstream?;
    let shared = canary.rule.as_ref().and_then(|rule| rule.session.as_ref());
    match key {
        key if key == main.upstream_key => Some(Side::Main),
        key if shared.is_some_and(|shared| key == shared.upstream_key) => Some(Side::Canary),
        _ => None,
    }
}

/// The endpoint for the next try; `exchange.tries()` are those that failed.
pub(super) fn endpoint(exchange: &mut Exchange) -> Result<SocketAddr, Stop> {
    let (group, rule) = chosen(exchange, exchange.spot());
    let group = group.ok_or_else(|| Response::page(StatusCode::NOT_FOUND))?;
    let nobody = || Error::NoEndpoints(group.nobody());
    let Some(rule) = rule else { return Ok(group.pick().ok_or_else(nobody)?) };
    let Some(session) = &rule.session else {
        return Ok(by_algorithm(exchange, group, rule).ok_or_else(nobody)?);
    };
    if group.is_empty() {
        return Err(nobody().into());
    }
    match by_session(exchange, group, session) {
        None => Err(Error::NoPeerLeft(group.id.clone()).into()),
        Some(Kept::Same(endpoint)) => {
            let told = sessions::again(exchange, session);
            exchange.told_session = told.or(exchange.told_session.take());
            Ok(endpoint)
        }
        Some(Kept::New(endpoint, key)) => {
            let told = sessions::new(exchange, session, &key);
            // One cookie, naming the last endpoint (compat/decisions.md row 24).
            exchange.told_session = told.or(exchange.told_session.take());
            Ok(endpoint)
        }
    }
}

/// Who is behind the side that was chosen, and how one of them is.
pub(crate) fn chosen<'a>(
    exchange: &'a Exchange,
    spot: &'a Spot,
) -> (Option<&'a Arc<Group>>, Option<&'a Rule>) {
    match spot.extras().canary.as_deref().filter(|_| exchange.visit.canary) {
        Some(canary) => (Some(&canary.group), canary.rule.as_deref()),
        None if exchange.visit.stands_in => {
            (spot.extras().stand_in.as_ref().map(|it| &it.group), rule_of_main(exchange, spot))
        }
        None => match exchange.visit.named.as_ref() {
            None => (spot.group.as_ref(), spot.extras().rule.as_deref()),
            named => (named, None),
        },
    }
}

/// How the endpoints of the main side are, or of who stands in for it: the latter is the same backend with other
/// endpoints (ingress-nginx: controller.go, getBackendServers).
fn rule_of_main<'a>(exchange: &Exchange, spot: &'a Spot) -> Option<&'a Rule> {
    if exchange.visit.stands_in {
        return spot.extras().stand_in.as_deref()?.rule.as_deref();
    }
    spot.extras().rule.as_deref()
}

/// The upstream of the location, or the one that a snippet names in its place.
pub(super) fn main(exchange: &Exchange) -> Option<&Arc<Group>> {
    exchange.visit.named.as_ref().or(exchange.spot().group.as_ref())
}

fn by_algorithm(exchange: &Exchange, group: &Arc<Group>, rule: &Rule) -> Option<SocketAddr> {
    let random = |below: usize| exchange.worker.numbers.below(below);
    match &rule.algorithm {
        Algorithm::RoundRobin => group.pick(),
        Algorithm::Random => group.roster().by_chance(random),
        Algorithm::Ewma => group.roster().by_score(&tried(exchange), group.now(), random),
        Algorithm::Hash(key) => {
            let key = variables::of_request(key, exchange);
            group.roster().by_hash(key.as_bytes())
        }
        Algorithm::HashSubset(key, size) => {
            let key = variables::of_request(key, exchange);
            group.roster().by_subset(key.as_bytes(), *size, random)
        }
    }
}

fn by_session(exchange: &Exchange, group: &Group, session: &Session) -> Option<Kept> {
    let affinity = &session.affinity;
    let value = sessions::claimed(exchange, affinity);
    let known = value.as_deref().and_then(|value| sessions::valid(session, value));
    let known = known.map(|cookie| cookie.endpoint);
    let draw = |number: usize| {
        let now = since_epoch() + Duration::from_secs(number as u64 + 1);
        let random = exchange.worker.numbers.below(999_999) + 1;
        format!("{}.{:03}.{}.{random}", now.as_secs(), now.subsec_millis(), std::process::id())
    };
    let claim = Claim {
        mode: affinity.mode,
        session: known,
        failed: &tried(exchange),
        change_on_failure: affinity.change_on_failure,
    };
    group.roster().sessions().choose(claim, draw, |below| exchange.worker.numbers.below(below))
}

/// The share of a rule that the client's session is with, while its endpoint is there: weights are for new ones.
pub(super) fn share_of_session(
    exchange: &Exchange,
    site: &Site,
    mut shares: impl Iterator<Item = usize>,
) -> Option<usize> {
    let is_with = |index: usize| {
        let spot = &site.spots[index];
        let session = spot.extras().rule.as_ref()?.session.as_ref()?;
        let value = sessions::claimed(exchange, &session.affinity)?;
        let endpoint = sessions::valid(session, &value)?.endpoint;
        spot.group.as_ref()?.roster().sessions().find(session.affinity.mode, endpoint)
    };
    shares.find(|index| is_with(*index).is_some())
}

fn tried(exchange: &Exchange) -> Vec<SocketAddr> {
    exchange.tries().iter().map(|attempt| attempt.address).collect()
}

/// Notes over what kind of connection each try went, what came of it while somebody looks at endpoints, and how long
/// the last one took where the balance asks for that.
pub(crate) fn note_tries(exchange: &Exchange) {
    let Some(spot) = exchange.place.as_ref().map(|place| place.spot()) else { return };
    let (Some(group), rule) = chosen(exchange, spot) else { return };
    if exchange.worker.recorder.is_some() {
        let made = exchange.tries().iter().filter(|attempt| attempt.connected.get().is_some());
        made.for_each(|attempt| group.note(attempt.reused.get()));
    }
    if exchange.worker.looked.get() {
        let shared = &exchange.worker.shared;
        let counts = exchange.worker.counts();
        counts.note(exchange.tries(), &shared.watched, &shared.addresses);
    }
    let measures = |rule: &Rule| rule.algorithm == Algorithm::Ewma && rule.session.is_none();
    if rule.is_some_and(measures)
        && let Some(last) = exchange.log.tries.last()
    {
        // The time to connect counts twice, as it does there.
        let connect = last.connected.get().unwrap_or_default();
        let whole = last.ended.get().unwrap_or_else(|| wire::since(last.since));
        group.roster().measured(last.address, (connect + whole).as_secs_f32(), group.now());
    }
}
