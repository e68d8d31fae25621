//! Bodies as they are written down: decoded, and long ones as a hash, except the echo's own JSON.

use std::io::Read;

use crate::{
    exchange::Body,
    latin1,
    wire::{Pair, value},
};

/// How much a compressed body may become.
const LIMIT: u64 = 64 << 20;

/// A body with these headers, written down.
pub(super) fn shown(body: Vec<u8>, headers: &[Pair]) -> Body {
    let decoded = match value(headers, "content-encoding") {
        Some("gzip") => gunzip(&body),
        Some("br") => unbrotli(&body),
        _ => None,
    };
    let body = decoded.unwrap_or(body);
    if body.starts_with(br#"{"service":"#) {
        Body::Text(latin1::text(&body))
    } else {
        Body::of(&body)
    }
}

/// A recorded body, which is compressed as it came over the wire, in the form of [`shown`].
pub(crate) fn recorded(body: &Body, headers: &[Pair]) -> Option<Body> {
    value(headers, "content-encoding")?;
    Some(shown(latin1::bytes(body.as_text()?)?, headers))
}

fn gunzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(body).take(LIMIT).read_to_end(&mut out).ok().map(|_| out)
}

fn unbrotli(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    brotli_decompressor::Decompressor::new(body, 4096)
        .take(LIMIT)
        .read_to_end(&mut out)
        .ok()
        .map(|_| out)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn encoded(name: &str) -> Vec<Pair> {
        vec![("Content-Encoding".to_owned(), name.to_owned())]
    }

    #[test]
    fn compressed_bodies_are_shown_as_what_they_mean() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(b"hello").unwrap();
        assert_eq!(shown(gzip.finish().unwrap(), &encoded("gzip")), Body::Text("hello".to_owned()));
        // The last block of a stream, holding `hello` as it is.
        let brotli = b"\x0b\x02\x80hello\x03".to_vec();
        assert_eq!(shown(brotli, &encoded("br")), Body::Text("hello".to_owned()));
    }

    #[test]
    fn a_recorded_body_means_the_same_however_it_was_compressed() {
        let recorded = Body::Text(latin1::text(b"\x0b\x02\x80hello\x03"));
        let plain = Body::Text("hello".to_owned());
        assert_eq!(super::recorded(&recorded, &encoded("br")), Some(plain));
        assert_eq!(super::recorded(&recorded, &[]), None);
    }

    #[test]
    fn what_is_not_compressed_as_it_says_is_shown_as_it_is() {
        assert_eq!(shown(b"hello".to_vec(), &encoded("gzip")), Body::Text("hello".to_owned()));
        let long = shown(vec![b'x'; 5000], &[]);
        assert!(matches!(long, Body::Digest { size: 5000, .. }));
    }
}
