//! Parsers of what comes from outside, by themselves, so that fuzz targets and benches can call them.

use crate::phases::{client_address, sessions};
use crate::telemetry::{Context, propagation};
use crate::{credentials, variables};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use model::policy::ClientCertificate;
use model::{Backend, Configuration, Location, Origin, Pattern, Propagator, RealIp, Steps};
use std::net::IpAddr;
use std::sync::Arc;
use upstream::{Records, Said, cgi_head_end, parse_cgi_head};
use wire::http1::{Decoder, Framing, Limits, head_end, parse_request, parse_response};
use wire::{Frame, Headers};

/// Reads a pattern and looks for it in a text: the bytes that it keeps, whether it matches, and whether it has groups
/// there; the latter are none if that takes more steps than a request has.
pub fn pattern(source: &str, text: &[u8]) -> Option<(usize, Option<bool>, Option<bool>)> {
    let (matching, capturing) =
        (Pattern::new(source, true).ok()?, Pattern::for_captures(source, true).ok()?);
    let matches = matching.try_match(text, &Steps::default()).ok();
    let groups = capturing.captures(text, &Steps::default()).ok();
    Some((matching.size(), matches, groups.map(|groups| groups.is_some())))
}

/// Makes what certificates of upstreams and of clients are judged by, as serving a configuration does. Whose locations
/// are closed since it cannot be made for them.
pub fn trust(configuration: &Configuration) -> Vec<Option<Origin>> {
    let profiles = tls::Profiles::default();
    let mut closed = Vec::new();
    for server in configuration.servers.values() {
        if let Some(ClientCertificate::Verified(settings)) = &server.client_certificate {
            tls::Verifier::new(settings.clone()).subjects();
        }
        let open = |location: &&Arc<Location>| !matches!(location.backend, Backend::Denied(_));
        for location in server.locations.iter().filter(open) {
            if profiles.profile(&location.policy.upstream_tls, false).is_err() {
                closed.push(location.origin.as_deref().cloned());
            }
        }
    }
    closed
}

/// Bytes as base64, for texts that fuzz targets make.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads a request head, if there is a whole one; whether it was accepted.
pub fn request_head(bytes: &[u8]) -> bool {
    let Some(end) = head_end(bytes, 0) else { return false };
    let limits = Limits { line: 8 << 10, count: 100, underscores: false, drop_odd: true };
    parse_request(&Bytes::copy_from_slice(&bytes[..end]), limits, b"").is_ok()
}

/// Reads a response head, if there is a whole one; whether it was accepted.
pub fn response_head(bytes: &[u8]) -> bool {
    let Some(end) = head_end(bytes, 0) else { return false };
    parse_response(&Bytes::copy_from_slice(&bytes[..end]), &::http::Method::GET).is_ok()
}

/// Decodes a chunked body that arrives in pieces of `step` bytes: its data if it is whole, and what follows it.
pub fn chunked(bytes: &[u8], step: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut decoder = Decoder::new(Framing::Chunked);
    let (mut buffer, mut data) = (BytesMut::new(), Vec::new());
    let mut pieces = bytes.chunks(step.max(1));
    loop {
        match decoder.decode(&mut buffer).ok()? {
            Some(Frame::Data(piece)) => data.extend_from_slice(&piece),
            Some(Frame::Trailers(_)) => {}
            None if decoder.is_done() => {
                let rest = pieces.flatten().copied();
                return Some((data, buffer.iter().copied().chain(rest).collect()));
            }
            None => buffer.extend_from_slice(pieces.next()?),
        }
    }
}

/// Reads a PROXY protocol header; whether it was accepted.
pub fn proxy_header(bytes: &[u8]) -> bool {
    stream::proxy_protocol::parse(bytes).is_ok()
}

