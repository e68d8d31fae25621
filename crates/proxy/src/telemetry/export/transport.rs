//! Requests to the collector, through the same client that speaks to upstreams: gRPC over HTTP/2, or HTTP/1.1.

use super::{Destination, Outcome, encode};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use model::policy::{Policy, Timeouts, UpstreamTls};
use model::{Global, OtlpProtocol, Outside};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tls::Profiles;
use tokio::time::{Instant, timeout};
use upstream::{Cause, Head, Outgoing, Pool, Target, Try, send};
use wire::http1::write;
use wire::{Body, Frame, Headers, Length, Response, Room, Written};

/// How long one request may take (OTLP's default).
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an address is used before the name is looked up again, and with it another collector may be found.
const VALID: Duration = Duration::from_secs(300);
/// Bytes of an answer that are read.
const ANSWER: usize = 64 << 10;
/// The method of gRPC.
const SERVICE: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// The path of HTTP.
const PATH: &str = "/v1/traces";
/// Certificates between the collector's one and an authority.
const DEPTH: u32 = 10;
const AGENT: &str = concat!("fairway/", env!("CARGO_PKG_VERSION"));

/// The way to the collector, as long as it is good.
#[derive(Debug, Default)]
pub(super) struct Transport {
    open: Option<Open>,
    /// How often an address was taken: of several, each has its turn.
    turn: usize,
}

#[derive(Debug)]
struct Open {
    target: Target,
    pool: Rc<Pool>,
    since: Instant,
}

impl Transport {
    /// Sends one request.
    pub(super) async fn send(&mut self, destination: &Destination, body: Bytes) -> Outcome {
        let outcome = match timeout(PATIENCE, self.ask(destination, body)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(reason)) => Outcome::Failed(reason),
            Err(_) => Outcome::Failed("no answer in time".to_owned()),
        };
        if matches!(outcome, Outcome::Failed(_)) {
            self.open = None;
        }
        outcome
    }

    async fn ask(&mut self, destination: &Destination, body: Bytes) -> Result<Outcome, String> {
        if self.open.as_ref().is_none_or(|open| open.since.elapsed() >= VALID) {
            self.turn = self.turn.wrapping_add(1);
            self.open = Some(open(destination, self.turn).await?);
        }
        let Some(Open { target, pool, .. }) = &self.open else { return Err(String::new()) };
        let (head, body) = match destination.protocol {
            OtlpProtocol::Grpc => (grpc_head(destination)?, framed(&body)),
            OtlpProtocol::Http => (http_head(destination, body.len()), body),
        };
        let timeouts = Timeouts { connect: PATIENCE, send: PATIENCE, read: PATIENCE };
        let mut body = Body::full(body);
        let mut outgoing = Outgoing {
            method: &Method::POST,
            head,
            body: &mut body,
            upgrade: false,
            interim: &|_| {},
            policy: &Policy { timeouts, ..Policy::default() },
            whose: None,
            cause: Cause::default(),
        };
        let journal = Rc::new(Try::new(target.address));
        let response = send(pool, target, &mut outgoing, &journal).await;
        let mut response = response.map_err(|failed| failed.error.to_string())?;
        let (answer, trailers) = whole(&mut response).await?;
        Ok(match destination.protocol {
            OtlpProtocol::Grpc => grpc_outcome(&response, &answer, &trailers),
            OtlpProtocol::Http => http_outcome(&response, &answer),
        })
    }
}

/// Looks the collector up. Connections to where it was before are gone with their pool.
async fn open(destination: &Destination, turn: usize) -> Result<Open, String> {
    let host = destination.endpoint.host.as_str();
    // Only the ConfigMap names it, and a collector may well stand beside this process.
    let found = stream::addresses(host, destination.port(), &Outside::anywhere()).await;
    let found = found.map_err(|error| format!("{host}: {error}"))?;
    let count = found.len().max(1);
    let address = found.get(turn % count).ok_or_else(|| format!("{host} has no address"))?;
    let tls = destination.endpoint.secure.then(|| profile(destination)).transpose()?;
    let pool = Rc::new(Pool::new(Arc::new(Room::new(u64::MAX))));
    pool.follow(Global::default().upstream_keep_alive);
    Ok(Open { target: Target { address: *address, tls }, pool, since: Instant::now() })
}

