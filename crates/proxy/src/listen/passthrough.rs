//! TLS connections that are not ended here but carried on to a Service (compat/behaviour.md section 19).

use crate::connection::Connection;
use crate::generation::{Generation, Onward};
use crate::told::About;
use crate::worker::Worker;
use model::ServerName;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use stream::Held;
use stream::client_hello::{self, Wish};
use stream::onward::{self, NoWay, PATIENCE};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use upstream::Group;

/// What is told of who got no place, or lost it.
const FULL: &str = "TLS connections are turned away or ended for others: as many as may be are carried on (docs/limits.md)";

/// Where the client's server name leads, if its host is passed through. Nothing is taken off the connection.
pub(super) async fn wished(tcp: &TcpStream, generation: &Generation) -> io::Result<Option<Onward>> {
    let limit = generation.global().limits.header_timeout;
    Ok(match timeout(limit, client_hello::peek(tcp)).await?? {
        Wish::Name(name) => generation.passthrough.get(&ServerName::new(name)).cloned(),
        Wish::Nothing | Wish::Unknown => None,
    })
}

/// Takes a place for the connection and carries it on, until both sides have ended it or somebody else has the place.
pub(super) async fn pass(
    client: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Connection,
    worker: &Worker,
    onward: &Onward,
) -> io::Result<()> {
    let own = SocketAddr::from((Ipv4Addr::UNSPECIFIED, worker.listen.https_port));
    let at = connection.door().unwrap_or(own);
    let from = connection.counted_as();
    let Some(place) = worker.shared.carried.wait(&onward.namespace, at, from).await else {
        tell(worker, &onward.group, FULL, None);
        return Ok(());
    };
    tokio::select! {
        carried = carry(client, connection, worker, (onward, &place)) => carried,
        () = place.lost() => {
            tell(worker, &onward.group, FULL, None);
            Ok(())
        }
    }
}

/// Carries the connection on; under TLS of its own, where that is asked for.
async fn carry(
    client: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Connection,
    worker: &Worker,
    (Onward { group, tls, tires, .. }, place): (&Onward, &Held),
) -> io::Result<()> {
    let patience = tires.then(|| worker.generation().global().streams.idle);
    let (mut upstream, _own) = match onward::onward(|| group.pick(), connection.hops()).await {
        Ok(upstream) => upstream,
        Err(NoWay { what, error }) => {
            tell(worker, group, what, error.as_ref());
            return Ok(());
        }
    };
    let Some(profile) = tls else {
        return Box::pin(place.pipe(client, &mut upstream, patience)).await;
    };
    let name = profile.name_for(upstream.peer_addr()?.ip());
    let handshake = TlsConnector::from(profile.config.clone()).connect(name, upstream);
    let shaken = timeout(PATIENCE, Box::pin(handshake)).await.map_err(io::Error::from);
    let mut upstream = shaken.and_then(|shaken| shaken).inspect_err(|error| {
        tell(worker, group, "TLS towards a backend fails", Some(error));
    })?;
    Box::pin(place.pipe(client, &mut upstream, patience)).await
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
