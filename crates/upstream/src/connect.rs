//! New connections to endpoints, in clear or under TLS.

use super::{Pool, TryError};
use bytes::BytesMut;
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stream::own::Own;
use tls::{Profile, ProfileId};
use tokio::net::TcpSocket;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use wire::{Io, Loan, Timer, UnderTls, descriptors};

/// What connections have in common that are exchanged for one another.
pub(super) type Key = (SocketAddr, Option<ProfileId>);

/// Where to connect, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// The endpoint.
    pub address: SocketAddr,
    /// TLS towards it; none: in clear.
    pub tls: Option<Arc<Profile>>,
}

impl Target {
    /// What connections must have in common to be exchanged for one another.
    pub(super) fn key(&self) -> Key {
        (self.address, self.tls.as_ref().map(|profile| profile.id.clone()))
    }
}

/// A connection to an endpoint.
#[derive(Debug)]
pub struct Connection {
    /// The bytes' way.
    pub io: Io,
    /// What was read and not used yet.
    pub buffer: BytesMut,
    /// Requests sent over it.
    pub requests: u64,
    /// When it was made.
    pub since: Instant,
    /// Its deadlines.
    pub timer: Timer,
    pub(super) key: Key,
    /// That it leads to this machine.
    pub(super) own: Option<Own>,
    /// Its place among all connections towards upstreams.
    pub(super) place: Loan,
}

impl Connection {
    /// Connects for somebody of this namespace within `limit`, which covers the TLS handshake, too. Boxed once, since
    /// it changes hands a few times for each request.
    pub(super) async fn open(
        pool: &Pool,
        target: &Target,
        whose: Option<&Arc<str>>,
        limit: Duration,
    ) -> Result<Box<Self>, TryError> {
        let place = pool.place(&whose.cloned().unwrap_or_default()).ok_or(TryError::Places)?;
        let timer = Timer::new(limit);
        let connecting = connect(target);
        let io =
            timer.within(limit, connecting).await.map_err(|_| TryError::Timeout("connecting"))?;
        let (io, own) = io.map_err(TryError::Connect)?;
        Ok(Box::new(Self {
            io,
            own,
            place,
            buffer: BytesMut::new(),
            requests: 0,
            since: Instant::now(),
            timer,
            key: target.key(),
        }))
    }
}

/// Whether a request that has come back so often may go on, over a connection that leads there.
pub(super) fn goes_on(own: Option<&Own>, hops: u8) -> Result<(), TryError> {
    if own.is_none_or(|own| own.carries(hops)) { Ok(()) } else { Err(TryError::Loop) }
}

async fn connect(target: &Target) -> io::Result<(Io, Option<Own>)> {
    let socket = match target.address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if !descriptors::upstream_fits(&socket) {
        return Err(Errno::MFILE.into());
    }
    let tcp = socket.connect(target.address).await?;
    tcp.set_nodelay(true)?;
    let own = Own::of(&tcp);
    let Some(profile) = &target.tls else { return Ok((Io::Plain(tcp), own)) };
    let name = profile.name_for(target.address.ip());
    let tls = TlsConnector::from(profile.config.clone()).connect(name, UnderTls::new(tcp)).await?;
    Ok((Io::secure(tls), own))
}
