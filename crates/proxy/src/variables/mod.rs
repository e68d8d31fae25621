//! The values of nginx's variables for a request.

mod client_certificate;
mod cookie;
mod cost;
pub(crate) mod fastcgi;
mod groups;
pub(crate) mod logged;
mod of_head;
mod of_place;
mod of_snippets;
mod opentelemetry;
pub(crate) mod usual_line;

pub(crate) use client_certificate::verified;
pub(crate) use cost::looked_through;
pub(crate) use groups::{expression, of_request};
pub(crate) use of_head::read_with_the_head;
pub(crate) use of_place::settled;
pub(crate) use of_snippets::{
    by_table, connection_ends, counts, forwarded_for, is_loggable, watch,
};

use crate::credentials;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::texts::TEXT;
use bytes::Bytes;
use model::{Part, Template, Variable};
use of_head::{content_length, request_header};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;
use upstream::Try;
use wire::percent::{self, is_unreserved};
use wire::{Headers, Request, iso8601, since_epoch};

/// Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{ let _ = write!($out, $($format)*); }};
}

/// The variables that a client's certificate is read for.
macro_rules! of_certificate {
    () => {
        Variable::SslClientSubject
            | Variable::SslClientIssuer
            | Variable::SslClientSerial
            | Variable::SslClientFingerprint
            | Variable::SslClientEscapedCert
            | Variable::SslClientCert
            | Variable::SslClientRawCert
            | Variable::SslClientStart
            | Variable::SslClientEnd
            | Variable::SslClientRemain
    };
}
use of_certificate;

/// A template with the values of a request; capture groups are empty, as for whoever is asked about it.
pub(crate) fn text_of(template: &Template, exchange: &Exchange) -> String {
    filled(template, exchange, &[])
}

/// The same for whoever is asked about a request, or gets a copy of it: `$uri` is the path that its client asked for,
/// whatever the location makes of it for its upstream.
pub(crate) fn as_asked(template: &Template, exchange: &Exchange) -> String {
    let of_client = |variable: &Variable, exchange: &Exchange, out: &mut String| match variable {
        Variable::Uri | Variable::DocumentUri => matched(exchange, out),
        other => push(other, exchange, out),
    };
    filled_by(template, exchange, &[], of_client)
}

/// Fills templates with the values of a request.
pub(crate) fn filler(exchange: &Exchange) -> impl Fn(&Template) -> String {
    |template| text_of(template, exchange)
}

/// Bytes as a header field may have them: what would end the line or is not ASCII is escaped, as URLs do it.
pub(crate) fn in_header(bytes: &[u8]) -> Bytes {
    percent::encoded(bytes, |byte| matches!(byte, b' '..=b'~')).into()
}

/// The same where other bytes go as they are, as nginx sends them: only control characters are escaped.
pub(crate) fn in_own_bytes(bytes: &[u8]) -> Bytes {
    percent::encoded(bytes, |byte| matches!(byte, b' '..=b'~' | 0x80..)).into()
}

