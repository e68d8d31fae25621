//! Text with nginx variables, parsed once: literals, known variables and capture groups, nothing else.

use crate::GeoVariable;
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

macro_rules! variables {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The nginx variables that Fairway knows (nginx core, ngx_http_upstream, and those that ingress-nginx sets).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Variable {
            $($(#[$doc])* $variant,)*
            /// `$http_<name>`: a request header, its name in lower case with `-` as `_`.
            RequestHeader(String),
            /// `$sent_http_<name>`: a header of the answer.
            ResponseHeader(String),
            /// `$upstream_http_<name>`: a header of the upstream's answer.
            UpstreamHeader(String),
            /// `$cookie_<name>`.
            Cookie(String),
            /// `$arg_<name>`.
            Argument(String),
            /// `$geoip2_<name>`: what a database says about the client's address.
            GeoIp2(&'static GeoVariable),
            /// One that snippets declare, or that only they know, by its name in lower case: a request says what it is.
            OfSnippets(Arc<str>),
        }

        impl Variable {
            /// The names of all but those that only a beginning tells (`http_…`).
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The variable called `name` (without `$`), if there is one.
            pub fn named(name: &str) -> Option<Self> {
                Some(match name {
                    $($name => Self::$variant,)*
                    _ => return Self::prefixed(name),
                })
            }

            /// Its name without `$`.
            pub fn name(&self) -> String {
                match self {
                    $(Self::$variant => $name.to_owned(),)*
                    Self::RequestHeader(name) => format!("http_{name}"),
                    Self::ResponseHeader(name) => format!("sent_http_{name}"),
                    Self::UpstreamHeader(name) => format!("upstream_http_{name}"),
                    Self::Cookie(name) => format!("cookie_{name}"),
                    Self::Argument(name) => format!("arg_{name}"),
                    Self::GeoIp2(variable) => format!("geoip2_{}", variable.name),
                    Self::OfSnippets(name) => name.to_string(),
                }
            }
        }
    };
}

variables! {
    /// Address of the client after real-IP replacement.
    RemoteAddr = "remote_addr",
    /// Port of the client.
    RemotePort = "remote_port",
    /// User of basic authentication.
    RemoteUser = "remote_user",
    /// Address of the peer before real-IP replacement.
    RealipRemoteAddr = "realip_remote_addr",
    /// Client address of the PROXY protocol header.
    ProxyProtocolAddr = "proxy_protocol_addr",
    /// Client port of the PROXY protocol header.
    ProxyProtocolPort = "proxy_protocol_port",
    /// Local time, `21/Nov/2026:12:00:00 +0000`.
    TimeLocal = "time_local",
    /// Local time in ISO 8601.
    TimeIso8601 = "time_iso8601",
    /// Seconds since the epoch with milliseconds.
    Msec = "msec",
    /// The request line as received.
    Request = "request",
    /// The method.
    RequestMethod = "request_method",
    /// The target as received, with arguments.
    RequestUri = "request_uri",
    /// The target as received, escaped for a part of a query (ingress-nginx).
    EscapedRequestUri = "escaped_request_uri",
    /// The normalised path.
    Uri = "uri",
    /// The normalised path (same as `$uri`).
    DocumentUri = "document_uri",
    /// The query string.
    Args = "args",
    /// The query string (same as `$args`).
    QueryString = "query_string",
    /// `?` if there are arguments, else empty.
    IsArgs = "is_args",
    /// Bytes of the request, line, headers and body.
    RequestLength = "request_length",
    /// Seconds from the first byte read to the last byte sent, with milliseconds.
    RequestTime = "request_time",
    /// 32 hexadecimal digits of nginx.
    RequestId = "request_id",
    /// The request id that ingress-nginx forwards.
    ReqId = "req_id",
    /// Whether the request was completed: `OK` or empty.
    RequestCompletion = "request_completion",
    /// Status of the answer.
    Status = "status",
    /// Bytes of the answer's body that were sent.
    BodyBytesSent = "body_bytes_sent",
    /// Bytes of the answer that were sent.
    BytesSent = "bytes_sent",
    /// `http` or `https`: the connection's scheme.
    Scheme = "scheme",
    /// Host in lower case, without port.
    Host = "host",
    /// Host name of this machine.
    Hostname = "hostname",
    /// The name of the server that was chosen.
    ServerName = "server_name",
    /// The label that a wildcard host stands for, empty where the host is none (ingress-nginx).
    Subdomain = "subdomain",
    /// The address that took the connection.
    ServerAddr = "server_addr",
    /// The port that took the connection.
    ServerPort = "server_port",
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0`.
    ServerProtocol = "server_protocol",
    /// `on` under TLS, else empty.
    Https = "https",
    /// `h2` under HTTP/2, else empty.
    Http2 = "http2",
    /// Serial number of the connection.
    Connection = "connection",
    /// Requests so far on this connection.
    ConnectionRequests = "connection_requests",
    /// `.` if pipelined, else `p`.
    Pipe = "pipe",
    /// Content-Length of the request.
    ContentLength = "content_length",
    /// Content-Type of the request.
    ContentType = "content_type",
    /// TLS version of the client's connection.
    SslProtocol = "ssl_protocol",
    /// TLS cipher suite of the client's connection.
    SslCipher = "ssl_cipher",
    /// SNI of the client's connection.
    SslServerName = "ssl_server_name",
    /// `r` if the TLS session was resumed, else `.`.
    SslSessionReused = "ssl_session_reused",
    /// Whether the client's certificate is good: `SUCCESS`, `FAILED:` and why, or `NONE`.
    SslClientVerify = "ssl_client_verify",
    /// Subject of the client's certificate (RFC 2253).
    SslClientSubject = "ssl_client_s_dn",
    /// Issuer of the client's certificate (RFC 2253).
    SslClientIssuer = "ssl_client_i_dn",
    /// Serial number of the client's certificate, hexadecimal.
    SslClientSerial = "ssl_client_serial",
    /// SHA-1 of the client's certificate, hexadecimal.
    SslClientFingerprint = "ssl_client_fingerprint",
    /// The client's certificate in PEM, percent-encoded.
    SslClientEscapedCert = "ssl_client_escaped_cert",
    /// The client's certificate in PEM, each line but the first after a tab.
    SslClientCert = "ssl_client_cert",
    /// The client's certificate in PEM.
    SslClientRawCert = "ssl_client_raw_cert",
    /// From when on the client's certificate is valid.
    SslClientStart = "ssl_client_v_start",
    /// Until when the client's certificate is valid.
    SslClientEnd = "ssl_client_v_end",
    /// Days until the client's certificate ends.
    SslClientRemain = "ssl_client_v_remain",
    /// Addresses of the upstreams that were tried.
    UpstreamAddr = "upstream_addr",
    /// Status of each try.
    UpstreamStatus = "upstream_status",
    /// Seconds of each try until its last byte.
    UpstreamResponseTime = "upstream_response_time",
    /// Seconds of each try until connected.
    UpstreamConnectTime = "upstream_connect_time",
    /// Seconds of each try until its head.
    UpstreamHeaderTime = "upstream_header_time",
    /// Bytes of each try's body.
    UpstreamResponseLength = "upstream_response_length",
    /// Name of the upstream.
    ProxyUpstreamName = "proxy_upstream_name",
    /// Name of the canary upstream, where it was chosen.
    ProxyAlternativeUpstreamName = "proxy_alternative_upstream_name",
    /// X-Forwarded-For as nginx would append to it.
    ProxyAddXForwardedFor = "proxy_add_x_forwarded_for",
    /// Namespace of the Ingress.
    Namespace = "namespace",
    /// Name of the Ingress.
    IngressName = "ingress_name",
    /// Name of the Service.
    ServiceName = "service_name",
    /// Port of the Service as the Ingress names it.
    ServicePort = "service_port",
    /// Path as the Ingress has it.
    LocationPath = "location_path",
    /// Host as forwarded.
    BestHttpHost = "best_http_host",
    /// Scheme as forwarded.
    PassAccessScheme = "pass_access_scheme",
    /// Port as forwarded.
    PassPort = "pass_port",
    /// The port that took the connection, as ingress-nginx maps it.
    PassServerPort = "pass_server_port",
    /// Where `proxy_pass` leads: the one upstream of ingress-nginx's template.
    ProxyHost = "proxy_host",
    /// The port that `proxy_pass` names.
    ProxyPort = "proxy_port",
    /// Whether the answer came from a cache: empty, as there is none.
    UpstreamCacheStatus = "upstream_cache_status",
    /// How many times smaller gzip made the answer.
    GzipRatio = "gzip_ratio",
    /// Seconds since the connection was accepted, with milliseconds.
    ConnectionTime = "connection_time",
    /// Number of this process.
    Pid = "pid",
    /// Port of the peer before real-IP replacement.
    RealipRemotePort = "realip_remote_port",
    /// Server address of the PROXY protocol header.
    ProxyProtocolServerAddr = "proxy_protocol_server_addr",
    /// Server port of the PROXY protocol header.
    ProxyProtocolServerPort = "proxy_protocol_server_port",
    /// The protocol that ALPN chose.
    SslAlpnProtocol = "ssl_alpn_protocol",
    /// The path towards a FastCGI responder, with its index.
    FastcgiScriptName = "fastcgi_script_name",
    /// Empty: nothing splits the path of a FastCGI request.
    FastcgiPathInfo = "fastcgi_path_info",
    /// Where nginx looks for files.
    DocumentRoot = "document_root",
    /// The version of nginx that ingress-nginx v1.15.1 has.
    NginxVersion = "nginx_version",
    /// The trace that the request belongs to, where it is traced.
    OpentelemetryTraceId = "opentelemetry_trace_id",
    /// The request's own span, where it is traced.
    OpentelemetrySpanId = "opentelemetry_span_id",
    /// Trace and span as W3C Trace Context writes them.
    OpentelemetryTraceparent = "opentelemetry_context_traceparent",
    /// The state of the trace as W3C Trace Context hands it on.
    OpentelemetryTracestate = "opentelemetry_context_tracestate",
    /// Trace and span as B3 writes them in one field.
    OpentelemetryB3 = "opentelemetry_context_b3",
}

/// Makes a variable of what follows its prefix.
type Prefixed = (&'static str, fn(String) -> Variable);

impl Variable {
    fn prefixed(name: &str) -> Option<Self> {
        if let Some(name) = name.strip_prefix("geoip2_") {
            return GeoVariable::named(name).map(Self::GeoIp2);
        }
        let kinds: [Prefixed; 5] = [
            ("http_", Self::RequestHeader),
            ("sent_http_", Self::ResponseHeader),
            ("upstream_http_", Self::UpstreamHeader),
            ("cookie_", Self::Cookie),
            ("arg_", Self::Argument),
        ];
        kinds.iter().find_map(|(prefix, make)| {
            let rest = name.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
            Some(make(rest.to_ascii_lowercase()))
        })
    }
}

/// One piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text as it is.
    Text(String),
    /// The value of a variable.
    Variable(Variable),
    /// Capture group 1 to 9 of the location's regular expression.
    Capture(usize),
}

/// Text with variables. `$name`, `${name}` and `$1` as in nginx's configuration language. A copy shares the pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Arc<[Part]>,
}

/// Variables and groups that a template may have: each is looked up anew for each request.
const MOST: usize = 256;

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadTemplate {
    /// A variable that Fairway does not know, or a lone `$`.
    Unknown(String),
    /// More variables and groups than a template may have.
    TooMany,
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown variable ${name}"),
            Self::TooMany => {
                write!(f, "variable number {}, which is one too many: write fewer", MOST + 1)
            }
        }
    }
}

impl Template {
    /// Reads `text`; the error names the first variable that does not exist.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        Self::parse_for(text, |_| None)
    }

    /// The same where `other` says what stands for a variable that this process does not know by itself.
    pub fn parse_for(
        text: &str,
        other: impl Fn(&str) -> Option<Part>,
    ) -> Result<Self, BadTemplate> {
        if text.matches('$').nth(MOST).is_some() {
            return Err(BadTemplate::TooMany);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            push_text(&mut parts, &rest[..at]);
            let (name, after) = variable_name(&rest[at + 1..]);
            let unknown = |name: BadTemplate| other_part(name, &other);
            parts.push(part(name).or_else(unknown)?);
            rest = after;
        }
        push_text(&mut parts, rest);
        Ok(Self::from_parts(parts))
    }

    /// A template of these pieces.
    pub fn from_parts(parts: Vec<Part>) -> Self {
        Self { parts: parts.into() }
    }

    /// The pieces in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether groups of an expression are part of it.
    pub fn has_groups(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Capture(_)))
    }

    /// The same for where nothing was matched: groups are empty.
    #[must_use]
    pub fn without_groups(&self) -> Self {
        if !self.has_groups() {
            return self.clone();
        }
        let others = self.parts.iter().filter(|part| !matches!(part, Part::Capture(_)));
        Self::from_parts(others.cloned().collect())
    }

    /// The text, if it has no variable.
    pub fn literal(&self) -> Option<&str> {
        match &*self.parts {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Variable(variable) => write!(f, "${{{}}}", variable.name()),
            Part::Capture(group) => write!(f, "${group}"),
        })
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

fn part(name: &str) -> Result<Part, BadTemplate> {
    match name.as_bytes() {
        [digit @ b'1'..=b'9'] => Ok(Part::Capture(usize::from(digit - b'0'))),
        _ => Variable::named(name)
            .map(Part::Variable)
            .ok_or_else(|| BadTemplate::Unknown(name.to_owned())),
    }
}

/// What stands for a name that is one of nginx, if `other` says so.
fn other_part(
    unknown: BadTemplate,
    other: impl Fn(&str) -> Option<Part>,
) -> Result<Part, BadTemplate> {
    let BadTemplate::Unknown(name) = &unknown else { return Err(unknown) };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let found = if !name.is_empty() && name.bytes().all(is_name) { other(name) } else { None };
    found.ok_or(unknown)
}

/// Splits what follows a `$` into the variable's name and the rest.
fn variable_name(text: &str) -> (&str, &str) {
    if let Some((name, rest)) = text.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
        return (name, rest);
    }
    let is_capture = text.starts_with(|c: char| c.is_ascii_digit());
    let end = if is_capture {
        1
    } else {
        text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
    };
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::{BadTemplate, MOST, Part, Template, Variable};

    #[test]
    fn text_variables_and_captures_are_told_apart() {
        let template = Template::parse("/x$1/${host}-$arg_Q").expect("known variables");
        let expected = [
            Part::Text("/x".into()),
            Part::Capture(1),
            Part::Text("/".into()),
            Part::Variable(Variable::Host),
            Part::Text("-".into()),
            Part::Variable(Variable::Argument("q".into())),
        ];
        assert_eq!(template.parts(), expected);
    }

    #[test]
    fn an_unknown_variable_is_named() {
        assert!(Template::parse(&"$uri".repeat(MOST)).is_ok());
        assert_eq!(Template::parse(&"$uri".repeat(MOST + 1)), Err(BadTemplate::TooMany));
        assert_eq!(Template::parse("a$nope"), Err(BadTemplate::Unknown("nope".into())));
        assert_eq!(Template::parse("$0"), Err(BadTemplate::Unknown("0".into())));
    }

    #[test]
    fn a_name_that_others_know_is_theirs_and_what_is_no_name_is_nobodys() {
        let other = |name: &str| Some(Part::Variable(Variable::OfSnippets(name.into())));
        let text = "${mine}-$host";
        assert_eq!(
            Template::parse_for(text, other).map(|it| it.to_string()),
            Ok("${mine}-${host}".into())
        );
        for (wrong, name) in [("a$", ""), ("${a-b}", "a-b"), ("$-", "")] {
            assert_eq!(Template::parse_for(wrong, other), Err(BadTemplate::Unknown(name.into())));
        }
    }
}
