//! The webhook's server: HTTPS, HTTP/1.1, everything bounded, on a thread of its own: whatever is sent to it, traffic
//! and the loop that follows the cluster go on.

use super::patience::Patient;
use super::request::{REQUEST, respond};
use super::room::Room;
use super::{Certificate, CertificateError, Reviewer, WebhookOptions, certificate};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use runtime::places::{Count, Place, Places};
use runtime::turns::Turns;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use system::{sockets, threads};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::runtime::{LocalOptions, LocalRuntime};
use wire::{Hello, ServerTls};

/// Connections at a time; a further one takes the place of another ([`runtime::places`]).
const CONNECTIONS: usize = 512;
/// Bytes of reviews that hold more than a few in memory ([`super::request`]), of all of them.
const ROOM: usize = 72 << 20;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(8);
/// How long a head may take, and how long a connection may idle.
const HEAD: Duration = Duration::from_secs(30);
/// How long a connection may live.
const CONNECTION: Duration = Duration::from_secs(600);
/// Reviews are judged one at a time, and one large one beside it, on threads that carry no connection.
const OF_A_SIZE: usize = 1;
const JUDGES: usize = 2 * OF_A_SIZE;

/// The webhook cannot start.
#[derive(Debug, Error)]
pub enum BindError {
    /// Its address is not to be had.
    #[error("cannot listen on {0}: {1}; choose another address with --validating-webhook")]
    Address(SocketAddr, io::Error),
    /// Its certificate is none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A webhook that has its port and waits to be served.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    certificate: Arc<Certificate>,
    address: SocketAddr,
}

/// What connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) reviewer: Reviewer,
    /// Turns to be judged, of small ones and of large ones.
    pub(super) small: Arc<Turns>,
    pub(super) large: Arc<Turns>,
    /// Where large ones are held.
    pub(super) room: Arc<Room>,
}

impl Shared {
    fn new(reviewer: Reviewer) -> Arc<Self> {
        let (small, large) = (Turns::new(OF_A_SIZE), Turns::new(OF_A_SIZE));
        Arc::new(Self { reviewer, small, large, room: Room::new(ROOM) })
    }
}

/// How full the port is.
static COUNT: Count = Count::new();

/// Connections of the webhook, all that there may be, and how many lost their place; none while it does not listen.
pub fn connections() -> Option<(usize, usize, u64)> {
    COUNT.now()
}

impl Bound {
    /// Takes the port and reads the certificate, which is followed from then on.
    pub async fn new(options: &WebhookOptions) -> Result<Self, BindError> {
        let certificate = certificate::follow(options)?;
        let taken = |error| BindError::Address(options.address, error);
        let listener = sockets::listen(options.address).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(Self { listener, certificate, address })
    }

    /// The address that was taken, with the port that the system chose if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that handshakes get.
    pub fn certificate(&self) -> Arc<Certificate> {
        Arc::clone(&self.certificate)
    }

    /// Reviews from now on, on a thread of its own, as long as the process lives.
    pub fn start(self, reviewer: Reviewer) -> io::Result<()> {
        let event_loop = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(JUDGES)
                .thread_name("webhook-judge")
                .build_local(LocalOptions::default())
        };
        let serve = move |event_loop: &LocalRuntime| {
            let Err(error) = event_loop.block_on(self.serve(reviewer));
            tracing::error!(%error, "the webhook has stopped");
        };
        threads::with_loop("webhook", event_loop, serve).map(drop)
    }

    /// Reviews until it is dropped; only taking over the socket can fail.
    pub async fn serve(self, reviewer: Reviewer) -> io::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let certificate = self.certificate;
        let shared = Shared::new(reviewer);
        let places = Places::new(CONNECTIONS, &COUNT);
        let mut listener = sockets::Acceptor::new(listener);
        let failed = |error: &io::Error, before| {
            tracing::warn!(%error, before, "webhook: a connection could not be accepted (told once a minute)");
        };
        loop {
            let (stream, peer) = listener.next(failed).await;
            let place = places.take(peer.ip());
            let (certificate, shared) = (Arc::clone(&certificate), Arc::clone(&shared));
            tokio::spawn(async move {
                tokio::select! {
                    () = connection((stream, peer.ip()), &certificate, &shared, &place) => {}
                    () = place.lost() => tracing::debug!(%peer, "webhook: its place was needed"),
                }
            });
        }
    }
}

async fn connection(
    (stream, peer): (TcpStream, IpAddr),
    certificate: &Certificate,
    shared: &Arc<Shared>,
    place: &Place,
) {
    // Answers are small, and wait for nothing.
    let _ = stream.set_nodelay(true);
    let Ok(Some(stream)) = tokio::time::timeout(HANDSHAKE, handshake(stream, certificate)).await
    else {
        return;
    };
    let service = service_fn(async |request| {
        let _answering = place.answer();
        Ok::<_, Infallible>(respond(request, peer, shared).await)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(Patient::new(stream, REQUEST)), service);
    match tokio::time::timeout(CONNECTION, serving).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!("webhook: {error}"),
    }
}

/// As on the ports of traffic: records of TLS are work, and whoever sends many waits for a later turn of the thread.
async fn handshake(stream: TcpStream, certificate: &Certificate) -> Option<ServerTls> {
    let hello = Hello::read(stream).await.ok()?;
    let name = hello.says().server_name().map(ToOwned::to_owned);
    let pair = certificate.pair();
    match hello.answer(Arc::clone(&pair.tls)).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            certificate.refused(&pair, name.as_deref(), &error);
            None
        }
    }
}
