//! The way of a TLS connection that is passed through to its Service, for both engines.

use crate::connect;
use crate::own::Own;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Endpoints tried at most: as for TCP services.
const TRIES: usize = 3;
/// The time for all of them.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is none.
#[derive(Debug)]
pub struct NoWay {
    /// For the log, in words that are always the same.
    pub what: &'static str,
    /// What the last endpoint said.
    pub error: Option<io::Error>,
}

/// A connection to one of the endpoints that `pick` gives, for what has come back so often. It is in the books as long
/// as the second is kept.
pub async fn onward(
    pick: impl FnMut() -> Option<SocketAddr>,
    hops: u8,
) -> Result<(TcpStream, Option<Own>), NoWay> {
    let upstream = connect(pick, TRIES, Instant::now() + PATIENCE).await;
    let upstream = upstream
        .map_err(|error| NoWay { what: "nobody takes a TLS connection", error: Some(error) })?;
    let own = Own::of(&upstream);
    if own.as_ref().is_some_and(|own| !own.carries(hops)) {
        return Err(NoWay { what: "a TLS connection comes back time and again", error: None });
    }
    Ok((upstream, own))
}
