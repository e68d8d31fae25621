//! What requests say of their sessions, and how clients are told of them: by a cookie (compat/behaviour.md section 9),
//! or as a rule of the Gateway API wants it.

use crate::exchange::Exchange;
use balance::Cookie;
use bytes::Bytes;
use model::Alias;
use model::policy::{Affinity, RuleSession, SameSite};
use std::fmt::Write;
use std::time::Duration;
use upstream::Session;
use wire::{Headers, Response, cookie_date, since_epoch};

/// Seconds by which clocks of several machines may differ.
const SKEW: u64 = 60;

/// What a request says of its session.
pub(super) fn claimed(exchange: &Exchange, affinity: &Affinity) -> Option<String> {
    let headers = &exchange.request.headers;
    match &affinity.of_rule {
        Some(rule) if rule.in_header => headers.text(&affinity.name).map(str::to_owned),
        _ => cookie(headers, &affinity.name),
    }
}

/// The session of a value; of a rule's only if it is that rule's, and its time is not over.
pub(super) fn valid<'v>(session: &Session, value: &'v str) -> Option<Cookie<'v>> {
    let cookie = Cookie::read(value)?;
    let Some(rule) = &session.affinity.of_rule else { return Some(cookie) };
    let goes_on =
        !ends(rule) || cookie.times.is_some_and(|times| is_within(rule, times, seconds()));
    (goes_on && cookie.upstream == Some(&session.upstream_key)).then_some(cookie)
}

/// Whether sessions of a rule have to say when they were.
fn ends(rule: &RuleSession) -> bool {
    rule.lasts.is_some() || rule.idle.is_some()
}

fn is_within(rule: &RuleSession, (began, used): (u64, u64), now: u64) -> bool {
    let is_young = |since: u64, most: Option<Duration>| {
        most.is_none_or(|most| {
            since <= now.saturating_add(SKEW) && now.saturating_sub(since) < most.as_secs()
        })
    };
    is_young(began, rule.lasts) && is_young(used, rule.idle)
}

fn seconds() -> u64 {
    since_epoch().as_secs()
}

/// The value of a session cookie; of several with the name the last counts (lua-resty-cookie).
pub(crate) fn cookie(headers: &Headers, name: &str) -> Option<String> {
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

/// The field that tells of a new session, if the client is told.
pub(super) fn new(
    exchange: &Exchange,
    session: &Session,
    endpoint: &str,
) -> Option<(Bytes, Bytes)> {
    let of_rule = session.affinity.of_rule.as_ref();
    let now = seconds();
    let times = of_rule.filter(|rule| ends(rule)).map(|_| (now, now));
    let is_told = of_rule.is_some() || has_cookie(exchange);
    let cookie = Cookie { endpoint, upstream: Some(&session.upstream_key), times };
    is_told.then(|| field(exchange, session, &cookie, now))
}

/// The same of one that goes on, where somebody asks when it was used.
pub(super) fn again(exchange: &Exchange, session: &Session) -> Option<(Bytes, Bytes)> {
    session.affinity.of_rule.as_ref()?.idle?;
    let value = claimed(exchange, &session.affinity)?;
    let known = valid(session, &value)?;
    let now = seconds();
    let (began, used) = known.times?;
    let times = Some((began, now));
    (used != now).then(|| field(exchange, session, &Cookie { times, ..known }, now))
}

fn field(exchange: &Exchange, session: &Session, cookie: &Cookie<'_>, now: u64) -> (Bytes, Bytes) {
    let affinity = &session.affinity;
    if affinity.of_rule.as_ref().is_some_and(|rule| rule.in_header) {
        return (affinity.name.clone().into(), cookie.value().into());
    }
    let age = cookie.times.map_or(0, |(began, _)| now.saturating_sub(began));
    let line = written(exchange, affinity, &cookie.value(), age.cast_signed());
    (Bytes::from_static(b"Set-Cookie"), line)
}

/// `Set-Cookie` of a session that is so many seconds old.
fn written(exchange: &Exchange, affinity: &Affinity, value: &str, age: i64) -> Bytes {
    let mut line = format!("{}={value}", affinity.name);
    if let Some(seconds) = affinity.expires {
        let moment = since_epoch().as_secs().saturating_add_signed(seconds);
        let _ = write!(line, "; Expires={}", cookie_date(moment));
    }
    if let Some(seconds) = affinity.max_age {
        let _ = write!(line, "; Max-Age={}", seconds - age);
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

/// The client is told with whatever answer there is: of a cookie before those of the upstream, of a field in place of
/// the upstream's.
pub(super) fn tell(exchange: &Exchange, response: &mut Response) {
    match &exchange.told_session {
        Some((name, value)) if name == "Set-Cookie" => {
            response.headers.add_first("Set-Cookie", value);
        }
        Some((name, value)) => response.headers.replace(name, value),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::is_within;
    use model::policy::RuleSession;
    use std::time::Duration;

    #[test]
    fn a_session_ends_with_its_time_or_when_nobody_uses_it() {
        let rule = |lasts: Option<u64>, idle: Option<u64>| RuleSession {
            rule: String::new(),
            in_header: false,
            lasts: lasts.map(Duration::from_secs),
            idle: idle.map(Duration::from_secs),
        };
        for (lasts, idle, times, expected) in [
            (Some(10), None, (91, 0), true),
            (Some(10), None, (90, 100), false),
            (None, Some(5), (0, 96), true),
            (None, Some(5), (0, 95), false),
            (Some(100), Some(5), (1, 96), true),
            (Some(10), None, (150, 150), true),
            (Some(10), None, (161, 161), false),
            (Some(10), None, (u64::MAX, 0), false),
        ] {
            assert_eq!(
                is_within(&rule(lasts, idle), times, 100),
                expected,
                "{lasts:?} {idle:?} {times:?}"
            );
        }
    }
}
