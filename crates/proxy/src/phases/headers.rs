//! The header section of the answer: what stays between proxy and upstream goes, what Fairway adds comes
//! (ngx_http_proxy_module's hidden fields; compat/behaviour.md sections 12 and 15).

use super::route_filters;
use crate::answer::{self, Watch};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::snippet::Effects;
use crate::variables;
use bytes::Bytes;
use http::StatusCode;
use model::Global;
use wire::{Field, Headers, Interim, NameSet, Nominated, Response, Source};

const LINK: &str = "link";
const LIMIT_RATE: &str = "x-accel-limit-rate";

/// Fields that belong to the upstream's connection.
const OF_CONNECTION: NameSet =
    NameSet::new(&["connection", "keep-alive", "proxy-connection", "te"]);

/// Fields that nginx keeps for itself.
const HIDDEN: NameSet = NameSet::new(&[
    "x-pad",
    "x-accel-expires",
    "x-accel-redirect",
    LIMIT_RATE,
    "x-accel-buffering",
    "x-accel-charset",
]);

/// All that do not always pass, but for those that are empty.
const WATCHED: NameSet = NameSet::new(&[
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "x-pad",
    "x-accel-expires",
    "x-accel-redirect",
    LIMIT_RATE,
    "x-accel-buffering",
    "x-accel-charset",
    "upgrade",
    "server",
]);

/// Makes the header section what the client gets. Gives back the rate that an upstream asks for.
pub(super) fn filter(
    exchange: &mut Exchange,
    response: &mut Response,
    watch: Watch,
) -> Option<Bytes> {
    let mut rate = None;
    if watch.upstream {
        keep_upstreams(exchange, response);
    }
    if response.source == Source::Upstream {
        let upgraded = response.status == StatusCode::SWITCHING_PROTOCOLS;
        let (global, effects) = (exchange.generation.global(), exchange.effects());
        if !all_pass(&response.headers, global, effects) {
            rate = take_out(&mut response.headers, global, effects, upgraded);
        }
        if !exchange.visit.paged
            && let Err(error) = super::answer_rewrites::apply(exchange, &mut response.headers)
        {
            *response = super::failed::answer_error(exchange, &error);
        }
    }
    let generation = &exchange.generation;
    let global = generation.global();
    super::x_accel::carry(exchange, response);
    tell_of_guards(exchange, response);
    if global.server_tokens && !response.headers.has("server") {
        response.headers.add("Server", "fairway");
    }
    if let Some(policy) = global
        .hsts
        .as_ref()
        .filter(|_| exchange.connection.tls.is_some() && exchange.place.is_some())
        .filter(|_| !exchange.visit.authenticated.to_sign_in)
        .filter(|_| !route_filters::is_of_gateway(exchange))
    {
        response.headers.set("Strict-Transport-Security", policy);
    }
    // The balancer says it, before any filter.
    if !route_filters::is_of_gateway(exchange) {
        super::sessions::tell(exchange, response);
    }
    keep(exchange, response, watch);
    let of_all = &exchange.generation.answer_headers;
    of_all.apply(variables::filler(exchange), &mut response.headers);
    if exchange.effects().is_none() {
        set_by_location(exchange, response);
        super::cors::tell(exchange, response);
        add_cookies(exchange, response);
    } else if let Err(error) = with_snippets(exchange, response, watch) {
        *response = super::failed::answer_error(exchange, &error);
    }
    rate
}

/// What the location sets and adds, in the order of nginx.tmpl and of the filters that say it: headers-more goes before
/// what adds, the location before the last of its `if` blocks that holds.
fn with_snippets(
    exchange: &mut Exchange,
    response: &mut Response,
    watch: Watch,
) -> Result<(), Error> {
    let controller = |exchange: &mut Exchange, response: &mut Response| {
        super::cors::tell(exchange, response);
        // What is added sees what has been set.
        keep(exchange, response, watch);
        add_cookies(exchange, response);
    };
    if exchange.visit.authenticated.to_sign_in {
        super::effects::to_sign_in(exchange, response, controller)
    } else {
        super::effects::answer(exchange, response, set_by_location, controller)
    }
}