/// TLS that verifies the collector, by the authorities given or those of the system.
fn profile(destination: &Destination) -> Result<Arc<tls::Profile>, String> {
    let settings = UpstreamTls {
        authorities: authorities(destination)?.into(),
        verify: true,
        name: Some(destination.endpoint.host.clone()),
        server_name: true,
        depth: DEPTH,
        ..UpstreamTls::default()
    };
    let http2 = destination.protocol == OtlpProtocol::Grpc;
    Profiles::default().profile(&settings, http2).map_err(|error| error.to_string())
}

fn authorities(destination: &Destination) -> Result<Vec<Arc<[u8]>>, String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let certificates =
        match &destination.certificate {
            None => rustls_native_certs::load_native_certs().certs,
            Some(file) => CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(
                |error| format!("OTEL_EXPORTER_OTLP_CERTIFICATE {}: {error}", file.display()),
            )?,
        };
    Ok(certificates.iter().map(|der| Arc::from(der.as_ref())).collect())
}

fn grpc_head(destination: &Destination) -> Result<Head, String> {
    let scheme = if destination.endpoint.secure { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority(destination.authority());
    let uri = uri.path_and_query(SERVICE).build().map_err(|error| error.to_string())?;
    let mut head = Request::new(());
    (*head.method_mut(), *head.uri_mut()) = (Method::POST, uri);
    *head.version_mut() = http::Version::HTTP_2;
    let own = [("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", AGENT)];
    let given = destination.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.into_iter().chain(given) {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        {
            head.headers_mut().append(name, value);
        }
    }
    Ok(Head::http2(head))
}

fn http_head(destination: &Destination, length: usize) -> Head {
    let mut out = Written::with_room(512);
    let line = format!("POST {}{PATH} HTTP/1.1\r\n", destination.endpoint.path);
    out.put_slice(line.as_bytes());
    write::field(&mut out, b"Host", destination.authority().as_bytes());
    write::field(&mut out, b"Content-Type", b"application/x-protobuf");
    write::field(&mut out, b"User-Agent", AGENT.as_bytes());
    write::content_length(&mut out, length as u64);
    for (name, value) in &destination.headers {
        write::field(&mut out, name.as_bytes(), value.as_bytes());
    }
    out.put_slice(b"\r\n");
    Head::Http1(out, Length::Known(length as u64))
}

/// A message with gRPC's prefix: not compressed, and so long.
fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 5);
    out.put_u8(0);
    out.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    out.put_slice(message);
    out.freeze()
}

/// The answer's body and trailers, so that the connection can be used again.
async fn whole(response: &mut Response) -> Result<(BytesMut, Headers), String> {
    let (mut answer, mut trailers) = (BytesMut::new(), Headers::default());
    while let Some(frame) = response.body.frame().await.map_err(|error| error.to_string())? {
        match frame {
            Frame::Data(data) if answer.len() + data.len() > ANSWER => {
                return Err("the answer is too long".to_owned());
            }
            Frame::Data(data) => answer.put_slice(&data),
            Frame::Trailers(fields) => trailers = fields,
        }
    }
    Ok((answer, trailers))
}

fn grpc_outcome(response: &Response, answer: &[u8], trailers: &Headers) -> Outcome {
    if response.status != StatusCode::OK {
        return http_outcome(response, answer);
    }
    // Without a body, what ends the answer stands in its head.
    let said = |name| trailers.text(name).or_else(|| response.headers.text(name));
    let reason = |status: &str| {
        let message = said("grpc-message").unwrap_or_default();
        format!("gRPC status {status} {message}").trim_end().to_owned()
    };
    match said("grpc-status") {
        Some("0") => {
            Outcome::Taken { rejected: encode::rejected(answer.get(5..).unwrap_or_default()) }
        }
        // Cancelled, deadline exceeded, aborted, out of range, unavailable, data loss: the ones that OTLP lets repeat.
        Some(status @ ("1" | "4" | "10" | "11" | "14" | "15")) => Outcome::Failed(reason(status)),
        Some(status) => Outcome::Refused(reason(status)),
        None => Outcome::Failed("no gRPC status: does otlp-collector-port speak gRPC?".to_owned()),
    }
}

fn http_outcome(response: &Response, answer: &[u8]) -> Outcome {
    let status = response.status;
    match status.as_u16() {
        200..=299 => Outcome::Taken { rejected: encode::rejected(answer) },
        // The ones that OTLP lets repeat.
        429 | 502 | 503 | 504 => Outcome::Failed(format!("it answered {status}")),
        _ => Outcome::Refused(format!("it answered {status}")),
    }
}
