//! The webhook's server: HTTPS, HTTP/1.1, everything bounded.

use super::review::{NoReview, answer};
use super::{CertificateError, Reviewer, WebhookOptions, certificate};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::version::{TLS12, TLS13};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// Bytes of a review: three times etcd's limit for an object (as ingress-nginx has it).
const BODY: usize = 9 << 20;
/// Connections at a time; further ones wait in the backlog.
const CONNECTIONS: usize = 256;
/// How long a handshake, a head, a body or a review may take: less than the API server's own patience (10 s).
const STEP: Duration = Duration::from_secs(8);
/// How long a connection may live.
const CONNECTION: Duration = Duration::from_secs(600);

/// The webhook cannot start.
#[derive(Debug, Error)]
pub enum BindError {
    /// Its address is not to be had.
    #[error("cannot listen on {0}: {1}; choose another address with --validating-webhook")]
    Address(SocketAddr, io::Error),
    /// Its certificate is none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS refuses the settings.
    #[error("TLS cannot start: {0}")]
    Tls(#[from] rustls::Error),
}

/// A webhook that has its port and waits to be served.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    address: SocketAddr,
}

impl Bound {
    /// Takes the port and reads the certificate.
    pub async fn new(options: &WebhookOptions) -> Result<Self, BindError> {
        let current = certificate::follow(&options.certificate, &options.key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(current);
        let taken = |error| BindError::Address(options.address, error);
        let listener = TcpListener::bind(options.address).await.map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(Self { listener, tls: Arc::new(tls), address })
    }

    /// The address that was taken, with the port that the system chose if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reviews until it is dropped.
    pub async fn serve(self, reviewer: Reviewer) -> Infallible {
        let (acceptor, reviewer) = (TlsAcceptor::from(self.tls), Arc::new(reviewer));
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place =
                Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (acceptor, reviewer) = (acceptor.clone(), Arc::clone(&reviewer));
                    tokio::spawn(async move {
                        connection(stream, &acceptor, &reviewer).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Mostly a lack of file descriptors, which passes.
                    tracing::warn!("webhook: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: &TlsAcceptor, reviewer: &Arc<Reviewer>) {
    let Ok(Ok(stream)) = tokio::time::timeout(STEP, acceptor.accept(stream)).await else {
        return tracing::debug!("webhook: a handshake failed");
    };
    let service = service_fn(async |request| Ok::<_, Infallible>(respond(request, reviewer).await));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(STEP)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION, serving).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!("webhook: {error}"),
    }
}

/// The answer to a request on any path, as ingress-nginx has it.
async fn respond(request: Request<Incoming>, reviewer: &Arc<Reviewer>) -> Response<Full<Bytes>> {
    let refuse = |status, text: &'static str| {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    };
    let body = Limited::new(request.into_body(), BODY - 1).collect();
    let body = match tokio::time::timeout(STEP, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large\n");
        }
        Ok(Err(_)) => return refuse(StatusCode::BAD_REQUEST, "the review did not arrive\n"),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the review took too long\n"),
    };
    // Parsing megabytes must not hold up the other connections.
    let reviewer = Arc::clone(reviewer);
    let answered = tokio::task::spawn_blocking(move || answer(&reviewer, &body)).await;
    match answered {
        Ok(Ok(json)) => {
            let mut response = Response::new(Full::new(Bytes::from(json)));
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Ok(Err(NoReview::Undecodable)) => refuse(StatusCode::BAD_REQUEST, "this is no review\n"),
        Ok(Err(NoReview::Unexpected)) | Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "only AdmissionReview v1 of networking.k8s.io/v1 Ingresses is reviewed\n",
        ),
    }
}