/// Keeps what the upstream says, for variables.
pub(super) fn keep_upstreams(exchange: &mut Exchange, response: &Response) {
    if response.source == Source::Upstream {
        exchange.answer.upstream = answer::section(response, exchange.request.version);
    }
}

/// `custom-headers`, which are not for what an error backend answers.
fn set_by_location(exchange: &Exchange, response: &mut Response) {
    let is_of_location = !exchange.visit.paged && !exchange.visit.authenticated.to_sign_in;
    if let Some(place) = exchange.place.as_ref().filter(|_| is_of_location)
        && let Some(own) = &place.spot().extras().custom_headers
    {
        own.apply(variables::filler(exchange), &mut response.headers);
    }
}

/// Hands an interim answer of the upstream to the client, if it understands any. Of its fields `Link` goes with early
/// hints (RFC 8297), unless somebody here says or takes that of answers: others would come past all that is done to the
/// header section of an answer.
pub(super) fn pass_on(exchange: &Exchange, mut interim: Interim) {
    let Some(interims) = &exchange.interims else { return };
    let (global, effects) = (exchange.generation.global(), exchange.effects());
    let hints = interim.status == StatusCode::EARLY_HINTS && !says_links(exchange);
    let nominated = Nominated::of(&interim.headers);
    interim.headers.retain(|field| {
        hints && field.is(LINK) && passes(field, global, effects, false, &nominated)
    });
    interims.push(interim);
}

/// Whether it is not for the upstream alone to say what an answer has of `Link`.
fn says_links(exchange: &Exchange) -> bool {
    let place = exchange.place.as_ref();
    let of_location = place.and_then(|place| place.spot().extras().custom_headers.as_ref());
    exchange.generation.answer_headers.has(LINK.as_bytes())
        || of_location.is_some_and(|own| own.has(LINK.as_bytes()))
        || route_filters::says(exchange, LINK.as_bytes())
        || exchange.effects().is_some_and(|effects| effects.answer.replaces(LINK))
}

/// Keeps the header section that is sent, if the log asks for it.
pub(super) fn keep(exchange: &mut Exchange, response: &Response, watch: Watch) {
    if watch.sent {
        exchange.answer.sent = answer::section(response, exchange.request.version);
    }
}

/// The header sections that a variable asks for, in the log or at the location.
pub(super) fn watch(exchange: &Exchange) -> Watch {
    let here = exchange.place.as_ref().map_or(Watch::default(), |place| place.spot().watch);
    exchange.generation.watch.or(here)
}

/// What the guards tell the client, but for cookies.
fn tell_of_guards(exchange: &Exchange, response: &mut Response) {
    let notes = &exchange.visit.authenticated;
    if let Some(information) = &notes.information {
        response.headers.set("Authentication-Info", information);
    }
    for (name, value) in &notes.answer {
        response.headers.push(name, value);
    }
}

/// The authenticator's cookies: nginx's add_header for them names these statuses, is not for what an error backend
/// answers, and does not count within where there is another one.
fn add_cookies(exchange: &Exchange, response: &mut Response) {
    let notes = &exchange.visit.authenticated;
    if notes.cookies.is_empty() || exchange.visit.paged {
        return;
    }
    if super::effects::hides_added(exchange) && !notes.to_sign_in {
        return;
    }
    let usual = matches!(response.status.as_u16(), 200 | 201 | 204 | 206 | 301..=304 | 307 | 308);
    if !usual && !notes.always_set_cookie {
        return;
    }
    let asked = exchange.level().and_then(|level| level.settings.access.cookies_apart);
    if asked == Some(true) && !notes.to_sign_in {
        notes.cookies.iter().for_each(|cookie| response.headers.add("Set-Cookie", cookie));
    } else {
        response.headers.add("Set-Cookie", notes.cookies.join(&b", "[..]));
    }
}

