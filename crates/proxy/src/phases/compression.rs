//! Compression of answers, decided as nginx's filters decide: brotli first, then gzip (ngx_http_gzip_filter_module,
//! ngx_brotli; compat/configmap.csv `use-gzip`, `enable-brotli`).

use crate::exchange::{Exchange, Place};
use crate::load::Pressure;
use crate::snippet::{Compressing, second_of};
use crate::under_way::Encoding;
use bytes::{BufMut, Bytes, BytesMut};
use http::{Method, StatusCode};
use model::{Compression, Eligible};
use std::rc::Rc;
use wire::{
    Body, Coding, Compressed, Length, Response, Version, since_epoch, takes_brotli, takes_gzip,
};

pub(super) fn filter(exchange: &mut Exchange, response: &mut Response) {
    let of_snippets = exchange.effects().and_then(|effects| effects.compression.as_ref());
    let global = &exchange.generation.global().compression;
    let Compression { gzip, brotli } = of_snippets.map_or(global, |own| &own.by);
    if gzip.is_none() && brotli.is_none() || !may_be(response) {
        return;
    }
    let mut vary = false;
    let mut coding = None;
    if let Some(brotli) = brotli.as_ref().filter(|brotli| suits(response, &brotli.eligible)) {
        vary = true;
        coding = accepts(exchange, takes_brotli).then_some(Coding::Brotli(brotli.level));
    }
    if coding.is_none()
        && let Some(gzip) = gzip.as_ref().filter(|gzip| suits(response, &gzip.eligible))
    {
        vary = true;
        let not_for = |agent: &str| {
            gzip.not_for.as_ref().is_some_and(|agents| agents.has(agent, &exchange.steps))
        };
        let old = exchange.request.version == Version::Http10;
        let wanted = (!old || of_snippets.is_some_and(|own| own.http_1_0))
            && of_snippets.is_none_or(|own| is_for_proxy(exchange, response, own))
            && accepts(exchange, takes_gzip)
            && !exchange.request.headers.text("user-agent").is_some_and(not_for);
        coding = wanted.then_some(Coding::Gzip(gzip.level));
    }
    // `gzip_vary` comes with gzip, and then counts for brotli, too.
    if vary && of_snippets.map_or(gzip.is_some(), |own| own.vary) {
        // nginx writes its own before those of the upstream (ngx_http_header_filter).
        let theirs: Vec<_> = response.headers.all("vary").map(Bytes::copy_from_slice).collect();
        response.headers.remove("vary");
        response.headers.add("Vary", "Accept-Encoding");
        theirs.iter().for_each(|vary| response.headers.add("Vary", vary));
    }
    let Some(coding) = coding else { return };
    if exchange.request.method == Method::HEAD {
        return say(response, coding);
    }
    // An answer that there is no memory to compress goes as it is.
    if let Some(place) = place(exchange, coding.memory(response.body.length())) {
        say(response, coding);
        let count = exchange.log.squeezed.insert(Rc::default()).clone();
        let plain = std::mem::replace(&mut response.body, Body::empty());
        response.body = Body::from_source(Compressed::new(plain, coding, count, place));
    }
}

/// A place for an encoder, among those of its connection, of whom the location belongs to, and of all; none where
/// memory is scarce.
fn place(exchange: &Exchange, size: u64) -> Option<Encoding> {
    let Exchange { worker, connection, place, .. } = exchange;
    if worker.pressure() != Pressure::Normal {
        return None;
    }
    let owner = place.as_ref().and_then(Place::owner).cloned().unwrap_or_default();
    Encoding::begin(worker.under_way(), connection, &owner, size)
}

/// Whether an answer may be compressed at all.
fn may_be(response: &Response) -> bool {
    let status =
        matches!(response.status, StatusCode::OK | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
    status && response.headers.get("content-encoding").is_none_or(<[u8]>::is_empty)
}

/// Whether it is long enough, and of one of the types.
fn suits(response: &Response, eligible: &Eligible) -> bool {
    let length = match (response.announced_length, response.body.length()) {
        (Some(length), _) | (None, Length::Known(length)) => length,
        (None, Length::Unknown) => u64::MAX,
    };
    let content_type = response.headers.text("content-type").unwrap_or_default();
    length >= eligible.min_length && eligible.has_type(content_type)
}

/// Whether a proxy, which says so by Via, gets an answer compressed: `gzip_proxied` (ngx_http_gzip_ok).
fn is_for_proxy(exchange: &Exchange, response: &Response, own: &Compressing) -> bool {
    let words = match &own.proxied {
        Some(words) if exchange.request.headers.has("via") => words,
        Some(_) | None => return true,
    };
    let says = |word: &str| words.iter().any(|known| known == word);
    let headers = &response.headers;
    if says("off") {
        return false;
    }
    if says("auth") && exchange.request.headers.has("authorization") {
        return true;
    }
    if headers.has("expires") {
        let now = second_of(headers, "date").unwrap_or_else(|| since_epoch().as_secs());
        return says("expired") && second_of(headers, "expires").is_some_and(|until| until < now);
    }
    if headers.has("cache-control") {
        let named = |word: &&str| says(word) && headers.has_token("cache-control", word);
        return ["no-cache", "no-store", "private"].iter().any(named);
    }
    let marked = |word, name| says(word) && headers.has(name);
    !marked("no_last_modified", "last-modified") && !marked("no_etag", "etag")
}

fn accepts(exchange: &Exchange, takes: fn(&[u8]) -> bool) -> bool {
    exchange.request.headers.get("accept-encoding").is_some_and(takes)
}

/// The answer's fields say that its body is compressed; so do those of an answer to HEAD, which has none.
fn say(response: &mut Response, coding: Coding) {
    let name = match coding {
        Coding::Gzip(_) => &b"gzip"[..],
        Coding::Brotli(_) => &b"br"[..],
    };
    response.headers.set("Content-Encoding", name);
    // Ranges and lengths are those of what was there before.
    response.headers.remove("accept-ranges");
    response.announced_length = None;
    weaken(response);
}

/// The entity is no longer the same byte for byte (ngx_http_weak_etag).
fn weaken(response: &mut Response) {
    let Some(tag) = response.headers.bytes("etag") else { return };
    if tag.len() > 2 && tag.starts_with(b"W/") {
        return;
    }
    if !tag.starts_with(b"\"") {
        response.headers.remove("etag");
        return;
    }
    let mut weak = BytesMut::with_capacity(tag.len() + 2);
    weak.put_slice(b"W/");
    weak.put_slice(&tag);
    response.headers.set("ETag", weak.freeze());
}