/// Reads a FastCGI answer that arrives in pieces of `step` bytes: its status, if its head is one, and its body;
/// nothing if its records are none or it breaks off.
pub fn fastcgi_answer(bytes: &[u8], step: usize) -> Option<(Option<u16>, Vec<u8>)> {
    let (mut records, mut buffer, mut stdout) = (Records::default(), BytesMut::new(), Vec::new());
    let mut pieces = bytes.chunks(step.max(1));
    loop {
        match records.next(&mut buffer).ok()? {
            Some(Said::Stdout(data)) => stdout.extend_from_slice(&data),
            Some(Said::Stderr(_)) => {}
            Some(Said::End) => break,
            None => buffer.extend_from_slice(pieces.next()?),
        }
    }
    let body = stdout.split_off(cgi_head_end(&stdout)?);
    let status = parse_cgi_head(&stdout).ok().map(|head| head.status.as_u16());
    Some((status, body))
}

/// Reads an Authorization value: the name and the password of a Basic one.
pub fn basic(value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    credentials::basic(value).map(|credentials| (credentials.user, credentials.password))
}

/// Reads an Authorization value: the fields of a Digest one, in the order user, realm, number, URI, `qop`, count,
/// number of the client, response.
pub fn digest(value: &[u8]) -> Option<[Vec<u8>; 8]> {
    credentials::digest(value).map(|answer| {
        [
            answer.user,
            answer.realm,
            answer.nonce,
            answer.uri,
            answer.qop,
            answer.count,
            answer.client_nonce,
            answer.response,
        ]
    })
}

/// Whether a password is the one that a password file knows.
pub fn is_password(known: &model::policy::Password, password: &[u8]) -> bool {
    credentials::verify(known, password)
}

/// The session that the Cookie fields `lines` tell, where the session's cookie is called `name`.
pub fn session_cookie(lines: &[&[u8]], name: &str) -> Option<String> {
    sessions::cookie(&fields("Cookie", lines), name)
}

/// The value of `$cookie_<name>` for the Cookie fields `lines`, if there is such a cookie: what `canary-by-cookie`
/// asks.
pub fn cookie(lines: &[&[u8]], name: &str) -> Option<String> {
    variables::cookie_of(&fields("Cookie", lines), name)
}

/// The client's address for X-Forwarded-For fields `lines` that `peer` sent; before them comes a PROXY protocol header,
/// if there is to be one. None if that is no such header.
pub fn client(
    real: &RealIp,
    peer: IpAddr,
    before: Option<&[u8]>,
    lines: &[&[u8]],
) -> Option<IpAddr> {
    let announced = match before {
        Some(header) => stream::proxy_protocol::parse(header).ok()?,
        None => None,
    };
    let fields = fields("X-Forwarded-For", lines);
    Some(client_address::address(real, before.is_some(), peer, announced, &fields))
}

/// The host that an X-Forwarded-Host value tells, if any.
pub fn forwarded_host(value: &[u8]) -> Option<Vec<u8>> {
    client_address::first(&Bytes::copy_from_slice(value)).map(Vec::from)
}

/// A trace as header fields tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The numbers of the trace and of the span that asks.
    pub ids: Option<(u128, u64)>,
    /// Whether it is recorded, if that is said.
    pub sampled: Option<bool>,
    /// What the next process is told, in the same format; nothing where there are no numbers.
    pub told: Vec<(String, Vec<u8>)>,
}

/// Reads the trace that header fields tell in a format.
pub fn trace(propagator: Propagator, fields: &[(String, Vec<u8>)]) -> Option<Trace> {
    let mut headers = Headers::default();
    for (name, value) in fields {
        headers.push(name, value);
    }
    let read = propagation::extract(&[propagator], &headers)?;
    let mut told = Vec::new();
    if let Some((trace, span)) = read.parent {
        let context = Context { trace, span, sampled: read.sampled.unwrap_or(true) };
        propagation::inject(&[propagator], &context, &read.carried, |name, value| {
            told.push((name.to_owned(), value.to_vec()));
        });
    }
    let ids = read.parent.map(|(trace, span)| (trace.number(), span.number()));
    Some(Trace { ids, sampled: read.sampled, told })
}

fn fields(name: &'static str, lines: &[&[u8]]) -> Headers {
    let mut headers = Headers::default();
    lines.iter().for_each(|line| headers.add(name, line));
    headers
}