/// Whether all fields pass, which a few looks at the whole tell of most answers.
fn all_pass(headers: &Headers, global: &Global, effects: Option<&Effects>) -> bool {
    effects.is_none()
        && global.hide_headers.is_empty()
        && !headers.has_any(&WATCHED)
        && !headers.all("content-type").any(<[u8]>::is_empty)
}

/// Takes out what does not pass. Gives back the rate that is asked for.
fn take_out(
    headers: &mut Headers,
    global: &Global,
    effects: Option<&Effects>,
    upgraded: bool,
) -> Option<Bytes> {
    let mut rate = None;
    let nominated = Nominated::of(headers);
    headers.retain(|field| {
        let passes = passes(field, global, effects, upgraded, &nominated);
        if !passes && rate.is_none() && field.is(LIMIT_RATE) {
            rate = Some(Bytes::copy_from_slice(field.value));
        }
        passes
    });
    rate.filter(|_| !effects.is_some_and(|effects| effects.ignores(LIMIT_RATE)))
}

fn passes(
    field: &Field<'_>,
    global: &Global,
    effects: Option<&Effects>,
    upgraded: bool,
    nominated: &Nominated,
) -> bool {
    if field.is_one_of(&OF_CONNECTION) || (field.is("upgrade") && !upgraded) {
        return false;
    }
    let shown = |effects: &Effects| effects.shown.iter().any(|name| field.is(name));
    if field.is_one_of(&HIDDEN) && !effects.is_some_and(shown) {
        return false;
    }
    // nginx sends no Content-Type that says nothing.
    if field.value.is_empty() && field.is("content-type") {
        return false;
    }
    if field.is("server") && !global.upstream_server_header {
        return false;
    }
    if !upgraded && nominated.has(field.name) {
        return false;
    }
    if let Some(effects) = effects.filter(|effects| !effects.hidden.is_empty()) {
        return !effects.hidden.iter().any(|name| field.is(name));
    }
    global.hide_headers.is_empty()
        || !global.hide_headers.contains(&*String::from_utf8_lossy(field.name).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{HIDDEN, OF_CONNECTION, WATCHED, all_pass, take_out};
    use model::Global;
    use wire::Headers;

    const NAMES: [&str; 22] = [
        "Connection",
        "keep-alive",
        "Proxy-Connection",
        "TE",
        "X-Pad",
        "x-accel-expires",
        "X-Accel-Redirect",
        "X-Accel-Limit-Rate",
        "X-Accel-Buffering",
        "X-Accel-Charset",
        "Upgrade",
        "Server",
        "Content-Type",
        "Content-Length",
        "Last-Modified",
        "Accept-Ranges",
        "Date",
        "ETag",
        "Set-Cookie",
        "X-Told",
        "Cache-Control",
        "a",
    ];

    #[test]
    fn what_passes_at_one_look_passes_field_by_field() {
        let hides = || {
            let mut global = Global::default();
            global.hide_headers.insert("x-told".into());
            global
        };
        let shows = Global { upstream_server_header: true, ..Global::default() };
        let mut at_once = 0;
        for global in [Global::default(), shows, hides()] {
            for (first, second) in NAMES.iter().flat_map(|a| NAMES.iter().map(move |b| (a, b))) {
                for (value, other) in [("close, x-told", "x"), ("", "x"), ("x", ""), ("1", "2")] {
                    let mut headers = Headers::default();
                    headers.add(first, value);
                    headers.add(second, other);
                    let passes = all_pass(&headers, &global, None);
                    let rate = take_out(&mut headers, &global, None, false);
                    at_once += usize::from(passes);
                    assert!(!passes || (headers.len() == 2 && rate.is_none()), "{headers:?}");
                }
            }
        }
        assert!(at_once > 100, "{at_once}");
        let watched = |name: &&str| WATCHED.has(name.as_bytes());
        assert!(OF_CONNECTION.names().iter().chain(HIDDEN.names()).all(watched));
    }
}
