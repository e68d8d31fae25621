//! Which answers of an authenticator are remembered, under which key, and for how long (`auth-cache-key`,
//! `auth-cache-duration`; ngx_http_file_cache with what ingress-nginx tells it).

use crate::authenticator::{Authenticator, Said, Tag};
use crate::exchange::Exchange;
use crate::phases::client_fields;
use crate::variables;
use aws_lc_rs::digest::{Context, SHA256};
use model::PathKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wire::{Headers, Response, tokens};

/// What was said before of such a request; else the key under which the next answer is to be remembered, if any.
pub(super) fn remembered(
    exchange: &Exchange,
    authenticator: &Authenticator,
) -> Result<Arc<Said>, Option<Tag>> {
    let Some(cache) = &authenticator.policy.cache else { return Err(None) };
    // The key may have a field in it that the authenticator does not see: its answer is not about that.
    if client_fields::keeps_back(&exchange.request.headers) {
        return Err(None);
    }
    let mut context = Context::new(&SHA256);
    let (server, asked) = &authenticator.id;
    let location = &exchange.spot().location;
    let place = format!("{server} {:?} {}", location.kind, location.path);
    // Its length keeps it apart from the key, which clients may choose.
    context.update(&(place.len() as u64).to_le_bytes());
    context.update(place.as_bytes());
    context.update(&asked[..]);
    // In nginx /p and what is below it are two locations, and each has its own entries.
    context.update(&[u8::from(is_whole(exchange))]);
    if let Some(effects) = exchange.effects() {
        context.update(format!("{:?} ", effects.asked).as_bytes());
    }
    context.update(variables::as_asked(&cache.key, exchange).as_bytes());
    let mut tag = Tag::default();
    tag.copy_from_slice(context.finish().as_ref());
    let namespace = exchange.spot().location.namespace();
    exchange.worker.answers().get(&namespace, &tag).ok_or(Some(tag))
}

fn is_whole(exchange: &Exchange) -> bool {
    let location = &exchange.spot().location;
    location.kind == PathKind::Prefix && exchange.path == location.path.as_bytes()
}

pub(super) fn remember(
    exchange: &Exchange,
    authenticator: &Authenticator,
    key: Tag,
    answer: &Response,
    said: &Arc<Said>,
) {
    let Some(cache) = &authenticator.policy.cache else { return };
    let status = answer.status.as_u16();
    if !(answer.status.is_success() || matches!(status, 401 | 403)) {
        return;
    }
    let named = cache.durations.iter().find(|duration| duration.statuses.contains(&status));
    let any = || cache.durations.iter().find(|duration| duration.statuses.is_empty());
    let usual = named.or_else(any);
    let time = match asked_for(&answer.headers) {
        Asked::Never => return,
        Asked::For(time) => time,
        Asked::Nothing => usual.map(|duration| duration.time).unwrap_or_default(),
    };
    if let Some(until) = Instant::now().checked_add(time).filter(|_| !time.is_zero()) {
        let namespace = exchange.spot().location.namespace();
        exchange.worker.answers().put(&namespace, key, said.clone(), until);
    }
}

/// What an answer says about being kept.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Never,
    For(Duration),
}

/// The headers that nginx's cache obeys. What they leave open counts as no.
fn asked_for(headers: &Headers) -> Asked {
    if headers.has("set-cookie") || headers.has("vary") {
        return Asked::Never;
    }
    if let Some(expires) = headers.get("x-accel-expires") {
        return seconds(expires);
    }
    let mut asked = Asked::Nothing;
    for token in headers.all("cache-control").flat_map(tokens) {
        let token = token.to_ascii_lowercase();
        if [&b"no-cache"[..], b"no-store", b"private"].contains(&token.as_slice()) {
            return Asked::Never;
        }
        let shared = token.strip_prefix(b"s-maxage=");
        match shared.or_else(|| token.strip_prefix(b"max-age=")) {
            Some(age) if shared.is_some() || asked == Asked::Nothing => asked = seconds(age),
            _ => {}
        }
    }
    match asked {
        // A moment rather than a time: asking again is never wrong.
        Asked::Nothing if headers.has("expires") => Asked::Never,
        Asked::For(time) if time.is_zero() => Asked::Never,
        asked => asked,
    }
}

fn seconds(text: &[u8]) -> Asked {
    let text = std::str::from_utf8(text.trim_ascii()).ok();
    match text.and_then(|text| text.parse::<u32>().ok()) {
        Some(0) | None => Asked::Never,
        Some(seconds) => Asked::For(Duration::from_secs(u64::from(seconds))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, asked_for};
    use std::time::Duration;
    use wire::Headers;

    fn asked(fields: &[(&'static str, &'static str)]) -> Asked {
        let mut headers = Headers::default();
        fields.iter().for_each(|(name, value)| headers.add(name, *value));
        asked_for(&headers)
    }

    #[test]
    fn what_an_answer_says_about_caching_counts() {
        let minute = Asked::For(Duration::from_secs(60));
        assert_eq!(asked(&[]), Asked::Nothing);
        assert_eq!(asked(&[("Cache-Control", "public")]), Asked::Nothing);
        assert_eq!(asked(&[("Cache-Control", "max-age=60")]), minute);
        assert_eq!(asked(&[("Cache-Control", "max-age=1, S-Maxage=60")]), minute);
        assert_eq!(asked(&[("X-Accel-Expires", "60"), ("Cache-Control", "no-store")]), minute);
        for (name, value) in [
            ("Cache-Control", "no-store"),
            ("Cache-Control", "max-age=60, Private"),
            ("Cache-Control", "max-age=0"),
            ("Cache-Control", "max-age=soon"),
            ("Set-Cookie", "a=b"),
            ("Vary", "Accept"),
            ("Expires", "Thu, 01 Jan 2037 00:00:00 GMT"),
            ("X-Accel-Expires", "0"),
        ] {
            assert_eq!(asked(&[(name, value)]), Asked::Never, "{name}: {value}");
        }
    }
}
