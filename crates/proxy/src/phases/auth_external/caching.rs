//! Which answers of an authenticator are remembered, under which key, and for how long (`auth-cache-key`,
//! `auth-cache-duration`; ngx_http_file_cache with what ingress-nginx tells it).

use super::question;
use crate::authenticator::{Authenticator, Entry, Said, Tag};
use crate::exchange::Exchange;
use crate::phases::client_fields;
use crate::snippet::Told;
use crate::variables;
use aws_lc_rs::digest::{Context, SHA256};
use model::PathKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wire::{Headers, Response, tokens};

/// Bytes of Vary beyond which nothing is remembered (NGX_HTTP_CACHE_VARY_LEN).
const VARY: usize = 128;

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
    let answers = exchange.worker.answers();
    match answers.get(&namespace, &tag) {
        Some(Entry::Said(said)) => Ok(said),
        Some(Entry::Varies(names)) => {
            match answers.get(&namespace, &variant(exchange, &tag, &names)) {
                Some(Entry::Said(said)) => Ok(said),
                Some(Entry::Varies(_)) | None => Err(Some(tag)),
            }
        }
        None => Err(Some(tag)),
    }
}

/// The tag for the values that a request has in these fields.
fn variant(exchange: &Exchange, tag: &Tag, names: &[Box<str>]) -> Tag {
    let mut context = Context::new(&SHA256);
    let mut put = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_le_bytes());
        context.update(bytes);
    };
    put(tag);
    for name in names {
        put(name.as_bytes());
        exchange.request.headers.all(name).for_each(|value| {
            put(b"is");
            put(value);
        });
        put(b"");
    }
    let mut tag = Tag::default();
    tag.copy_from_slice(context.finish().as_ref());
    tag
}

/// The fields that an answer hangs on besides its key, as it says in Vary; none if it is for one request alone. What
/// the question says by itself is another for each request, and no field of the client tells it.
fn varies(headers: &Headers, is_own: impl Fn(&[u8]) -> bool) -> Option<Vec<Box<str>>> {
    let mut names = Vec::new();
    let mut length = 0;
    for name in headers.all("vary").flat_map(tokens) {
        length += name.len() + 1;
        if length > VARY || name == b"*" || is_own(name) {
            return None;
        }
        names.push(std::str::from_utf8(name).ok()?.to_ascii_lowercase().into());
    }
    Some(names)
}

fn is_whole(exchange: &Exchange) -> bool {
    let location = &exchange.spot().location;
    location.kind == PathKind::Prefix && exchange.path == location.path.as_bytes()
}

pub(super) fn remember(
    exchange: &Exchange,
    authenticator: &Authenticator,
    told: &Told,
    key: Tag,
    answer: &Response,
    said: &Arc<Said>,
) {
    let Some(cache) = &authenticator.policy.cache else { return };
    let status = answer.status.as_u16();
    if !(answer.status.is_success() || matches!(status, 401 | 403)) {
        return;
    }
    let is_own = |name: &[u8]| question::is_own(exchange, authenticator, told, name);
    let Some(names) = varies(&answer.headers, is_own) else { return };
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
        let answers = exchange.worker.answers();
        if names.is_empty() {
            return answers.put(&namespace, key, said.clone(), until);
        }
        answers.put(&namespace, variant(exchange, &key, &names), said.clone(), until);
        answers.put(&namespace, key, Entry::Varies(names.into()), until);
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
    if headers.has("set-cookie") {
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
    use super::{Asked, asked_for, varies};
    use std::time::Duration;
    use wire::Headers;

    fn asked(fields: &[(&'static str, &'static str)]) -> Asked {
        let mut headers = Headers::default();
        fields.iter().for_each(|(name, value)| headers.add(name, *value));
        asked_for(&headers)
    }

    #[test]
    fn an_answer_hangs_on_fields_of_the_client_or_is_for_one_request_alone() {
        let of = |values: &[&'static str]| {
            let mut headers = Headers::default();
            values.iter().for_each(|value| headers.add("Vary", *value));
            let names = varies(&headers, |name| name.eq_ignore_ascii_case(b"x-real-ip"))?;
            Some(names.join(" "))
        };
        assert_eq!(of(&[]).as_deref(), Some(""));
        assert_eq!(of(&["Accept, Origin", "COOKIE"]).as_deref(), Some("accept origin cookie"));
        for wrong in ["*", "Accept, *", "Accept, X-Real-IP", "X-\u{fc}", &"Accept, ".repeat(20)] {
            let mut headers = Headers::default();
            headers.add("Vary", wrong);
            let is_own = |name: &[u8]| name.eq_ignore_ascii_case(b"x-real-ip") || !name.is_ascii();
            assert_eq!(varies(&headers, is_own), None, "{wrong}");
        }
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
            ("Expires", "Thu, 01 Jan 2037 00:00:00 GMT"),
            ("X-Accel-Expires", "0"),
        ] {
            assert_eq!(asked(&[(name, value)]), Asked::Never, "{name}: {value}");
        }
    }
}
