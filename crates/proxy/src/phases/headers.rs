//! The header section of the answer: what stays between proxy and upstream goes, what Fairway adds comes
//! (ngx_http_proxy_module's hidden fields; compat/behaviour.md sections 12 and 15).

use crate::answer::{self, Watch};
use crate::exchange::Exchange;
use crate::http::{Field, Interim, Response, Source};
use crate::variables;
use bytes::Bytes;
use http::StatusCode;
use model::Global;

const LIMIT_RATE: &str = "x-accel-limit-rate";

/// Fields that belong to the upstream's connection, or that nginx keeps for itself.
const HIDDEN: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "x-pad",
    "x-accel-expires",
    "x-accel-redirect",
    LIMIT_RATE,
    "x-accel-buffering",
    "x-accel-charset",
    "te",
];

/// Makes the header section what the client gets. Gives back the rate that an upstream asks for.
pub(super) fn filter(
    exchange: &mut Exchange,
    response: &mut Response,
    watch: Watch,
) -> Option<Bytes> {
    let generation = &exchange.generation;
    let global = generation.global();
    let mut rate = None;
    if watch.upstream && response.source == Source::Upstream {
        exchange.answer.upstream = answer::section(response, exchange.request.version);
    }
    if response.source == Source::Upstream {
        let upgraded = response.status == StatusCode::SWITCHING_PROTOCOLS;
        let nominated = response.headers.get("connection").cloned();
        response.headers.retain(|field| {
            let passes = passes(field, global, upgraded, nominated.as_ref());
            if !passes && rate.is_none() && field.is(LIMIT_RATE) {
                rate = Some(field.value.clone());
            }
            passes
        });
        super::answer_rewrites::apply(exchange, &mut response.headers);
    }
    super::x_accel::carry(exchange, response);
    authenticated(exchange, response);
    if global.server_tokens && !response.headers.has("server") {
        response.headers.add("Server", Bytes::from_static(b"fairway"));
    }
    if let Some(policy) = global
        .hsts
        .as_ref()
        .filter(|_| exchange.connection.tls.is_some() && exchange.place.is_some())
        .filter(|_| !exchange.authenticated.to_sign_in)
    {
        response
            .headers
            .set("Strict-Transport-Security", Bytes::copy_from_slice(policy.as_bytes()));
    }
    if watch.sent {
        exchange.answer.sent = answer::section(response, exchange.request.version);
    }
    let fill = variables::filler(exchange);
    generation.answer_headers.apply(&fill, &mut response.headers);
    if let Some(place) = &exchange.place {
        place.spot().custom_headers.apply(&fill, &mut response.headers);
    }
    super::cors::tell(exchange, response);
    rate
}

/// Hands an interim answer of the upstream to the client, if it understands any: with what an answer would keep of it.
pub(super) fn pass_on(exchange: &Exchange, mut interim: Interim) {
    let Some(interims) = &exchange.interims else { return };
    let global = exchange.generation.global();
    let nominated = interim.headers.get("connection").cloned();
    interim.headers.retain(|field| passes(field, global, false, nominated.as_ref()));
    interims.push(interim);
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

/// What the guards tell the client: nginx's add_header for the authenticator's cookies names these statuses.
fn authenticated(exchange: &Exchange, response: &mut Response) {
    let notes = &exchange.authenticated;
    if let Some(information) = &notes.information {
        response.headers.set("Authentication-Info", information.clone());
    }
    if let Some(cookies) = &notes.cookies {
        let usual =
            matches!(response.status.as_u16(), 200 | 201 | 204 | 206 | 301..=304 | 307 | 308);
        if usual || notes.always_set_cookie {
            response.headers.add("Set-Cookie", cookies.clone());
        }
    }
}

fn passes(field: &Field, global: &Global, upgraded: bool, nominated: Option<&Bytes>) -> bool {
    if HIDDEN.iter().any(|name| field.is(name)) || (field.is("upgrade") && !upgraded) {
        return false;
    }
    // nginx sends no Content-Type that says nothing.
    if field.value.is_empty() && field.is("content-type") {
        return false;
    }
    if field.is("server") && !global.upstream_server_header {
        return false;
    }
    let named = |value: &Bytes| {
        crate::http::tokens(value).any(|token| token.eq_ignore_ascii_case(&field.name))
    };
    if !upgraded && nominated.is_some_and(named) {
        return false;
    }
    global.hide_headers.is_empty()
        || !global
            .hide_headers
            .contains(&*String::from_utf8_lossy(&field.name).to_ascii_lowercase())
}
