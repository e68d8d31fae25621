//! New connections to endpoints, in clear or under TLS.

use super::link::Link;
use super::pool::Waiting;
use super::unfinished::Unfinished;
use super::{AddressText, Pool, TryError, Whom};
use bytes::BytesMut;
use rustix::io::Errno;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Weak;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use stream::own::Own;
use tls::{Profile, ProfileId};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use wire::{Io, Loan, Timer, UnderTls, descriptors};

/// What connections have in common that are exchanged for one another.
pub(super) type Key = (SocketAddr, Option<ProfileId>);

/// How long a handshake of TLS may take at most, however long connecting may.
const HANDSHAKE: Duration = Duration::from_secs(10);

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
    /// What leads its bytes.
    pub io: Link,
    /// What was read and not used yet.
    pub buffer: BytesMut,
    /// Requests sent over it.
    pub requests: u64,
    /// When it was made.
    pub since: Instant,
    /// Its deadlines.
    pub timer: Timer,
    /// The wake-up of its thread at which its last answer ended with its head, as those to HEAD do, 204 and 304.
    pub(super) bodiless: Option<u64>,
    pub(super) key: Key,
    /// Where it has waited for its requests.
    pub(super) home: Weak<Waiting>,
    /// The address as it is written.
    pub(super) text: Option<AddressText>,
    /// That it leads to this machine.
    pub(super) own: Option<Own>,
    /// Its place among all connections towards upstreams.
    pub(super) place: Loan,
}

impl Connection {
    /// Connects for somebody within `limit`, which covers the TLS handshake, too. Boxed once, since it changes hands a
    /// few times for each request.
    pub(super) async fn open(
        pool: &Pool,
        target: &Target,
        whom: Whom<'_>,
        limit: Duration,
    ) -> Result<Box<Self>, TryError> {
        let whose = whom.namespace.cloned().unwrap_or_default();
        let place = pool.place(&whose).ok_or(TryError::Places)?;
        let (timer, begun) = (Timer::new(limit), Instant::now());
        let tcp = timer.within(limit, connect(target.address)).await;
        let tcp = tcp.map_err(|_| TryError::Timeout("connecting"))?.map_err(TryError::Connect)?;
        let own = Own::of(&tcp);
        let io = match &target.tls {
            None => Io::Plain(tcp),
            Some(profile) => {
                let left = limit.saturating_sub(begun.elapsed()).min(HANDSHAKE);
                let ip = target.address.ip();
                let shaking = secured(tcp, profile, ip, Unfinished::new(pool, whom));
                let io = timer.within(left, shaking).await;
                io.map_err(|_| TryError::Timeout("shaking hands for TLS"))??
            }
        };
        Ok(Box::new(Self {
            io: Link::new(io),
            own,
            place,
            buffer: BytesMut::new(),
            requests: 0,
            since: Instant::now(),
            timer,
            bodiless: None,
            key: target.key(),
            home: Weak::new(),
            text: AddressText::of(target.address),
        }))
    }

    /// An answer has begun: one whose end is that of its head, or another one.
    pub(super) fn answered(&mut self, is_bodiless: bool) {
        self.bodiless = is_bodiless.then(wire::wake);
    }
}

/// Whether a request that has come back so often may go on, over a connection that leads there.
pub(super) fn goes_on(own: Option<&Own>, hops: u8) -> Result<(), TryError> {
    if own.is_none_or(|own| own.carries(hops)) { Ok(()) } else { Err(TryError::Loop) }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if !descriptors::upstream_fits(&socket) {
        return Err(Errno::MFILE.into());
    }
    let tcp = socket.connect(address).await?;
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

/// TLS over a connection that stands already, towards the endpoint that it leads to. A handshake has its time and its
/// room here, too.
///
/// # Errors
/// It fails, or takes too long or too much.
pub async fn secure(
    tcp: TcpStream,
    profile: &Profile,
    unfinished: Unfinished<'_>,
) -> Result<Io, TryError> {
    let ip = tcp.peer_addr().map_err(TryError::Connect)?.ip();
    let shaking = secured(tcp, profile, ip, unfinished);
    let io = Timer::new(HANDSHAKE).within(HANDSHAKE, shaking).await;
    io.map_err(|_| TryError::Timeout("shaking hands for TLS"))?
}

/// The same under TLS. What came of a handshake that is not over counts like a head that is not whole.
async fn secured(
    tcp: TcpStream,
    profile: &Profile,
    ip: IpAddr,
    mut unfinished: Unfinished<'_>,
) -> Result<Io, TryError> {
    let name = profile.name_for(ip);
    let connector = TlsConnector::from(profile.config.clone());
    let mut shaking = pin!(connector.connect(name, UnderTls::new(tcp)));
    poll_fn(|cx| match shaking.as_mut().poll(cx) {
        Poll::Ready(tls) => Poll::Ready(tls.map(Io::secure).map_err(TryError::Connect)),
        Poll::Pending => {
            let held = shaking.get_ref().map_or(0, UnderTls::held);
            unfinished.holds(held).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::{Connection, HANDSHAKE, Target, secure};
    use crate::{Cause, Pool, TryError, Unfinished, Whom};
    use model::policy::UpstreamTls;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;
    use tls::Profiles;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;
    use tokio::time::{Instant, pause};
    use wire::Room;

    /// Takes one connection and falls silent, with the clock, once a handshake has begun: since when.
    async fn silent() -> (SocketAddr, JoinHandle<(TcpStream, Instant)>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.expect("a connection");
            let _ = tcp.read(&mut [0; 4096]).await.expect("its first message");
            pause();
            (tcp, Instant::now())
        });
        (address, server)
    }

    /// Somebody waited for a handshake with it, and not for long.
    async fn was_left(server: JoinHandle<(TcpStream, Instant)>) {
        let (_tcp, since) = server.await.expect("no panic");
        let took = since.elapsed();
        assert!(took < 2 * HANDSHAKE && took > HANDSHAKE / 2, "{took:?}");
    }

    #[tokio::test]
    async fn a_handshake_has_a_time_of_its_own_however_long_connecting_may_take() {
        let (address, server) = silent().await;
        let pool = Pool::new(Arc::new(Room::new(9)));
        let tls = Profiles::default().profile(&UpstreamTls::default(), false).expect("a profile");
        let target = Target { address, tls: Some(tls) };
        let opened =
            Connection::open(&pool, &target, Whom::default(), Duration::from_secs(600)).await;
        assert!(matches!(opened, Err(TryError::Timeout(_))), "{opened:?}");
        was_left(server).await;
    }

    #[tokio::test]
    async fn so_has_one_over_a_connection_that_somebody_else_has_made() {
        let (address, server) = silent().await;
        let pool = Pool::new(Arc::new(Room::new(9)));
        let tls = Profiles::default().profile(&UpstreamTls::default(), false).expect("a profile");
        let tcp = TcpStream::connect(address).await.expect("it listens");
        let (whose, cause) = ("one".into(), Cause { hops: 0, book: None });
        let secured = secure(tcp, &tls, Unfinished::of(&pool, &whose, cause)).await;
        assert!(matches!(secured, Err(TryError::Timeout(_))), "{secured:?}");
        was_left(server).await;
    }
}
