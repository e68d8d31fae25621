//! Connecting to one of several endpoints: each in turn, the next one where one refuses.

use crate::own::UnderWay;
use balance::RoundRobin;
use model::{Endpoints, StreamSettings};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// How long one endpoint may take to accept (nginx stream: proxy_connect_timeout, 60 s).
const CONNECT: Duration = Duration::from_secs(60);
/// The largest time that is waited for anything: ten years.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How often, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tries {
    /// Endpoints tried at most; zero is each one.
    pub most: u32,
    /// Time for all of them together; zero is no bound.
    pub within: Duration,
}

impl Tries {
    /// What `proxy-stream-next-upstream*` say.
    pub(crate) fn of(settings: &StreamSettings) -> Self {
        let most = if settings.next_endpoint { settings.tries } else { 1 };
        Self { most, within: settings.tries_timeout }
    }
}

/// Connects to endpoints in turn; it survives every change of them.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    turn: RoundRobin,
}

impl Reach {
    /// The endpoint whose turn it is.
    pub(crate) fn next(&self, endpoints: &Endpoints) -> io::Result<SocketAddr> {
        self.turn.next(endpoints.usable()).ok_or_else(nobody)
    }

    /// A connection to one of the endpoints, once they are known.
    pub(crate) async fn connect(
        &self,
        endpoints: impl Future<Output = Arc<Endpoints>>,
        tries: Tries,
        under_way: &UnderWay,
    ) -> io::Result<TcpStream> {
        let within = if tries.within.is_zero() { LONGEST } else { tries.within.min(LONGEST) };
        let deadline = Instant::now() + within;
        let endpoints = timeout_at(deadline, endpoints).await?;
        let addresses = endpoints.usable();
        let most = match usize::try_from(tries.most).unwrap_or(usize::MAX) {
            0 => addresses.len(),
            most => most,
        };
        let next = || self.turn.next(addresses).inspect(|to| under_way.leads_to(*to));
        connect(next, most, deadline).await
    }
}

/// A connection to one of the endpoints that `pick` gives, `most` of them at most and before `deadline`.
pub async fn connect(
    mut pick: impl FnMut() -> Option<SocketAddr>,
    most: usize,
    deadline: Instant,
) -> io::Result<TcpStream> {
    let mut last = nobody();
    for _ in 0..most {
        let address = pick().ok_or_else(nobody)?;
        let connecting = timeout(CONNECT, TcpStream::connect(address));
        match timeout_at(deadline, connecting).await {
            Ok(Ok(Ok(tcp))) => {
                tcp.set_nodelay(true)?;
                return Ok(tcp);
            }
            Ok(Ok(Err(error))) => last = named(address, &error),
            Ok(Err(_)) => last = named(address, &io::ErrorKind::TimedOut.into()),
            Err(_) => return Err(named(address, &io::ErrorKind::TimedOut.into())),
        }
    }
    Err(last)
}

fn named(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("endpoint {address}: {error}"))
}

fn nobody() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no endpoint is ready")
}
