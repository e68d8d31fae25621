//! `X-Accel-Redirect` of an upstream's answer: the request goes on with another path of the same host
//! (ngx_http_upstream_module, ngx_http_internal_redirect). Every phase from the choice of the location on runs again.

use super::error_page::{self, Begin};
use super::{Stop, answer_rewrites, client_address, headers};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use wire::{Response, Source};

/// How often one request may be sent on (nginx: NGX_HTTP_MAX_URI_CHANGES).
const MOST: usize = 10;

/// Bytes of the path that an upstream may name, and of the fields that earlier answers leave for the last one: they are
/// kept until that one is there.
const LONGEST: usize = 32 << 10;
const MOST_CARRIED: usize = 64 << 10;

const NAME: &str = "x-accel-redirect";

/// What of an answer that is not sent stays for the one that is (nginx: `redirect` in ngx_http_upstream_headers_in).
const CARRIED: [&str; 6] = [
    "content-type",
    "set-cookie",
    "content-disposition",
    "cache-control",
    "expires",
    "accept-ranges",
];

/// Hears whether an upstream asks for another path.
pub(super) fn hear(exchange: &mut Exchange, response: &Response) -> bool {
    let ignored = exchange.effects().is_some_and(|effects| effects.ignores(NAME));
    let counts = response.source == Source::Upstream && !ignored;
    let asked = counts.then(|| response.headers.bytes(NAME)).flatten();
    let goes_on = asked.is_some();
    if goes_on || exchange.onward.asked.is_some() {
        exchange.onward.asked = asked;
    }
    goes_on
}

/// Sends the request on if the answer that was heard asks for it, and says where it begins then.
pub(super) fn follow(
    exchange: &mut Exchange,
    response: &mut Response,
) -> Result<Option<Begin>, Stop> {
    let asked = exchange.onward.written().and_then(|onward| onward.asked.take());
    let asked = asked.filter(|_| !super::route_filters::is_of_gateway(exchange));
    let Some(address) = asked else { return Ok(None) };
    go_on(exchange, response, &address)
}

/// Leads it to this address.
#[cold]
fn go_on(
    exchange: &mut Exchange,
    response: &mut Response,
    address: &[u8],
) -> Result<Option<Begin>, Stop> {
    // It would hold more than it does.
    if exchange.worker.refuses_to_go_on(&exchange.connection) {
        return Err(Response::page(StatusCode::SERVICE_UNAVAILABLE).into());
    }
    if exchange.onward.tries.len() >= MOST {
        return Err(Error::Onward("is one too many for this request").into());
    }
    if address.len() > LONGEST {
        return Err(Error::Onward("names a path of more than 32k").into());
    }
    let name = address.starts_with(b"@").then(|| String::from_utf8_lossy(address).into_owned());
    let target = target(address).filter(|_| name.is_none());
    if name.is_none() && target.is_none() {
        return Err(Response::page(StatusCode::NOT_FOUND).into());
    }
    // It is the upstream of the location that leads.
    let leader = exchange.place.as_ref().and_then(Place::owner).cloned();
    if let Some(running) = &mut exchange.snippet {
        running.state.led_by = leader;
    }
    headers::keep_upstreams(exchange, response);
    answer_rewrites::apply(exchange, &mut response.headers)?;
    let before = exchange.onward.carried.held();
    let carried = response.headers.iter().filter(|field| CARRIED.iter().any(|name| field.is(name)));
    for field in carried {
        exchange.onward.carried.push(field.name, field.value);
    }
    if exchange.onward.carried.size() > MOST_CARRIED {
        return Err(Error::Onward("leaves more than 64k of fields for other answers").into());
    }
    let carried = exchange.onward.carried.held() - before;
    let kept = response.headers.held() + carried + target.as_ref().map_or(0, Bytes::len);
    if !exchange.keeps_left(kept) {
        return Err(Error::OnwardHolds.into());
    }
    exchange.onward.tries.push(exchange.log.tries.len());
    exchange.replaces_answers();
    if let Some(name) = name {
        let nowhere = |_| Error::Onward("names a location that is not there");
        error_page::named(exchange, &name).map_err(nowhere)?;
        return Ok(Some(Begin::Here));
    }
    if let Some(target) = target {
        exchange.lead_to(target);
        client_address::forget(exchange);
    }
    Ok(Some(Begin::Path))
}

/// Path and arguments on the wire. None if the path is not absolute or leads upwards (ngx_http_parse_unsafe_uri).
fn target(address: &[u8]) -> Option<Bytes> {
    let end = address.iter().position(|&byte| byte == b'?').unwrap_or(address.len());
    let (path, arguments) = address.split_at(end);
    if path.is_empty() {
        return None;
    }
    let canonical = route::path::canonical(path).ok().filter(|canonical| !canonical.dotted)?;
    let mut target = BytesMut::from(route::path::encode(&canonical.path).as_bytes());
    for &byte in arguments {
        match byte {
            0..=b' ' | 0x7f.. => target.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => target.extend_from_slice(&[byte]),
        }
    }
    Some(target.freeze())
}

/// Gives the final answer what earlier ones left for it.
pub(super) fn carry(exchange: &Exchange, response: &mut Response) {
    // What is said here in place of a page has the type that the upstream said.
    let is_said = exchange.snippet.as_ref().is_some_and(|running| running.said);
    if is_said && exchange.onward.carried.has("content-type") {
        response.headers.remove("content-type");
    }
    for field in exchange.onward.carried.iter() {
        if !(field.is("content-type") && response.headers.has("content-type")) {
            response.headers.push(field.name, field.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_target_is_a_path_with_arguments_and_nothing_else() {
        let text = |address: &str| {
            target(address.as_bytes()).map(|target| String::from_utf8_lossy(&target).into_owned())
        };
        assert_eq!(text("/a%20b?x=1").as_deref(), Some("/a%20b?x=1"));
        assert_eq!(text("/a b?c d").as_deref(), Some("/a%20b?c%20d"));
        for unsafe_one in ["", "?x", "other", "http://a.test/", "/a/../b", "/a/%2e%2e/b", "/%00"] {
            assert_eq!(text(unsafe_one), None, "{unsafe_one}");
        }
    }
}
