//! `sessionPersistence` of a rule: clients stay with an endpoint, by the cookie or field that they bring (GEP-1619).

use super::filters::changeable;
use super::texts::{self, is_token};
use model::policy::{Affinity, AffinityMode, RuleSession, SameSite};
use objects::gateway::{HttpRoute, SessionPersistence};
use std::time::Duration;

/// How long a session may last at most: browsers keep cookies no longer.
const LONGEST: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// Bytes of a name at most: clients send it with every request.
const MOST_BYTES: usize = 128;

/// The sessions of a rule; field and message of what is wrong with them otherwise.
pub(super) fn read(
    session: &SessionPersistence,
    route: &HttpRoute,
    index: usize,
) -> Result<Affinity, String> {
    let SessionPersistence { name, in_header, is_permanent, path, lasts, idle } = session;
    let key = &route.meta.key;
    let rule = format!("{} {}/{} {index}", route.kind.name(), key.namespace, key.name);
    let name = match name.as_deref() {
        Some(name) => named(name, *in_header)?,
        None if *in_header => {
            return Err("header.name: clients have to know the field: name it".to_owned());
        }
        None => format!("session-{:016x}", digest(&rule)),
    };
    for (field, time) in [("absoluteTimeout", lasts), ("idleTimeout", idle)] {
        if time.is_some_and(|time| time.is_zero() || time > LONGEST) {
            return Err(format!("{field}: write a time up to 9600h (400 days), or leave it out"));
        }
    }
    if *is_permanent && !in_header && lasts.is_none() {
        let message = "a Permanent cookie needs a time: write one, or lifetimeType: Session";
        return Err(format!("absoluteTimeout: {message}"));
    }
    let path = path.as_deref().unwrap_or("/");
    texts::path(path).map_err(|why| format!("cookie.path: {why}"))?;
    if path.contains([';', ',']) {
        return Err(format!("cookie.path: {path:?} ends an attribute: write it without ; and ,"));
    }
    let lasts = lasts.map(whole_seconds);
    let max_age = lasts.filter(|_| *is_permanent).map(|time| time.as_secs().cast_signed());
    Ok(Affinity {
        mode: AffinityMode::Persistent,
        // Browsers take cookies with such names only so.
        secure: ["__Secure-", "__Host-"].iter().any(|prefix| name.starts_with(prefix)),
        name,
        expires: None,
        max_age,
        path: Some(path.to_owned()),
        domain: None,
        same_site: Some(SameSite::Strict),
        conditional_same_site_none: false,
        change_on_failure: true,
        of_rule: Some(RuleSession {
            rule,
            in_header: *in_header,
            lasts,
            idle: idle.map(whole_seconds),
        }),
    })
}

/// The name of the cookie, or of the field in lower case.
fn named(name: &str, in_header: bool) -> Result<String, String> {
    let field = if in_header { "header.name" } else { "cookie.name" };
    if name.len() > MOST_BYTES {
        return Err(format!("{field} or sessionName: write a name of at most {MOST_BYTES} bytes"));
    }
    if !is_token(name) {
        return Err(format!("{field} or sessionName: {name:?} is no name of either"));
    }
    if !in_header {
        return Ok(name.to_owned());
    }
    let lower = changeable(name).map_err(|(_, why)| format!("{field} or sessionName: {why}"))?;
    match lower.as_str() {
        "cookie" | "set-cookie" | "authorization" | "content-type" => {
            Err(format!("{field} or sessionName: {name} means something else: choose another"))
        }
        _ => Ok(lower),
    }
}

/// Times are told in seconds.
fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// FNV-1a: the same in all replicas and releases, so that sessions survive both.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
