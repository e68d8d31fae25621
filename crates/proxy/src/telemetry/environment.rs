//! What the environment of the process says about collectors (OpenTelemetry's variables for OTLP).

use std::path::PathBuf;

/// What the environment says. It counts before the ConfigMap, as in ingress-nginx.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpEnvironment {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: where spans go.
    pub endpoint: Option<Endpoint>,
    /// `OTEL_EXPORTER_OTLP_HEADERS`: fields of every request to the collector, such as a password.
    pub headers: Vec<(String, String)>,
    /// `OTEL_RESOURCE_ATTRIBUTES`: what is said of all spans.
    pub resource: Vec<(String, String)>,
    /// `OTEL_EXPORTER_OTLP_CERTIFICATE`: a file with the authorities that the collector's certificate descends from.
    pub certificate: Option<PathBuf>,
}

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address or name.
    pub host: String,
    /// The port; none: that of the protocol.
    pub port: Option<u16>,
    /// Whether TLS is spoken.
    pub secure: bool,
    /// What comes before the path of the service, without a slash at its end.
    pub path: String,
}

impl OtlpEnvironment {
    /// Reads what `variable` says. What is wrong is left out; the second list says what and why.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let named = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
        let endpoint = named("OTEL_EXPORTER_OTLP_ENDPOINT").and_then(|text| {
            let endpoint = Endpoint::parse(text.trim());
            if endpoint.is_none() {
                wrong.push(format!(
                    "OTEL_EXPORTER_OTLP_ENDPOINT {text:?} is no endpoint and left out: write http://host:port, \
                     https://host:port or host:port"
                ));
            }
            endpoint
        });
        let mut pairs = |name: &str| {
            let text = named(name).unwrap_or_default();
            let (pairs, bad) = pairs(&text);
            // Their values may be secrets.
            wrong.extend(bad.then(|| {
                format!("{name} has items that are left out: write name=value, comma separated")
            }));
            pairs
        };
        let headers = pairs("OTEL_EXPORTER_OTLP_HEADERS");
        let resource = pairs("OTEL_RESOURCE_ATTRIBUTES");
        let certificate = named("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from);
        (Self { endpoint, headers, resource, certificate }, wrong)
    }
}

impl Endpoint {
    /// A URL, or host and port alone.
    fn parse(text: &str) -> Option<Self> {
        let (secure, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return None,
            None => (false, text),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = wire::host::parse(authority.as_bytes()).ok()?;
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        (is_plain && !host.name.is_empty()).then(|| Self {
            host: host.name.trim_matches(['[', ']']).to_owned(),
            port: host.port,
            secure,
            path: path.trim_end_matches('/').to_owned(),
        })
    }
}

/// `name=value` pairs, comma separated, the values escaped as in URLs; whether some are none.
fn pairs(text: &str) -> (Vec<(String, String)>, bool) {
    let mut bad = false;
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let pairs = items.filter_map(|item| {
        let pair = item.split_once('=').and_then(|(name, value)| {
            let name = name.trim();
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            let value = unescaped(value.trim())?;
            is_name.then(|| (name.to_owned(), value))
        });
        bad |= pair.is_none();
        pair
    });
    (pairs.collect(), bad)
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, OtlpEnvironment};

    fn read(variables: &[(&str, &str)]) -> (OtlpEnvironment, Vec<String>) {
        OtlpEnvironment::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_endpoint_is_a_url_or_host_and_port() {
        let endpoint = |text| {
            let Endpoint { host, port, secure, path } = Endpoint::parse(text).expect("an endpoint");
            (host, port, secure, path)
        };
        let (none, some) = (String::new, |text: &str| text.to_owned());
        assert_eq!(endpoint("localhost:4317"), (some("localhost"), Some(4317), false, none()));
        assert_eq!(endpoint("http://otel:4318/"), (some("otel"), Some(4318), false, none()));
        assert_eq!(endpoint("https://[::1]/a/"), (some("::1"), None, true, some("/a")));
        for wrong in ["", "ftp://a", "http://", "http://a b", "a:99999", "http://a/\u{7f}"] {
            assert_eq!(Endpoint::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn bad_variables_are_named_without_their_secrets() {
        let (environment, wrong) = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///run/otel"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc, nonsense,x=%0d,y=%e2"),
            ("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=one%2Ctwo"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", " "),
        ]);
        assert_eq!(environment.endpoint, None);
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert_eq!(environment.headers, pair("authorization", "Basic abc"));
        assert_eq!(environment.resource, pair("k8s.cluster.name", "one,two"));
        assert_eq!(environment.certificate, None);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(!wrong.concat().contains("nonsense"));
    }
}
