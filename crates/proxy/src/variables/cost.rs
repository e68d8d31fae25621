//! What it costs to find the values of variables, in bytes that are looked through: whatever they turn out to be.

use super::{of_certificate, of_snippets};
use crate::exchange::Exchange;
use bytes::Bytes;
use model::Variable;

/// What a certificate counts that is read for a value.
const CERTIFICATE: usize = 8 << 10;
/// What finding any value counts at least, also of one that turns out to be empty.
const ANY: usize = 64;
/// How much dearer it is to part bytes, or to decode them, than to look at them; and to make a path of them.
const PARTED: usize = 4;
const PATH: usize = 8;
/// What it counts to find something in a database of addresses.
const DATABASE: usize = 1 << 10;

/// The variables whose values are there without being looked for.
macro_rules! known_at_once {
    () => {
        Variable::RemoteAddr
            | Variable::RemotePort
            | Variable::RealipRemoteAddr
            | Variable::RealipRemotePort
            | Variable::ProxyProtocolAddr
            | Variable::ProxyProtocolPort
            | Variable::ProxyProtocolServerAddr
            | Variable::ProxyProtocolServerPort
            | Variable::ServerAddr
            | Variable::ServerPort
            | Variable::Connection
            | Variable::ConnectionRequests
            | Variable::ConnectionTime
            | Variable::Hostname
            | Variable::Pid
            | Variable::TimeLocal
            | Variable::TimeIso8601
            | Variable::Msec
            | Variable::RequestTime
            | Variable::Request
            | Variable::RequestMethod
            | Variable::RequestUri
            | Variable::RequestLength
            | Variable::RequestId
            | Variable::ReqId
            | Variable::RequestCompletion
            | Variable::ServerProtocol
            | Variable::Http2
            | Variable::Pipe
            | Variable::Host
            | Variable::BestHttpHost
            | Variable::PassAccessScheme
            | Variable::PassPort
            | Variable::Scheme
            | Variable::Https
            | Variable::SslProtocol
            | Variable::SslCipher
            | Variable::SslServerName
            | Variable::SslSessionReused
            | Variable::SslAlpnProtocol
            | Variable::SslClientVerify
            | Variable::ServerName
            | Variable::Subdomain
            | Variable::Namespace
            | Variable::IngressName
            | Variable::ServiceName
            | Variable::ServicePort
            | Variable::LocationPath
            | Variable::ProxyUpstreamName
            | Variable::ProxyAlternativeUpstreamName
            | Variable::ProxyHost
            | Variable::ProxyPort
            | Variable::DocumentRoot
            | Variable::NginxVersion
            | Variable::Status
            | Variable::BodyBytesSent
            | Variable::BytesSent
            | Variable::UpstreamAddr
            | Variable::UpstreamStatus
            | Variable::UpstreamResponseTime
            | Variable::UpstreamConnectTime
            | Variable::UpstreamHeaderTime
            | Variable::UpstreamResponseLength
            | Variable::UpstreamCacheStatus
            | Variable::GzipRatio
            | Variable::OpentelemetryTraceId
            | Variable::OpentelemetrySpanId
            | Variable::OpentelemetryTraceparent
            | Variable::OpentelemetryTracestate
            | Variable::OpentelemetryB3
    };
}

/// About how many bytes are looked through for the value of a variable. Each says it for itself: one that is forgotten
/// costs nothing, as often as an Ingress has it. Bytes that become part of a text count with that.
#[inline(never)]
pub(crate) fn looked_through(variable: &Variable, exchange: &Exchange) -> usize {
    use Variable as V;
    let request = &exchange.request;
    let looked = match variable {
        V::RequestHeader(_) | V::ContentLength | V::ContentType | V::ProxyAddXForwardedFor => {
            head(exchange)
        }
        V::ResponseHeader(_) => exchange.answer.sent.held(),
        V::UpstreamHeader(_) => exchange.answer.upstream.held(),
        V::Cookie(_) => PARTED * head(exchange),
        // What the query is may have been said by an upstream, or by a snippet.
        V::Argument(_) => PARTED * request.head_size.max(query(exchange)),
        V::Args | V::QueryString | V::IsArgs => query(exchange),
        V::RemoteUser => {
            let credentials = request.headers.get("authorization").map_or(0, <[u8]>::len);
            head(exchange) + PARTED * credentials
        }
        // A trusted peer may say it in a field.
        V::PassServerPort => head(exchange),
        V::EscapedRequestUri => exchange.received().len(),
        V::FastcgiScriptName | V::FastcgiPathInfo => {
            PATH * exchange.visit.rewritten.as_ref().unwrap_or(&exchange.path).len()
        }
        V::Uri | V::DocumentUri => PATH * exchange.visit.rewritten.as_ref().map_or(0, Bytes::len),
        V::GeoIp2(_) => DATABASE,
        V::OfSnippets(_) => of_snippets::looked_through(exchange),
        of_certificate!() => CERTIFICATE,
        known_at_once!() => 0,
    };
    looked.max(ANY)
}

/// The client's header section, with what programs have added to it.
fn head(exchange: &Exchange) -> usize {
    exchange.request.head_size.max(exchange.request.headers.held())
}

/// Where the query is looked for.
fn query(exchange: &Exchange) -> usize {
    match &exchange.snippet {
        None => exchange.request.target.len(),
        Some(running) => running.state.query.len(),
    }
}