/// Appends the value of a variable; nothing where it has none.
pub(crate) fn push(variable: &Variable, exchange: &Exchange, out: &mut String) {
    use Variable as V;
    match variable {
        V::RequestHeader(name) if name == "host" => text(&exchange.request.authority, out),
        V::RequestHeader(name) => request_header(&exchange.request.headers, name, out),
        V::Cookie(name) => cookie(exchange, name, out),
        V::Argument(name) => argument(exchange, name, out),
        V::GeoIp2(asked) => exchange.worker.geoip().push(asked, exchange.client, out),
        V::OfSnippets(name) => of_snippets::push(name, exchange, out),
        V::ResponseHeader(name) => header(&exchange.answer.sent, name, out),
        V::UpstreamHeader(name) => header(&exchange.answer.upstream, name, out),
        V::RemoteUser => user(exchange, out),
        V::UpstreamAddr
        | V::UpstreamStatus
        | V::UpstreamResponseTime
        | V::UpstreamConnectTime
        | V::UpstreamHeaderTime
        | V::UpstreamResponseLength => upstream(variable, exchange, out),
        V::SslProtocol
        | V::SslCipher
        | V::SslServerName
        | V::SslSessionReused
        | V::Https
        | V::SslAlpnProtocol
        | V::Scheme => {
            tls(variable, exchange, out);
        }
        V::SslClientVerify | of_certificate!() => client_certificate::push(variable, exchange, out),
        V::ProxyUpstreamName => of_place::upstream_name(exchange, out),
        V::ProxyAlternativeUpstreamName
        | V::Namespace
        | V::IngressName
        | V::ServiceName
        | V::ServicePort
        | V::LocationPath
        | V::ServerName
        | V::Subdomain => of_place::push(variable, exchange, out),
        V::OpentelemetryTraceId
        | V::OpentelemetrySpanId
        | V::OpentelemetryTraceparent
        | V::OpentelemetryTracestate
        | V::OpentelemetryB3 => opentelemetry::push(variable, exchange, out),
        V::TimeLocal | V::TimeIso8601 | V::Msec | V::RequestTime | V::ConnectionTime => {
            time(variable, exchange, out)
        }
        V::RemoteAddr
        | V::RemotePort
        | V::RealipRemoteAddr
        | V::ProxyProtocolAddr
        | V::ProxyProtocolPort
        | V::ProxyProtocolServerAddr
        | V::ProxyProtocolServerPort
        | V::RealipRemotePort
        | V::ServerAddr
        | V::ServerPort
        | V::PassServerPort
        | V::Connection
        | V::ConnectionRequests
        | V::Hostname => connection(variable, exchange, out),
        _ => request(variable, exchange, out),
    }
}

/// The name of a Basic Authorization, whether or not it was asked for (ngx_http_variable_remote_user).
fn user(exchange: &Exchange, out: &mut String) {
    let value = exchange.request.headers.get("authorization");
    if let Some(credentials) = value.and_then(credentials::basic) {
        text(&credentials.user, out);
    }
}

/// Fails where texts were longer than they may be: they are not what was asked for, and the request ends.
pub(crate) fn fit(exchange: &Exchange) -> Result<(), Error> {
    match &exchange.place {
        Some(place) if exchange.texts.are_overlong() => {
            Err(Error::text_too_long(&exchange.host, &place.spot().location))
        }
        _ => Ok(()),
    }
}

/// A template with the values of its variables, and the groups of the pattern that belongs to it; empty where it would
/// be too long, or they took too much already, see [`fit`].
pub(crate) fn filled(template: &Template, exchange: &Exchange, groups: &[Option<&[u8]>]) -> String {
    filled_by(template, exchange, groups, push)
}

fn filled_by(
    template: &Template,
    exchange: &Exchange,
    groups: &[Option<&[u8]>],
    push: impl Fn(&Variable, &Exchange, &mut String),
) -> String {
    let mut out = String::new();
    let texts = &exchange.texts;
    for part in template.parts() {
        if texts.are_overlong() {
            return String::new();
        }
        match part {
            Part::Text(literal) if literal.len() > TEXT => texts.fail(),
            Part::Text(literal) => out.push_str(literal),
            Part::Variable(variable) => {
                if !texts.may_look(looked_through(variable, exchange)) {
                    return String::new();
                }
                push(variable, exchange, &mut out);
            }
            Part::Capture(group) => {
                let group = groups.get(*group).copied().flatten().unwrap_or_default();
                out.push_str(&route::path::text(group));
            }
        }
        if out.len() > TEXT {
            break;
        }
    }
    if !texts.are_overlong() && texts.may_have(out.len()) { out } else { String::new() }
}

