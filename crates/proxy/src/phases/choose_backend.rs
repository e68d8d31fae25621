//! Main side or canary, and which endpoint of it: sessions, hashes and scores (compat/behaviour.md sections 8 to 10;
//! ingress-nginx: balancer.lua and its algorithms).

use super::Stop;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::generation::Spot;
use crate::variables;
use balance::{Asked, Claim, Cookie, Kept, Side, side};
use bytes::Bytes;
use http::StatusCode;
use model::Alias;
use model::policy::{Algorithm, SameSite};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use upstream::{Group, Rule, Session};
use wire::{Headers, Response, cookie_date, since_epoch};

/// Chooses the side, once for all tries.
pub(super) fn decide(exchange: &mut Exchange) -> Result<(), Stop> {
    let spot = exchange.spot();
    let Some(canary) = spot.canary.as_deref().filter(|_| !exchange.visit.stands_in) else {
        return Ok(());
    };
    // A canary without endpoints takes nothing.
    if canary.group.is_empty() {
        return Ok(());
    }
    let of_session = || {
        let main = spot.rule.as_ref()?.session.as_ref()?;
        let value = session_cookie(&exchange.request.headers, &main.affinity.name)?;
        let key = Cookie::read(&value)?.upstream?;
        let shared = canary.rule.as_ref().and_then(|rule| rule.session.as_ref());
        match key {
            key if key == main.upstream_key => Some(Side::Main),
            key if shared.is_some_and(|shared| key == shared.upstream_key) => Some(Side::Canary),
            _ => None,
        }
    };
    let rules = &canary.rules;
    let header =
        rules.header.as_ref().and_then(|header| variables::header_of(exchange, &header.name));
    let headers = &exchange.request.headers;
    let cookie = rules.cookie.as_ref().and_then(|name| variables::cookie_of(headers, name));
    let asked =
        Asked { session: of_session(), header: header.as_deref(), cookie: cookie.as_deref() };
    let random = |below: u32| exchange.worker.below(below as usize) as u32;
    let side = side(rules, asked, &exchange.steps, random);
    exchange.visit.canary =
        side.map_err(|_| Error::too_hard(&exchange.host, &spot.location))? == Side::Canary;
    Ok(())
}

/// The endpoint for the next try; `exchange.tries()` are those that failed.
pub(super) fn endpoint(exchange: &mut Exchange) -> Result<SocketAddr, Stop> {
    let (group, rule) = chosen(exchange, exchange.spot());
    let group = group.ok_or_else(|| Response::page(StatusCode::NOT_FOUND))?;
    let nobody = || Error::NoEndpoints(group.id.clone());
    let Some(rule) = rule else { return Ok(group.pick().ok_or_else(nobody)?) };
    let Some(session) = &rule.session else {
        return Ok(by_algorithm(exchange, group, rule).ok_or_else(nobody)?);
    };
    if group.is_empty() {
        return Err(nobody().into());
    }
    match by_session(exchange, group, session) {
        None => Err(Error::NoPeerLeft(group.id.clone()).into()),
        Some(Kept::Same(endpoint)) => Ok(endpoint),
        Some(Kept::New(endpoint, key)) => {
            let cookie = has_cookie(exchange).then(|| written(exchange, session, &key));
            // One cookie, naming the last endpoint (compat/decisions.md row 24).
            exchange.session_cookie = cookie.or(exchange.session_cookie.take());
            Ok(endpoint)
        }
    }
}

/// Who is behind the side that was chosen, and how one of them is.
fn chosen<'a>(
    exchange: &'a Exchange,
    spot: &'a Spot,
) -> (Option<&'a Arc<Group>>, Option<&'a Rule>) {
    match spot.canary.as_deref().filter(|_| exchange.visit.canary) {
        Some(canary) => (Some(&canary.group), canary.rule.as_deref()),
        None if exchange.visit.stands_in => (spot.stand_in.as_ref(), None),
        None => match exchange.visit.named.as_ref() {
            None => (spot.group.as_ref(), spot.rule.as_deref()),
            named => (named, None),
        },
    }
}

/// The upstream of the location, or the one that a snippet names in its place.
pub(super) fn main(exchange: &Exchange) -> Option<&Arc<Group>> {
    exchange.visit.named.as_ref().or(exchange.spot().group.as_ref())
}

