//! One request over HTTP/1.1 or HTTP/2 to an address that is given, whatever host it asks for.

use super::requests::Send;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest body that is compared.
const LONGEST: usize = 8 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may take, TLS included.
const CONNECTING: Duration = Duration::from_secs(10);

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether TLS is spoken.
    pub secure: bool,
    /// Name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why a URL names no controller.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} names no controller: write scheme, address and port, such as https://192.0.2.10 or http://127.0.0.1:8080"
)]
pub struct TargetError(String);

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError(text.to_owned());
        let (secure, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() || rest.contains(['/', '?', '#', '@', ' ']) {
            return Err(wrong());
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (rest, if secure { 443 } else { 80 }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (!host.is_empty()).then(|| Self { secure, host: host.to_owned(), port }).ok_or_else(wrong)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        let bracket = self.host.contains(':');
        let (open, close) = if bracket { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Names in lower case, in their order.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// Why there is none.
    pub(super) error: Option<String>,
    /// Whether no connection came about: nobody heard the request.
    pub(super) unreachable: bool,
}

/// Why there is no answer.
enum Failed {
    /// Nobody could be asked.
    Unreachable(String),
    /// Somebody was asked, and did not answer.
    Unanswered(String),
}

/// Sends requests.
#[derive(Clone, Debug)]
pub struct Client {
    tls: Arc<ClientConfig>,
    http2: bool,
}

/// What is said of a handshake that failed, with the flag that looks at no certificate where that is why.
fn untrusted(said: String) -> String {
    let is_certificate = said.contains("invalid peer certificate");
    if is_certificate { format!("{said}; --insecure takes any certificate") } else { said }
}

impl Client {
    /// A client that believes the authorities of this machine; or anybody, where certificates are not looked at. With
    /// `http2` it speaks nothing else: over TLS by ALPN, in clear with prior knowledge.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(insecure: bool, http2: bool) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let config = if insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        } else {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            builder.with_root_certificates(roots)
        };
        let mut tls = config.with_no_client_auth();
        tls.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        Ok(Self { tls: Arc::new(tls), http2 })
    }

    /// Sends a request to a controller.
    pub(super) async fn send(&self, target: &Target, send: &Send) -> Answer {
        let answer = tokio::time::timeout(PATIENCE, self.exchange(target, send)).await;
        let failed =
            |error, unreachable| Answer { error: Some(error), unreachable, ..Answer::default() };
        match answer {
            Err(_) => failed(format!("no answer within {} s", PATIENCE.as_secs()), false),
            Ok(Err(Failed::Unreachable(error))) => failed(error, true),
            Ok(Err(Failed::Unanswered(error))) => failed(error, false),
            Ok(Ok(answer)) => answer,
        }
    }

    async fn exchange(&self, target: &Target, send: &Send) -> Result<Answer, Failed> {
        let connecting = tokio::time::timeout(CONNECTING, self.connect(target, send)).await;
        let late = || format!("cannot connect: nothing within {} s", CONNECTING.as_secs());
        let connected = connecting.unwrap_or_else(|_| Err(late())).map_err(Failed::Unreachable)?;
        let answer = match connected {
            Connected::Plain(stream) => self.talk(stream, target, send).await,
            Connected::Tls(stream) => self.talk(*stream, target, send).await,
        };
        answer.map_err(Failed::Unanswered)
    }

    async fn connect(&self, target: &Target, send: &Send) -> Result<Connected, String> {
        let address = (target.host.as_str(), target.port);
        let cannot = |error: std::io::Error| format!("cannot connect: {error}");
        let stream = TcpStream::connect(address).await.map_err(cannot)?;
        if !target.secure {
            return Ok(Connected::Plain(stream));
        }
        let name = server_name(&send.host)?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
        let stream = stream.map_err(|error| untrusted(format!("TLS: {error}")))?;
        if self.http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("TLS: it does not agree to HTTP/2".to_owned());
        }
        Ok(Connected::Tls(Box::new(stream)))
    }

    async fn talk(
        &self,
        stream: impl Wire,
        target: &Target,
        send: &Send,
    ) -> Result<Answer, String> {
        if self.http2 { talk_http2(stream, target, send).await } else { talk(stream, send).await }
    }
}

