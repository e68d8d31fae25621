//! A step of an exchange: what is sent, and what happened.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{latin1, wire::Pair};

/// The longest body that is written down whole.
const WHOLE: usize = 2000;

/// One entry of an `exchange.yaml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Step {
    /// What the step shows.
    pub name: Option<String>,
    /// The file whose objects are applied first.
    pub apply: Option<String>,
    /// The file whose objects are deleted first.
    pub delete: Option<String>,
    /// How long to wait before the request.
    #[serde(deserialize_with = "scalar")]
    pub wait: Option<String>,
    /// The request; a step may also only change objects.
    pub request: Option<Request>,
    /// Recorded twice with different outcomes, so not to be compared.
    pub unstable: bool,
    /// What happened.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Step {
    /// What the step is called in reports and in lists of differences.
    #[must_use]
    pub fn title(&self) -> &str {
        let url = || {
            self.request.as_ref().map(|request| request.url.as_str()).filter(|url| !url.is_empty())
        };
        self.name.as_deref().or_else(url).unwrap_or("stream")
    }
}

/// What is sent, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Request {
    /// Scheme, host and path; the path goes out as written.
    pub url: String,
    /// The method, `GET` if absent.
    pub method: Option<String>,
    /// Header lines in their order.
    #[serde(deserialize_with = "pairs")]
    pub headers: Vec<Pair>,
    /// Host or :authority unlike the URL's.
    pub host: Option<String>,
    /// SNI unlike the URL's; empty for none.
    pub sni: Option<String>,
    /// The body, one character a byte.
    pub body: Option<String>,
    /// So many bytes of `b` as body.
    pub body_size: Option<usize>,
    /// The body is chunked already.
    pub body_raw: bool,
    /// `http/1.0`, `http/1.1` or `h2`.
    pub protocol: Option<String>,
    /// Exact bytes instead of everything else.
    pub raw: Option<String>,
    /// Bytes before anything else.
    pub proxy_protocol: Option<String>,
    /// The name of a fixture key pair.
    pub client_certificate: Option<String>,
    /// What is offered in the TLS handshake.
    pub tls: Option<Tls>,
    /// Note certificate and handshake.
    pub tls_inspect: bool,
    /// `keep`: send and collect cookies.
    pub cookies: Option<String>,
    /// So many times.
    pub repeat: Option<usize>,
    /// So many at once.
    pub parallel: Option<usize>,
    /// Upgrade and send this text.
    pub websocket: Option<String>,
    /// A gRPC call.
    pub grpc: Option<Grpc>,
    /// A line to a TCP port of the controller.
    pub tcp: Option<Line>,
    /// A datagram to a UDP port of the controller.
    pub udp: Option<Line>,
    /// The client's patience.
    #[serde(deserialize_with = "scalar")]
    pub timeout: Option<String>,
}

/// The client's side of a TLS handshake.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// The oldest version.
    #[serde(deserialize_with = "scalar")]
    pub min: Option<String>,
    /// The newest version.
    #[serde(deserialize_with = "scalar")]
    pub max: Option<String>,
    /// Cipher suites by their OpenSSL names.
    pub ciphers: Option<String>,
    /// Application protocols.
    pub alpn: Option<Vec<String>>,
}

/// A gRPC call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Grpc {
    /// The path.
    pub method: String,
    /// The message, `hi` if absent.
    pub message: Option<String>,
    /// More header fields.
    #[serde(deserialize_with = "pairs")]
    pub metadata: Vec<Pair>,
}

/// What goes to a stream port.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    /// The port of the controller.
    pub port: u16,
    /// The text.
    pub send: String,
}

/// Everything that came of a request.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Outcome {
    /// What came back.
    pub answer: Option<Answer>,
    /// What the upstream got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// What the external authenticator got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_auth: Option<Seen>,
    /// Further requests that reached fixtures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_seen: Vec<Seen>,
    /// Statuses, and requests by pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<BTreeMap<String, u64>>,
}

/// What came back.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Answer {
    /// The status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The protocol as in the status line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Header lines in their order.
    #[serde(deserialize_with = "some_pairs", skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<Pair>>,
    /// The body, decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Trailers in their order.
    #[serde(deserialize_with = "pairs", skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<Pair>,
    /// Statuses before the final one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interim: Vec<u16>,
    /// Statuses of further answers on the connection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<u16>,
    /// Certificate and handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Map<String, Value>>,
    /// The text frame that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websocket: Option<String>,
    /// Why there is no answer, or not a whole one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Answer {
    /// An answer that is only an error.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }
}

/// What a fixture got.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Seen {
    /// The fixture Service.
    pub service: String,
    /// The pod.
    pub pod: String,
    /// The protocol as the request says it.
    pub protocol: String,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The target as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Header lines in their order.
    #[serde(deserialize_with = "some_pairs", skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<Pair>>,
    /// The body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Trailers in their order.
    #[serde(deserialize_with = "pairs", skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<Pair>,
    /// The handshake with the fixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<SeenTls>,
}

/// What a fixture saw of a TLS handshake.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub struct SeenTls {
    /// The server name.
    pub sni: Option<String>,
    /// The common name of the client's certificate.
    pub client: Option<String>,
    /// The version.
    pub version: Option<String>,
}

/// A body: whole, or its size and hash where it is long.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Body {
    /// One character a byte.
    Text(String),
    /// A long body.
    Digest {
        /// How many bytes.
        size: usize,
        /// Their SHA-256 in hex.
        sha256: String,
    },
}

impl Body {
    /// The body written down.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.len() <= WHOLE {
            return Self::Text(latin1::text(bytes));
        }
        let hash = openssl::sha::sha256(bytes);
        Self::Digest {
            size: bytes.len(),
            sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// The text, if it is whole.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Digest { .. } => None,
        }
    }
}

/// A string, or what YAML took for something else.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Value>::deserialize(deserializer)?.map(plain))
}

fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pair>, D::Error> {
    let rows = Vec::<(Value, Value)>::deserialize(deserializer)?;
    Ok(rows.into_iter().map(|(name, value)| (plain(name), plain(value))).collect())
}

fn some_pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Pair>>, D::Error> {
    pairs(deserializer).map(Some)
}