fn by_algorithm(exchange: &Exchange, group: &Arc<Group>, rule: &Rule) -> Option<SocketAddr> {
    let random = |below: usize| exchange.worker.below(below);
    match &rule.algorithm {
        Algorithm::RoundRobin => group.pick(),
        Algorithm::Random => group.roster().by_chance(random),
        Algorithm::Ewma => group.roster().by_score(&tried(exchange), group.now(), random),
        Algorithm::Hash(key) => {
            let key = variables::text_of(key, exchange);
            group.roster().by_hash(key.as_bytes())
        }
        Algorithm::HashSubset(key, size) => {
            let key = variables::text_of(key, exchange);
            group.roster().by_subset(key.as_bytes(), *size, random)
        }
    }
}

fn by_session(exchange: &Exchange, group: &Group, session: &Session) -> Option<Kept> {
    let affinity = &session.affinity;
    let value = session_cookie(&exchange.request.headers, &affinity.name);
    let known = value.as_deref().and_then(Cookie::read).map(|cookie| cookie.endpoint);
    let draw = |number: usize| {
        let now = since_epoch() + Duration::from_secs(number as u64 + 1);
        let random = exchange.worker.below(999_999) + 1;
        format!("{}.{:03}.{}.{random}", now.as_secs(), now.subsec_millis(), std::process::id())
    };
    let claim = Claim {
        mode: affinity.mode,
        session: known,
        failed: &tried(exchange),
        change_on_failure: affinity.change_on_failure,
    };
    group.roster().sessions().choose(claim, draw, |below| exchange.worker.below(below))
}

fn tried(exchange: &Exchange) -> Vec<SocketAddr> {
    exchange.tries().iter().map(|attempt| attempt.address).collect()
}

/// The value of a session cookie; of several with the name the last counts (lua-resty-cookie).
pub(crate) fn session_cookie(headers: &Headers, name: &str) -> Option<String> {
    let lines = headers.all("cookie");
    let pairs = lines.flat_map(|line| line.split(|&byte| byte == b';'));
    let value = pairs.map(<[u8]>::trim_ascii).filter_map(|pair| {
        let (key, value) = pair.split_at(pair.iter().position(|&byte| byte == b'=')?);
        (key == name.as_bytes()).then_some(&value[1..])
    });
    let value = value.last()?;
    let value = value.split(|&byte| byte == b' ' || byte == b'\t').next()?;
    std::str::from_utf8(value).ok().map(str::to_owned)
}

/// Whether a client is told its session: by the host itself or one label below a wildcard, as ingress-nginx.
fn has_cookie(exchange: &Exchange) -> bool {
    let Some(place) = &exchange.place else { return false };
    let server = &place.site.server;
    let parent = exchange.host.split_once('.').map(|(_, parent)| parent);
    let own = server.name.as_str();
    own == "_"
        || *own == *exchange.host
        || parent.is_some_and(|parent| own.strip_prefix("*.") == Some(parent))
        || server.aliases.iter().any(|alias| match alias {
            Alias::Name(name) => *name.as_str() == *exchange.host,
            Alias::Below(below) => parent == Some(&**below),
            Alias::Beginning(_) | Alias::Pattern(_) => false,
        })
}

/// `Set-Cookie` of a new session.
fn written(exchange: &Exchange, session: &Session, key: &str) -> Bytes {
    let affinity = &session.affinity;
    let mut line = format!("{}={}", affinity.name, Cookie::written(key, &session.upstream_key));
    if let Some(seconds) = affinity.expires {
        let moment = since_epoch().as_secs().saturating_add_signed(seconds);
        let _ = write!(line, "; Expires={}", cookie_date(moment));
    }
    if let Some(seconds) = affinity.max_age {
        let _ = write!(line, "; Max-Age={seconds}");
    }
    if let Some(domain) = &affinity.domain {
        let _ = write!(line, "; Domain={domain}");
    }
    let path = affinity.path.as_ref().unwrap_or(&exchange.spot().location.path);
    let _ = write!(line, "; Path={path}");
    if affinity.secure || exchange.connection.tls.is_some() {
        line.push_str("; Secure");
    }
    line.push_str("; HttpOnly");
    let understood = |same_site: &SameSite| {
        *same_site != SameSite::None
            || !affinity.conditional_same_site_none
            || balance::takes_same_site_none(
                exchange.request.headers.text("user-agent").unwrap_or_default(),
            )
    };
    if let Some(same_site) = affinity.same_site.filter(understood) {
        let _ = write!(line, "; SameSite={}", same_site.as_str());
    }
    line.into()
}

/// The session's cookie goes to the client with whatever answer there is, before those of the upstream.
pub(super) fn tell(exchange: &Exchange, response: &mut Response) {
    if let Some(cookie) = &exchange.session_cookie {
        response.headers.add_first("Set-Cookie", cookie);
    }
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
