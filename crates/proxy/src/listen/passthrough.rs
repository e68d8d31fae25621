//! TLS connections that are not ended here but carried on to a Service (compat/behaviour.md section 19).

use crate::connection::Connection;
use crate::generation::{Generation, Onward};
use crate::told::About;
use crate::worker::Worker;
use model::ServerName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use stream::client_hello::{self, Wish};
use stream::own::Own;
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
    worker: &Worker,
    Onward { group, tls }: &Onward,
) -> io::Result<()> {
    let connecting = stream::connect(|| group.pick(), TRIES, Instant::now() + PATIENCE);
    let mut upstream = connecting.await.inspect_err(|error| {
        tell(worker, group, "nobody takes a TLS connection", Some(error));
    })?;
    let own = Own::of(&upstream);
    if own.as_ref().is_some_and(|own| !own.carries(connection.turns())) {
        tell(worker, group, "a TLS connection comes back time and again", None);
        return Ok(());
    }
    let Some(profile) = tls else {
        return Box::pin(stream::pipe(&mut client, &mut upstream, None)).await;
    };
    let name = profile.name_for(upstream.peer_addr()?.ip());
    let handshake = TlsConnector::from(profile.config.clone()).connect(name, upstream);
    let shaken = timeout(PATIENCE, Box::pin(handshake)).await.map_err(io::Error::from);
    let mut upstream = shaken.and_then(|shaken| shaken).inspect_err(|error| {
        tell(worker, group, "TLS towards a backend fails", Some(error));
    })?;
    Box::pin(stream::pipe(&mut client, &mut upstream, None)).await
}

/// The line of the error log, once a minute for each upstream and reason: a stranger makes as many connections as there
/// is time for.
fn tell(worker: &Worker, group: &Group, what: &'static str, error: Option<&io::Error>) {
    let upstream = &group.id;
    if let Some(line) =
        worker.shared.told.line(Some(&upstream.as_str().into()), About::Carried(what))
    {
        let error = error.map(tracing::field::display);
        tracing::warn!(%upstream, error, before = line.left_out, "{what} (told once a minute)");
    }
}
