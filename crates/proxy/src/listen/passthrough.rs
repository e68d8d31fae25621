//! TLS connections that are not ended here but carried on to a Service (compat/behaviour.md section 19).

use crate::connection::Connection;
use crate::generation::Generation;
use model::ServerName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use stream::client_hello::{self, Wish};
use stream::own::Own;
use tls::Profile;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use upstream::Group;

/// Endpoints tried at most, and the time for all of them: as for TCP services.
const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the client's server name leads, if its host is passed through. Nothing is taken off the connection.
pub(super) async fn wished(
    tcp: &TcpStream,
    generation: &Generation,
) -> io::Result<Option<Arc<Group>>> {
    let limit = generation.global().limits.header_timeout;
    Ok(match timeout(limit, client_hello::peek(tcp)).await?? {
        Wish::Name(name) => generation.passthrough.get(&ServerName::new(name)).cloned(),
        Wish::Nothing | Wish::Unknown => None,
    })
}

/// Carries the connection on until both sides have ended it; under TLS of its own, where that is asked for.
pub(super) async fn pass(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Connection,
    group: &Group,
    tls: Option<&Profile>,
) -> io::Result<()> {
    let connecting = stream::connect(|| group.pick(), TRIES, Instant::now() + PATIENCE);
    let mut upstream = connecting.await.inspect_err(|error| {
        tracing::warn!(upstream = %group.id, %error, "nobody takes a TLS connection");
    })?;
    let own = Own::of(&upstream);
    if own.as_ref().is_some_and(|own| !own.carries(connection.turns())) {
        tracing::warn!(upstream = %group.id, "a TLS connection comes back time and again");
        return Ok(());
    }
    let Some(profile) = tls else {
        return Box::pin(stream::pipe(&mut client, &mut upstream, None)).await;
    };
    let name = profile.name_for(upstream.peer_addr()?.ip());
    let handshake = TlsConnector::from(profile.config.clone()).connect(name, upstream);
    let shaken = timeout(PATIENCE, Box::pin(handshake)).await.map_err(io::Error::from);
    let mut upstream = shaken.and_then(|shaken| shaken).inspect_err(|error| {
        tracing::warn!(upstream = %group.id, %error, "TLS towards a backend fails");
    })?;
    Box::pin(stream::pipe(&mut client, &mut upstream, None)).await
}
