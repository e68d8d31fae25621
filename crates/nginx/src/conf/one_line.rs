//! What of a request fits into one line of a head, whatever a client sends: nginx decodes paths, names and users, and
//! puts into a head what is in a variable.

use super::tree::{put, words};
use super::{Block, Word};
use model::{Part, Template, Variable};
use std::collections::BTreeSet;

/// What is counted as nothing: it would end a line.
const CONTROL: &str = "~[\\x00-\\x1f\\x7f]";

/// Groups that a template can name.
pub(super) const GROUPS: std::ops::RangeInclusive<usize> = 1..=9;

/// Whether the value of a variable is always of one line. Fields and the target of a request are: nginx takes none that
/// has a line break in it. A new variable is not, until somebody has looked.
pub(super) fn fits(variable: &Variable) -> bool {
    use Variable as V;
    match variable {
        // Decoded, or as the client has it: a path, the user of an Authorization, the name in a handshake, PEM.
        V::Uri | V::DocumentUri | V::FastcgiScriptName | V::FastcgiPathInfo => false,
        V::RemoteUser | V::SslServerName | V::SslClientCert | V::SslClientRawCert => false,
        // As somebody wrote it into an Ingress.
        V::LocationPath => false,
        // Whatever it is that a snippet makes.
        V::OfSnippets(_) => false,
        V::RequestHeader(_) | V::ResponseHeader(_) | V::UpstreamHeader(_) | V::Cookie(_) => true,
        V::Argument(_) | V::GeoIp2(_) => true,
        V::RemoteAddr | V::RemotePort | V::RealipRemoteAddr | V::RealipRemotePort => true,
        V::ProxyProtocolAddr | V::ProxyProtocolPort => true,
        V::ProxyProtocolServerAddr | V::ProxyProtocolServerPort => true,
        V::TimeLocal | V::TimeIso8601 | V::Msec => true,
        V::Request | V::RequestMethod | V::RequestUri | V::EscapedRequestUri => true,
        V::Args | V::QueryString | V::IsArgs => true,
        V::RequestLength | V::RequestTime | V::RequestId | V::ReqId | V::RequestCompletion => true,
        V::Status | V::BodyBytesSent | V::BytesSent | V::GzipRatio => true,
        V::Scheme | V::Host | V::Hostname | V::ServerName | V::Subdomain => true,
        V::ServerAddr | V::ServerPort | V::ServerProtocol | V::Https | V::Http2 => true,
        V::Connection | V::ConnectionRequests | V::ConnectionTime | V::Pipe | V::Pid => true,
        V::ContentLength | V::ContentType => true,
        V::SslProtocol | V::SslCipher | V::SslSessionReused | V::SslAlpnProtocol => true,
        // Names are escaped (RFC 2253), reasons are OpenSSL's.
        V::SslClientVerify | V::SslClientSubject | V::SslClientIssuer => true,
        V::SslClientSerial | V::SslClientFingerprint | V::SslClientEscapedCert => true,
        V::SslClientStart | V::SslClientEnd | V::SslClientRemain => true,
        V::UpstreamAddr | V::UpstreamStatus | V::UpstreamResponseTime => true,
        V::UpstreamConnectTime | V::UpstreamHeaderTime | V::UpstreamResponseLength => true,
        V::UpstreamCacheStatus | V::ProxyUpstreamName | V::ProxyAlternativeUpstreamName => true,
        V::ProxyAddXForwardedFor | V::ProxyHost | V::ProxyPort => true,
        V::Namespace | V::IngressName | V::ServiceName | V::ServicePort => true,
        V::BestHttpHost | V::PassAccessScheme | V::PassPort | V::PassServerPort => true,
        V::DocumentRoot | V::NginxVersion => true,
        V::OpentelemetryTraceId | V::OpentelemetrySpanId | V::OpentelemetryTraceparent => true,
        V::OpentelemetryTracestate | V::OpentelemetryB3 => true,
    }
}

/// Whether patterns find out what a variable is: that leaves nothing of the groups of the match before.
pub(super) fn is_found_by_patterns(variable: &Variable) -> bool {
    use Variable as V;
    let is_of_client =
        matches!(variable, V::BestHttpHost | V::PassAccessScheme | V::PassPort | V::PassServerPort);
    is_of_client || !fits(variable)
}

/// The name under which a variable is of one line.
pub(super) fn name(variable: &Variable) -> String {
    let name = variable.name();
    if fits(variable) { name } else { safe(&name) }
}

/// The name of a group of the location's path, of one line.
pub(super) fn name_of_group(group: usize) -> String {
    safe(&own(group))
}

/// The name of a group as it is: each location sets those that it says somewhere.
pub(super) fn own(group: usize) -> String {
    format!("fairway_group_{group}")
}

fn safe(name: &str) -> String {
    format!("fairway_safe_{name}")
}

/// Declares all of these names, and those of what snippets make.
pub(super) fn write(of_snippets: &BTreeSet<String>, http: &mut Block) {
    for group in GROUPS {
        // Only locations of patterns have any.
        let mut none = Block::default();
        none.entry("default".into(), words![""]);
        http.open("map", words!["", variable(&own(group))], none);
        declare(&own(group), http);
    }
    let named = Variable::NAMES.iter().filter_map(|name| Variable::named(name));
    for several in named.filter(|variable| !fits(variable)) {
        declare(&several.name(), http);
    }
    of_snippets.iter().for_each(|name| declare(name, http));
}

/// It is found out anew each time: rewrites change what it is made of.
fn declare(name: &str, http: &mut Block) {
    let source = variable(name);
    let mut map = Block::default();
    put!(map, "volatile");
    map.entry("default".into(), vec![source.clone()]);
    map.entry(CONTROL.into(), words![""]);
    http.open("map", vec![source, variable(&safe(name))], map);
}

fn variable(name: &str) -> Word {
    Word::plain(format!("${name}"))
}

/// The variables of snippets that a template has.
pub(super) fn of_snippets(template: &Template) -> impl Iterator<Item = String> {
    template.parts().iter().filter_map(|part| match part {
        Part::Variable(Variable::OfSnippets(name)) => Some(name.to_string()),
        Part::Variable(_) | Part::Text(_) | Part::Capture(_) => None,
    })
}
