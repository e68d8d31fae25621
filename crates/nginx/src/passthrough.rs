//! In front of nginx where hosts are passed through: TLS connections that name such a host go to its Service as they
//! are, all others to nginx, with a PROXY header that says who the client is (compat/behaviour.md section 19).

use crate::names::Names;
use model::{Configuration, ServerName, Upstream, UpstreamId};
use shares::LinesOf;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stream::Places;
use stream::client_hello::{self, Wish};
use stream::onward::{self, NoWay};
use stream::own::{self, Own};
use stream::proxy_protocol::{self, Announced};
use system::sockets::{Acceptor, BACKLOG, Opening};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

/// What is told of who got no place, or lost it.
const FULL: &str = "TLS connections are turned away or ended for others: as many as may be are carried on (docs/limits.md)";
/// How long a client may stay once nginx has ended its connection.
const LINGER: Duration = Duration::from_secs(30);

/// What every connection is judged by.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// What is being served.
    pub serving: watch::Receiver<Configuration>,
    /// The endpoints of names.
    pub names: Arc<Names>,
    /// Where nginx takes TLS.
    pub inner: PathBuf,
    /// Connections at most whose ClientHello is read or that nginx has: each takes two file descriptors.
    pub places: Arc<Semaphore>,
    /// Connections at most that pass nginx by.
    pub carried: Places,
    /// What the log was told of them: a stranger makes as many connections as there is time for.
    pub told: Arc<LinesOf<&'static str>>,
}

/// Binds the port on these addresses.
pub(crate) fn bind(addresses: &[SocketAddr]) -> io::Result<Vec<std::net::TcpListener>> {
    let bind = |address: &SocketAddr| {
        let socket = Opening::ALONE.bind(*address)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    addresses.iter().map(bind).collect()
}

impl Common {
    /// Takes connections until the process ends.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let mut listener = Acceptor::new(listener);
        loop {
            let Ok(place) = self.places.clone().acquire_owned().await else { return };
            let (tcp, peer) = listener
                .next(|error, before| {
                    tracing::error!(%error, before, "a TLS connection cannot be accepted (told once a minute)");
                })
                .await;
            let front = self.clone();
            tokio::spawn(async move {
                if let Err(error) = front.carry(tcp, peer, place).await {
                    tracing::debug!(%peer, %error, "a TLS connection broke off");
                }
            });
        }
    }

    async fn carry(
        &self,
        mut tcp: TcpStream,
        peer: SocketAddr,
        place: OwnedSemaphorePermit,
    ) -> io::Result<()> {
        tcp.set_nodelay(true)?;
        let configuration = self.serving.borrow().clone();
        let limits = &configuration.global.limits;
        let announced = if configuration.global.proxy_protocol {
            timeout(limits.proxy_protocol_timeout, proxy_protocol::take(&mut tcp)).await??
        } else {
            Some(Announced { source: peer, destination: tcp.local_addr()? })
        };
        match timeout(limits.header_timeout, client_hello::peek(&tcp)).await?? {
            Wish::Name(name) if let Some(id) = passed_to(&configuration, &name) => {
                let upstream = configuration.upstreams.get(id);
                let namespace = upstream.map(|one| one.namespace.clone()).unwrap_or_default();
                let at = tcp.local_addr()?;
                let Some(held) = self.carried.wait(&namespace, at, peer.ip()).await else {
                    self.tell(id, FULL, None);
                    return Ok(());
                };
                drop(place);
                let lost = held.lost();
                let passed = async {
                    let hops = own::hops(peer, at);
                    let (mut upstream, _own) = match self.onward(upstream, hops).await {
                        Ok(upstream) => upstream,
                        Err(NoWay { what, error }) => {
                            self.tell(id, what, error);
                            return Ok(());
                        }
                    };
                    held.pipe(&mut tcp, &mut upstream, None).await
                };
                tokio::select! {
                    passed = Box::pin(passed) => passed,
                    () = lost => {
                        // What the system keeps for it goes, too; one that has ended by itself holds nothing.
                        let _ = tcp.set_zero_linger();
                        self.tell(id, FULL, None);
                        Ok(())
                    }
                }
            }
            Wish::Name(_) | Wish::Nothing | Wish::Unknown => {
                let mut nginx = UnixStream::connect(&self.inner).await?;
                let line = match &announced {
                    Some(announced) => proxy_protocol::line_of(announced),
                    None => "PROXY UNKNOWN\r\n".to_owned(),
                };
                nginx.write_all(line.as_bytes()).await?;
                Box::pin(stream::pipe_until_over(&mut tcp, &mut nginx, LINGER)).await
            }
        }
    }

    async fn onward(
        &self,
        upstream: Option<&Arc<Upstream>>,
        hops: u8,
    ) -> Result<(TcpStream, Option<Own>), NoWay> {
        let endpoints = upstream.map(|one| self.names.endpoints(one)).unwrap_or_default();
        let mut usable = endpoints.usable().iter().copied().cycle();
        // Whose turn it is matters little here: connections live long.
        let skip = fastrand::usize(..endpoints.usable().len().max(1));
        usable.by_ref().take(skip).for_each(drop);
        onward::onward(|| usable.next(), hops).await
    }

    /// The line of the log, once a minute for each upstream and reason.
    fn tell(&self, upstream: &UpstreamId, what: &'static str, error: Option<io::Error>) {
        let now = Instant::now().into_std();
        if let Some(line) = self.told.line(upstream.as_str().into(), what, 1, now) {
            let error = error.map(tracing::field::display);
            tracing::warn!(%upstream, error, before = line.left_out, "{what} (told once a minute)");
        }
    }
}

/// Where connections for a host go that passes nginx by.
fn passed_to<'a>(configuration: &'a Configuration, host: &str) -> Option<&'a UpstreamId> {
    configuration.servers.get(&ServerName::new(host))?.passthrough.as_ref()
}