/// Bytes that are no UTF-8 count as the characters of Latin-1. What stands beside them stays: one such byte hides
/// nothing from who looks for the rest.
fn text(bytes: &[u8], out: &mut String) {
    // Nearly all of it is text, which is looked through more quickly as a whole.
    if let Ok(text) = std::str::from_utf8(bytes) {
        return out.push_str(text);
    }
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|&byte| char::from(byte)));
    }
}

/// An address with its port. What the general formatting costs shows in every line of the log.
fn address(address: SocketAddr, out: &mut String) {
    let SocketAddr::V4(address) = address else { return put!(out, "{address}") };
    for (at, octet) in address.ip().octets().into_iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "." });
        number(u64::from(octet), out);
    }
    out.push(':');
    number(u64::from(address.port()), out);
}

fn number(number: u64, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(number));
}

fn request(variable: &Variable, exchange: &Exchange, out: &mut String) {
    use Variable as V;
    let request = &exchange.request;
    let log = &exchange.log;
    match variable {
        V::Request => match &request.line {
            Some(line) => text(line, out),
            None => {
                put!(out, "{} ", request.method);
                text(exchange.received(), out);
                put!(out, " {}", request.version.as_str());
            }
        },
        V::RequestMethod => out.push_str(request.method.as_str()),
        V::RequestUri => text(exchange.received(), out),
        V::EscapedRequestUri => text(&percent::encoded(exchange.received(), is_unreserved), out),
        V::Uri | V::DocumentUri => uri(exchange, out),
        V::Args | V::QueryString => text(exchange.query().unwrap_or_default(), out),
        V::IsArgs => out.push_str(if exchange.query().is_some_and(|query| !query.is_empty()) {
            "?"
        } else {
            ""
        }),
        // Before the body is read it is the head's, as in nginx.
        V::RequestLength => number(log.received.max(exchange.request.head_size as u64), out),
        V::RequestId | V::ReqId => text(&exchange.request_id, out),
        V::RequestCompletion => out.push_str(if log.status > 0 { "OK" } else { "" }),
        V::Status => put!(out, "{:03}", log.status),
        V::BodyBytesSent => number(log.body_sent, out),
        V::BytesSent => number(log.sent, out),
        V::Host => out.push_str(&exchange.host),
        // What is no request has none, and neither method nor target. A method may be called so.
        V::ServerProtocol if request.target.is_empty() && request.method.as_str() == "-" => {
            out.push('-');
        }
        V::ServerProtocol => out.push_str(request.version.as_str()),
        V::Http2 => out.push_str(if request.version == wire::Version::Http2 { "h2" } else { "" }),
        V::Pipe => out.push('.'),
        V::ContentLength => content_length(exchange, out),
        V::ContentType => header(&request.headers, "content_type", out),
        V::ProxyAddXForwardedFor => {
            let before = out.len();
            header(&request.headers, "x_forwarded_for", out);
            let separator = if out.len() == before { "" } else { ", " };
            put!(out, "{separator}{}", exchange.client);
        }
        V::BestHttpHost => text(&exchange.forwarded.host, out),
        V::PassAccessScheme => text(&exchange.forwarded.scheme, out),
        V::PassPort => text(&exchange.forwarded.port, out),
        V::ProxyHost => of_place::proxy_host(exchange, out),
        V::ProxyPort => out.push_str("80"),
        V::Pid => number(u64::from(std::process::id()), out),
        V::GzipRatio => {
            if let Some((whole, hundredths)) = log.squeezed.as_ref().and_then(|count| count.ratio())
            {
                put!(out, "{whole}.{hundredths:02}");
            }
        }
        V::FastcgiScriptName => text(&fastcgi::script_name(exchange), out),
        V::FastcgiPathInfo => text(&fastcgi::path_info(exchange), out),
        V::DocumentRoot => out.push_str(fastcgi::DOCUMENT_ROOT),
        V::NginxVersion => out.push_str(fastcgi::NGINX_VERSION),
        _ => {}
    }
}

