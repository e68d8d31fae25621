//! What a line says about a request: the values of nginx's variables, understood.

use std::net::IpAddr;

/// A request as a log has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The method; empty if the request was none that could be read.
    pub method: String,
    /// Path and query as the client sent them; where there is no method, whatever the client sent.
    pub target: String,
    /// Whether the target is what was left after rewrites.
    pub after_rewrite: bool,
    /// The version, such as HTTP/1.1.
    pub protocol: String,
    /// The host.
    pub host: Option<String>,
    /// Whether it came over TLS.
    pub secure: Option<bool>,
    /// Who sent it.
    pub client: Option<IpAddr>,
    /// The answer.
    pub status: u16,
    /// `$proxy_upstream_name`; none if the format has it not.
    pub upstream: Option<String>,
    /// `$proxy_alternative_upstream_name`.
    pub alternative: Option<String>,
    /// Whether an upstream was tried, by `$upstream_addr` or `$upstream_status`.
    pub tried: Option<bool>,
    /// The addresses that were tried.
    pub addresses: Vec<String>,
    /// `$namespace`.
    pub namespace: Option<String>,
    /// `$ingress_name`.
    pub ingress: Option<String>,
    /// `$service_name`.
    pub service: Option<String>,
    /// The Location of the answer.
    pub leads_to: Option<String>,
    /// What else the client sent, by names in lower case.
    pub headers: Vec<(String, String)>,
    /// The fields that the format has, whether the request had them or not; cookies as `cookie NAME`.
    pub shown: Vec<String>,
}

/// What has a request at least.
pub(super) fn is_enough(names: &[&str]) -> Result<(), &'static str> {
    let has = |name: &str| names.contains(&name);
    if !(has("request") || has("request_uri") || has("uri")) {
        return Err("$request");
    }
    if !(has("request") || has("request_method")) {
        return Err("$request_method");
    }
    if has("status") { Ok(()) } else { Err("$status") }
}

impl Record {
    /// The record of these variables; none where what a record must have is not there.
    pub(super) fn of(values: Vec<(&str, String)>) -> Option<Self> {
        let mut record = Self::default();
        // A request may be empty, but the line has to have a place for it.
        let is_request =
            |name: &str| matches!(name, "request" | "request_uri" | "uri" | "document_uri");
        if !values.iter().any(|(name, _)| is_request(name)) {
            return None;
        }
        let mut status = None;
        let (mut uri, mut args, mut request) = (None, String::new(), None);
        let mut secure = Secure::default();
        for (name, value) in values {
            let some = || Some(value.clone()).filter(|value| !value.is_empty() && value != "-");
            match name {
                "request" => request = Some(value),
                "request_method" => record.method = value,
                "request_uri" => record.target = value,
                "uri" | "document_uri" => uri = Some(value),
                "args" | "query_string" => args = value,
                "server_protocol" => record.protocol = value,
                "status" => status = value.parse().ok(),
                "host" => record.host = some().or(record.host),
                "http_host" | "best_http_host" if record.host.is_none() => record.host = some(),
                "server_name" if record.host.is_none() && !value.contains(['*', '_', '~']) => {
                    record.host = some();
                }
                "remote_addr" | "the_real_ip" | "realip_remote_addr" | "proxy_protocol_addr"
                    if record.client.is_none() || name == "remote_addr" =>
                {
                    record.client = value.parse().ok().or(record.client);
                }
                "proxy_upstream_name" => record.upstream = Some(value),
                "proxy_alternative_upstream_name" => record.alternative = Some(value),
                "upstream_addr" => {
                    record.tried = Some(some().is_some());
                    record.addresses = addresses(&value);
                }
                "upstream_status" if record.tried.is_none() => {
                    record.tried = Some(some().is_some())
                }
                "namespace" => record.namespace = some(),
                "ingress_name" => record.ingress = some(),
                "service_name" => record.service = some(),
                "sent_http_location" => record.leads_to = some(),
                "scheme" | "pass_access_scheme" | "https" | "ssl_protocol" | "server_port" => {
                    secure.hear(name, &value);
                }
                _ => header(name, some(), &mut record),
            }
        }
        record.status = status?;
        record.secure = secure.known();
        if let Some(request) = request {
            record.request(request);
        }
        if record.target.is_empty()
            && let Some(uri) = uri
        {
            record.target = if args.is_empty() { uri } else { format!("{uri}?{args}") };
            record.after_rewrite = true;
        }
        (!record.target.is_empty() || record.method.is_empty()).then_some(record)
    }

    /// Whether the log says what a field of the request was, or that there was none.
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.shown.iter().any(|shown| shown == name)
    }

    /// Takes the request line apart; what is none stays whole.
    fn request(&mut self, line: String) {
        let parts = line.split_once(' ').and_then(|(method, rest)| {
            let (target, protocol) = rest.rsplit_once(' ')?;
            protocol.starts_with("HTTP/").then_some((method, target, protocol))
        });
        match parts {
            Some((method, target, protocol)) => {
                (self.method, self.target) = (method.to_owned(), target.to_owned());
                self.protocol = protocol.to_owned();
            }
            None => (self.method, self.target) = (String::new(), line),
        }
    }
}

/// `10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80`
fn addresses(value: &str) -> Vec<String> {
    let all = value.split([',', ' ']).filter(|part| part.contains(':') && part.len() > 1);
    all.map(ToOwned::to_owned).collect()
}

/// Fields that frame one message: they say nothing of the next one that is made of the same request.
pub(crate) const FRAMING: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];

/// A header field that the format logs; the address of the client stands elsewhere.
fn header(name: &str, value: Option<String>, record: &mut Record) {
    if value.as_ref().is_some_and(|value| value.contains(['\r', '\n', '\0'])) {
        return;
    }
    let (shown, field) = if let Some(cookie) = name.strip_prefix("cookie_") {
        let value = value.map(|value| format!("{cookie}={value}"));
        (format!("cookie {cookie}"), ("cookie".to_owned(), value))
    } else if let Some(name) = name.strip_prefix("http_") {
        let name = name.replace('_', "-");
        if name == "x-forwarded-for" || FRAMING.contains(&name.as_str()) {
            return;
        }
        (name.clone(), (name, value))
    } else {
        return;
    };
    record.shown.push(shown);
    if let (name, Some(value)) = field {
        record.headers.push((name, value));
    }
}

/// What says whether a request came over TLS, the best last.
#[derive(Debug, Default)]
struct Secure {
    port: Option<bool>,
    of_connection: Option<bool>,
    passed: Option<bool>,
}

impl Secure {
    fn hear(&mut self, name: &str, value: &str) {
        match (name, value) {
            ("server_port", "443" | "442") => self.port = Some(true),
            ("server_port", "80") => self.port = Some(false),
            ("pass_access_scheme", "http" | "https") => self.passed = Some(value == "https"),
            ("scheme", "http" | "https") => self.of_connection = Some(value == "https"),
            ("https", "on" | "" | "-") => self.of_connection = Some(value == "on"),
            ("ssl_protocol", _) => self.of_connection = Some(value.starts_with("TLS")),
            _ => {}
        }
    }

    fn known(&self) -> Option<bool> {
        self.passed.or(self.of_connection).or(self.port)
    }
}
