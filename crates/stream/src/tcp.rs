//! A connection of a TCP service, from the first byte to the last.

use crate::holders::Holder;
use crate::own::{self, UnderWay};
use crate::pipe::pipe;
use crate::proxy_protocol::{self, Announced};
use crate::reach::Tries;
use crate::room::Place;
use crate::streams::{Plan, Port, endpoints};
use crate::traffic::Counted;
use rustix::net::sockopt::set_tcp_user_timeout;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use system::sockets::Acceptor;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// Accepts until the port is closed.
pub(crate) async fn accept_on(listener: TcpListener, port: Arc<Port>) {
    let mut listener = Acceptor::new(listener);
    loop {
        let (tcp, peer) = listener
            .next(|error, before| {
                let port = &port.port;
                tracing::warn!(%port, %error, before, "a connection could not be accepted (told once a minute)");
            })
            .await;
        let namespace = port.plan.borrow().stream.namespace.clone();
        let (whose, port) = (Holder::new(&namespace, port.port, peer.ip()), port.clone());
        tokio::spawn(async move {
            let Some(mut place) = port.room.wait(&whose).await else {
                port.tell_full(&namespace);
                return;
            };
            let lost = place.lost();
            let mut sides = Sides { client: tcp, upstream: None };
            let served = tokio::select! {
                served = serve(&mut sides, peer, &port, &mut place) => served,
                () = lost => {
                    sides.reset();
                    port.tell_full(&namespace);
                    return;
                }
            };
            if let Err(error) = served {
                tracing::debug!(port = %port.port, %peer, %error, "a connection ended");
            }
        });
    }
}

/// How long the system keeps what a side does not take once its connection has ended (docs/limits.md).
const UNTAKEN: Duration = Duration::from_secs(30);

/// Both sides of a connection; the second one once it stands.
struct Sides {
    client: TcpStream,
    upstream: Option<TcpStream>,
}

impl Sides {
    /// Has both end with a reset. What a side does not take would stay in the system's memory for minutes after its
    /// connection was closed, and whoever has the place next could have as much again.
    fn reset(&self) {
        for side in self.both() {
            // One that has ended by itself holds nothing.
            let _ = side.set_zero_linger();
        }
    }

    fn both(&self) -> impl Iterator<Item = &TcpStream> {
        [Some(&self.client), self.upstream.as_ref()].into_iter().flatten()
    }
}

impl Drop for Sides {
    /// However they end: it does not stay there for minutes.
    fn drop(&mut self) {
        for side in self.both() {
            let _ = set_tcp_user_timeout(side, UNTAKEN.as_millis() as u32);
        }
    }
}

async fn serve(
    Sides { client, upstream }: &mut Sides,
    peer: SocketAddr,
    port: &Port,
    place: &mut Place,
) -> io::Result<()> {
    let Plan { stream, global, counts, named } = port.plan.borrow().clone();
    let session = counts.begin();
    let hops = own::hops_at_once(peer, client.local_addr()?).await;
    client.set_nodelay(true)?;
    let announced = if stream.takes_proxy {
        let taking = proxy_protocol::take(client);
        tokio::time::timeout(global.limits.proxy_protocol_timeout, taking).await??
    } else {
        None
    };
    let believed = global.real_ip.enabled && global.real_ip.trusts(peer.ip());
    let source = announced.filter(|_| believed).map_or(peer, |announced| announced.source);
    if source != peer {
        place.is_of(source.ip());
    }
    // Who asks only once it is connected has come back once more.
    if hops >= own::MOST {
        port.tell_circle(&stream.service);
        return Ok(());
    }
    let tries = Tries::of(&global.streams);
    let under_way = UnderWay::new(hops);
    let endpoints = endpoints(&stream, named, &port.next);
    let connecting = port.reach.connect(endpoints, tries, &under_way);
    let connected = connecting.await.inspect_err(|error| {
        if let Some(times) = port.lines.untaken.due() {
            let (port, service) = (&port.port, &stream.service);
            tracing::warn!(%port, %service, times, %error, "nobody takes a connection (told once a minute)");
        }
    })?;
    let upstream = upstream.insert(connected);
    let own = under_way.stands(upstream);
    if own.as_ref().is_some_and(|own| !own.carries(hops)) {
        port.tell_circle(&stream.service);
        return Ok(());
    }
    if stream.gives_proxy {
        let header = Announced { source, destination: client.local_addr()? };
        upstream.write_all(proxy_protocol::line_of(&header).as_bytes()).await?;
    }
    let mut client = Counted::new(client, Some(&session), place);
    pipe(&mut client, upstream, (global.streams.idle, place)).await
}

#[cfg(test)]
mod tests {
    use super::Sides;
    use rustix::net::sockopt::tcp_user_timeout;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn what_a_side_does_not_take_stays_for_little_time_however_its_connection_ends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).await.expect("it listens");
        let upstream = TcpStream::connect(address).await.expect("it listens");
        let same = [&client, &upstream]
            .map(|side| side.as_fd().try_clone_to_owned().expect("another handle"));
        drop(Sides { client, upstream: Some(upstream) });
        let kept = same.map(|side| tcp_user_timeout(side).expect("a number"));
        assert_eq!(kept, [30_000; 2]);
    }
}