/// A connection to a controller.
enum Connected {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What HTTP goes over.
trait Wire: AsyncRead + AsyncWrite + Unpin + std::marker::Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + std::marker::Send + 'static> Wire for T {}

async fn talk(stream: impl Wire, send: &Send) -> Result<Answer, String> {
    let text = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let connection = tokio::spawn(connection);
    let answer = async {
        let mut answer = sender.send_request(request(send)?).await.map_err(text)?;
        let status = answer.status().as_u16();
        let headers = fields(answer.headers());
        // In one piece: however small those are that come, they hold no more than they say.
        let (mut receiving, mut body) = (Limited::new(answer.body_mut(), LONGEST), BytesMut::new());
        while let Some(frame) = receiving.frame().await {
            let frame = frame.map_err(|error| format!("its body: {error}"))?;
            frame.data_ref().into_iter().for_each(|piece| body.extend_from_slice(piece));
        }
        Ok(Answer { status, headers, body: body.freeze(), ..Answer::default() })
    };
    let answer = answer.await;
    connection.abort();
    answer
}

async fn talk_http2(stream: impl Wire, target: &Target, send: &Send) -> Result<Answer, String> {
    let text = |error: h2::Error| format!("HTTP/2: {error}");
    let (sender, connection) = h2::client::handshake(stream).await.map_err(text)?;
    let connection = tokio::spawn(connection);
    let answer = async {
        let (request, body) = request_http2(send, target)?;
        let mut sender = sender.ready().await.map_err(text)?;
        let (answer, mut sending) = sender.send_request(request, body.is_empty()).map_err(text)?;
        if !body.is_empty() {
            sending.send_data(body, true).map_err(text)?;
        }
        let answer = answer.await.map_err(text)?;
        let (status, headers) = (answer.status().as_u16(), fields(answer.headers()));
        let (mut receiving, mut body) = (answer.into_body(), BytesMut::new());
        while let Some(piece) = receiving.data().await {
            let piece = piece.map_err(|error| format!("its body: {error}"))?;
            let _ = receiving.flow_control().release_capacity(piece.len());
            if body.len() + piece.len() > LONGEST {
                return Err(format!("its body: longer than {LONGEST} bytes"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status, headers, body: body.freeze(), ..Answer::default() })
    };
    let answer = answer.await;
    connection.abort();
    answer
}

/// Names in lower case, with values.
fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// The same request as HTTP/2 has it: the host in its authority, and no fields that only HTTP/1 has.
fn request_http2(send: &Send, target: &Target) -> Result<(Request<()>, Bytes), String> {
    let (mut head, _) = request(send)?.into_parts();
    let scheme = if target.secure { "https" } else { "http" };
    let path = head.uri.path_and_query().cloned().ok_or("its target is no path with a query")?;
    let uri = Uri::builder().scheme(scheme).authority(send.host.as_str()).path_and_query(path);
    head.uri = uri.build().map_err(|error| format!("its host: {error}"))?;
    head.version = Version::HTTP_2;
    for name in OF_HTTP1 {
        head.headers.remove(name);
    }
    Ok((Request::from_parts(head, ()), Bytes::copy_from_slice(send.body.as_bytes())))
}

/// Fields that HTTP/2 does not have (RFC 9113 section 8.2.2), and the host, which is elsewhere.
const OF_HTTP1: [&str; 7] =
    ["host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"];

/// Whether a request can be sent to these at all, as it is.
pub(super) fn can_be_sent(send: &Send, targets: [&Target; 2]) -> Result<(), String> {
    let request = request(send)?;
    // What stands behind a # is not sent.
    if request.uri().path_and_query().map(|it| it.as_str()) != Some(send.target.as_str()) {
        return Err("its target is no path with a query".to_owned());
    }
    if targets.iter().any(|target| target.secure) {
        server_name(&send.host)?;
    }
    Ok(())
}

/// The name of a host for the TLS handshake.
fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    ServerName::try_from(name.to_owned()).map_err(|error| format!("its host: {error}"))
}

fn request(send: &Send) -> Result<Request<Full<Bytes>>, String> {
    let method = Method::from_bytes(send.method.as_bytes()).map_err(|error| error.to_string())?;
    let mut request =
        Request::builder().method(method).uri(send.target.as_str()).header("host", &send.host);
    for (name, value) in &send.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let name = name.map_err(|error| format!("a header field: {error}"))?;
        let value = HeaderValue::from_bytes(value.as_bytes());
        request = request.header(name, value.map_err(|error| format!("a header field: {error}"))?);
    }
    let body = Full::new(Bytes::copy_from_slice(send.body.as_bytes()));
    request.body(body).map_err(|error| error.to_string())
}

/// Takes any certificate: for controllers that have not got the real ones yet.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_named_by_scheme_address_and_port() {
        let of = |text: &str| text.parse::<Target>().map(|target| target.to_string());
        assert_eq!(of("https://192.0.2.1"), Ok("https://192.0.2.1:443".to_owned()));
        assert_eq!(of("http://[::1]:8080/"), Ok("http://[::1]:8080".to_owned()));
        for wrong in ["192.0.2.1", "ftp://a", "http://", "http://a/b", "http://a:x", "http://u@a"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