/// The path as it is now: that of a rewrite once the location has one, and `/` where an error backend words the answer
/// (ngx_http_rewrite_module; nginx.tmpl: CUSTOM_ERRORS).
fn uri(exchange: &Exchange, out: &mut String) {
    if exchange.onward.paged.is_some() {
        return out.push('/');
    }
    match &exchange.snippet {
        // What stands behind a `proxy_pass` changes no variable.
        Some(running) => text(&route::path::bytes(&running.state.path), out),
        None if exchange.visit.rewritten.is_some() => text(&fastcgi::target(exchange).0, out),
        None => matched(exchange, out),
    }
}

/// The canonical path that the location was found by, also of what is refused before one is looked for.
fn matched(exchange: &Exchange, out: &mut String) {
    let request = &exchange.request;
    if !exchange.path.is_empty() || !request.target.starts_with(b"/") {
        return text(&exchange.path, out);
    }
    if let Ok(canonical) = route::path::canonical(request.raw_path()) {
        text(&canonical.path, out);
    }
}

fn connection(variable: &Variable, exchange: &Exchange, out: &mut String) {
    use Variable as V;
    let connection = &exchange.connection;
    match variable {
        V::RemoteAddr => text(&exchange.client_text(), out),
        V::RemotePort | V::RealipRemotePort => put!(out, "{}", connection.peer.port()),
        V::RealipRemoteAddr => put!(out, "{}", connection.peer.ip()),
        V::ProxyProtocolAddr => {
            if let Some(announced) = connection.announced() {
                put!(out, "{}", announced.source.ip());
            }
        }
        V::ProxyProtocolPort => {
            if let Some(announced) = connection.announced() {
                put!(out, "{}", announced.source.port());
            }
        }
        V::ProxyProtocolServerAddr => {
            if let Some(announced) = connection.announced() {
                put!(out, "{}", announced.destination.ip());
            }
        }
        V::ProxyProtocolServerPort => {
            if let Some(announced) = connection.announced() {
                put!(out, "{}", announced.destination.port());
            }
        }
        V::ServerAddr => put!(out, "{}", connection.local.ip()),
        V::ServerPort => put!(out, "{}", connection.local.port()),
        V::PassServerPort => text(&exchange.server_port(), out),
        V::Connection => put!(out, "{}", connection.serial),
        V::ConnectionRequests => put!(out, "{}", connection.requests.get()),
        V::Hostname => out.push_str(&exchange.worker.listen.hostname),
        _ => {}
    }
}

fn tls(variable: &Variable, exchange: &Exchange, out: &mut String) {
    use Variable as V;
    let session = exchange.connection.tls.as_ref();
    match (variable, session) {
        (V::Scheme, session) => out.push_str(if session.is_some() { "https" } else { "http" }),
        (V::Https, Some(_)) => out.push_str("on"),
        (V::SslProtocol, Some(session)) => out.push_str(session.version),
        (V::SslCipher, Some(session)) => out.push_str(&session.cipher),
        (V::SslServerName, Some(session)) => {
            out.push_str(session.server_name.as_deref().unwrap_or_default())
        }
        (V::SslAlpnProtocol, Some(_)) => {
            let h2 = exchange.request.version == wire::Version::Http2;
            out.push_str(if h2 { "h2" } else { "http/1.1" });
        }
        (V::SslSessionReused, Some(session)) => out.push(if session.resumed { 'r' } else { '.' }),
        _ => {}
    }
}

fn time(variable: &Variable, exchange: &Exchange, out: &mut String) {
    match variable {
        Variable::TimeLocal => {
            let mut now = Vec::new();
            exchange.worker.clock.put_local(&mut now);
            text(&now, out);
        }
        Variable::TimeIso8601 => out.push_str(&iso8601(since_epoch().as_secs())),
        Variable::Msec => seconds(since_epoch(), out),
        Variable::ConnectionTime => seconds(wire::since(exchange.connection.since), out),
        _ => seconds(wire::since(exchange.since), out),
    }
}

