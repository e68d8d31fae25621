//! The access log: one line for each request, when its last byte is gone (ngx_http_log_module).

use crate::brief::brief;
use crate::exchange::{Exchange, Place};
use crate::log::{Escape, Format, Piece};
use crate::told::About;
use crate::variables::{self, logged, usual_line};
use model::{Global, Pattern, Variable};

/// Writes the line of a request that is over.
pub(crate) fn write(exchange: &Exchange) {
    if !is_logged(exchange) {
        return;
    }
    let format = &exchange.generation.log_format;
    exchange.worker.log.line(|line| {
        line.reserve(format.usual);
        let start = line.len();
        if !(format.is_default && usual_line::append(exchange, line)) {
            piece_by_piece(format, exchange, line);
        } else if cfg!(debug_assertions) {
            // All tests look at it.
            let mut pieces = Vec::new();
            piece_by_piece(format, exchange, &mut pieces);
            assert_eq!(line[start..].escape_ascii().to_string(), pieces.escape_ascii().to_string());
        }
    });
}

fn piece_by_piece(format: &Format, exchange: &Exchange, line: &mut Vec<u8>) {
    for Piece { text, value, field } in &format.pieces {
        text.append(line);
        let Some(variable) = value else { continue };
        if format.escape != Escape::Usual
            || !logged::append(variable, field.as_deref(), exchange, line)
        {
            at_length(variable, exchange, format.escape, line);
        }
    }
}

/// Appends any variable, by way of its text.
fn at_length(variable: &Variable, exchange: &Exchange, escape: Escape, line: &mut Vec<u8>) {
    let mut value = String::new();
    variables::push(variable, exchange, &mut value);
    match escape {
        Escape::Nothing => line.extend_from_slice(value.as_bytes()),
        Escape::Json => escape_json(&value, line),
        Escape::Usual if value.is_empty() && !exists(variable, exchange) => line.push(b'-'),
        Escape::Usual => logged::escaped(value.as_bytes(), line),
    }
}

/// Whether a variable without a value has the empty one rather than none, for which `-` stands.
fn exists(variable: &Variable, exchange: &Exchange) -> bool {
    use Variable as V;
    match variable {
        V::RequestHeader(name) => variables::header_of(exchange, name).is_some(),
        // The template of ingress-nginx sets them, or starts them as empty.
        V::ProxyUpstreamName
        | V::ProxyAlternativeUpstreamName
        | V::Namespace
        | V::IngressName
        | V::ServiceName
        | V::ServicePort
        | V::LocationPath
        | V::BestHttpHost
        | V::PassAccessScheme
        | V::PassPort
        | V::PassServerPort
        | V::ReqId => true,
        // nginx itself has the empty value for these.
        V::IsArgs | V::Https | V::Http2 | V::RequestCompletion => true,
        _ => false,
    }
}

/// `enable-rewrite-log`: says what became of a path (ngx_http_rewrite_module, rewrite_log).
pub(super) fn note_rewrite(exchange: &Exchange) {
    if !exchange.spot().location.policy.logging.rewrite || exchange.is_made_up() {
        return;
    }
    let owner = exchange.place.as_ref().and_then(Place::owner);
    let Some(line) = exchange.worker.shared.told.line(owner, About::Rewrites) else { return };
    let (client, host, left_out) = (exchange.client, &*exchange.host, line.left_out);
    let path = brief(&String::from_utf8_lossy(&exchange.path));
    match &exchange.visit.rewritten {
        Some(target) => {
            let target = brief(&String::from_utf8_lossy(target));
            tracing::info!(%client, host, left_out, "{path:?} is rewritten to {target:?}");
        }
        None => tracing::info!(%client, host, left_out, "{path:?} is not rewritten"),
    }
}

/// Whether the request gets a line.
pub(crate) fn is_logged(exchange: &Exchange) -> bool {
    let global = exchange.generation.global();
    global.access_log
        && !is_off(exchange, global)
        && variables::is_loggable(exchange).unwrap_or_else(|| is_loggable(exchange))
}

/// Whether it is for no log, whatever `$loggable` says. Pages of an error backend have a location of their own in
/// ingress-nginx, whose log is on.
fn is_off(exchange: &Exchange, global: &Global) -> bool {
    let is_page = || exchange.onward.paged.is_some();
    if exchange.place.as_ref().is_some_and(|place| !place.spot().location.policy.logging.access) {
        return !is_page();
    }
    let unclaimed = match &exchange.place {
        Some(place) => {
            place.site.server.name.as_str() == "_"
                && place.spot().location.origin.is_none()
                && place.spot().location.policy.route.is_none()
        }
        // The health path of the catch-all server is never logged.
        None if exchange.log.status == 200 => return true,
        None => false,
    };
    unclaimed && !global.default_backend_access_log && !is_page()
}

/// `$loggable`, where no snippet makes it: unless `skip-access-log-urls` has the path.
pub(crate) fn is_loggable(exchange: &Exchange) -> bool {
    let global = exchange.generation.global();
    if global.skip_access_log.is_empty() && global.skip_access_log_patterns.is_empty() {
        return true;
    }
    let uri = String::from_utf8_lossy(exchange.received());
    let is_skipped =
        |pattern: &Pattern| pattern.try_match(uri.as_bytes(), &exchange.steps) == Ok(true);
    // Literal keys of nginx's map have no case.
    !global.skip_access_log.contains(uri.to_ascii_lowercase().as_str())
        && !global.skip_access_log_patterns.iter().any(is_skipped)
}

/// nginx's `escape=json`: as in a JSON string; nothing stays nothing.
fn escape_json(value: &str, line: &mut Vec<u8>) {
    for &byte in value.as_bytes() {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            0xc => b'f',
            0..b' ' => {
                line.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
                continue;
            }
            _ => {
                line.push(byte);
                continue;
            }
        };
        line.extend_from_slice(&[b'\\', short]);
    }
}
