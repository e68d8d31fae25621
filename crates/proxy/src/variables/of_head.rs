//! Variables of the fields that are read with the head of a request, and taken out of it.

use super::{header, number, text};
use crate::exchange::Exchange;
use wire::Headers;

/// A header field of a request, also of those that are read with the head and taken away.
pub(super) fn request_header(headers: &Headers, name: &str, out: &mut String) {
    let before = out.len();
    header(headers, name, out);
    let Some(name) = read_with_the_head(name).filter(|_| out.len() == before) else { return };
    for (at, value) in headers.came(name).enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        text(value, out);
    }
}

/// The name of a field that is read with the head of a request, by that of its variable.
pub(crate) fn read_with_the_head(variable: &str) -> Option<&'static str> {
    Some(match variable {
        "content_length" => "content-length",
        "transfer_encoding" => "transfer-encoding",
        "expect" => "expect",
        _ => return None,
    })
}

/// `$content_length`
pub(super) fn content_length(exchange: &Exchange, out: &mut String) {
    let request = &exchange.request;
    // The body may be on its way already.
    let announced = || exchange.snippet.as_ref().and_then(|running| running.announced);
    let length = match request.body.length() {
        wire::Length::Known(length) if length > 0 => Some(length),
        _ => announced(),
    };
    match length {
        Some(length) => number(length, out),
        None => text(announced_nothing(&request.headers).unwrap_or_default(), out),
    }
}

/// The Content-Length of a request that has announced a body of no bytes.
fn announced_nothing(headers: &Headers) -> Option<&[u8]> {
    let is_nothing =
        |length: &&[u8]| !length.is_empty() && length.iter().all(|digit| *digit == b'0');
    headers.came("content-length").next().filter(is_nothing)
}