/// Seconds with milliseconds, as nginx prints times.
fn seconds(duration: Duration, out: &mut String) {
    number(duration.as_secs(), out);
    let millis = duration.subsec_millis();
    out.push_str(if millis < 10 {
        ".00"
    } else if millis < 100 {
        ".0"
    } else {
        "."
    });
    number(u64::from(millis), out);
}

/// One value for each try, separated by `, ` (ngx_http_upstream_module).
fn upstream(variable: &Variable, exchange: &Exchange, out: &mut String) {
    for (number, attempt) in exchange.log.tries.iter().enumerate() {
        if number > 0 {
            // An upstream that sends the request on begins another group, and so does an error page.
            let onward = &exchange.onward;
            let is_paged = onward.paged.as_ref().is_some_and(|paged| paged.tries == number);
            let is_other = is_paged || onward.tries.contains(&number);
            out.push_str(if is_other { " : " } else { ", " });
        }
        attempted(variable, attempt, out);
    }
}

fn attempted(variable: &Variable, attempt: &Try, out: &mut String) {
    use Variable as V;
    let mut moment = |time: Option<Duration>| match time {
        Some(time) => seconds(time, out),
        None => out.push('-'),
    };
    match variable {
        V::UpstreamResponseTime => moment(attempt.ended.get().or(Some(wire::since(attempt.since)))),
        V::UpstreamConnectTime => moment(attempt.connected.get()),
        V::UpstreamHeaderTime => moment(attempt.header.get()),
        V::UpstreamAddr => address(attempt.address, out),
        V::UpstreamResponseLength => number(attempt.length(), out),
        V::UpstreamStatus => match attempt.status.get() {
            Some(status) => number(u64::from(status), out),
            None => out.push('-'),
        },
        _ => {}
    }
}

/// The value of `$http_<name>`, if there is such a header.
pub(crate) fn header_of(exchange: &Exchange, name: &str) -> Option<String> {
    let Request { headers, authority, .. } = &exchange.request;
    // It is kept by itself, for all versions.
    if name == "host" {
        let mut value = String::new();
        text(authority, &mut value);
        return (!value.is_empty()).then_some(value);
    }
    let came = || read_with_the_head(name).is_some_and(|name| headers.came(name).next().is_some());
    (headers.spelled(name).next().is_some() || came()).then(|| {
        let mut value = String::new();
        request_header(headers, name, &mut value);
        value
    })
}

/// The value of `$cookie_<name>`, if there is such a cookie.
pub(crate) fn cookie_of(headers: &Headers, name: &str) -> Option<String> {
    let mut value = String::new();
    text(cookie::find(headers, name)?, &mut value);
    Some(value)
}

/// A header field by its variable's name; several lines are joined by `, `, crumbs of cookies by `; ` (RFC 9113 section
/// 8.2.3, nginx for all versions).
fn header(headers: &Headers, name: &str, out: &mut String) {
    let separator = if name == "cookie" { "; " } else { ", " };
    let mut first = true;
    for field in headers.spelled(name) {
        if !std::mem::take(&mut first) {
            out.push_str(separator);
        }
        text(field.value, out);
    }
}

fn cookie(exchange: &Exchange, name: &str, out: &mut String) {
    text(cookie::find(&exchange.request.headers, name).unwrap_or_default(), out);
}

fn argument(exchange: &Exchange, name: &str, out: &mut String) {
    let query = exchange.query().unwrap_or_default();
    let found = query.split(|&byte| byte == b'&').find_map(|pair| {
        let at = pair.iter().position(|&byte| byte == b'=')?;
        pair[..at].eq_ignore_ascii_case(name.as_bytes()).then(|| &pair[at + 1..])
    });
    text(found.unwrap_or_default(), out);
}
