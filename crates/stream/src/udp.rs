//! Sessions of a UDP service: a client's address has a socket towards one endpoint until its answers have come
//! (nginx stream: proxy_responses), nothing moved for too long, or newer sessions took its place.

use crate::own::{self, Own};
use crate::room::Place;
use crate::shares::Whose;
use crate::streams::{Plan, Port, endpoints};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Datagrams that wait for one session at most; more are dropped, as on the way.
const WAITING: usize = 64;
/// Bytes of the longest datagram.
const LONGEST: usize = 65_535;
/// Pause after a failed receive.
const PAUSE: Duration = Duration::from_millis(50);

/// The sessions of one socket, and the way to each.
type Sessions = Mutex<HashMap<SocketAddr, mpsc::Sender<Vec<u8>>>>;

/// Receives until the port is closed; its sessions end with it.
pub(crate) async fn receive_on(socket: UdpSocket, port: Arc<Port>) {
    let (socket, sessions) = (Arc::new(socket), Arc::new(Sessions::default()));
    let mut buffer = vec![0; LONGEST];
    loop {
        let (length, client) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!(port = %port.port, %error, "a datagram could not be received");
                #[expect(
                    clippy::disallowed_methods,
                    reason = "nothing tells when descriptors are free again"
                )]
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let mut datagram = buffer[..length].to_vec();
        let known = held(&sessions).get(&client).cloned();
        if let Some(known) = known {
            match known.try_send(datagram) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => continue,
                // It has ended meanwhile: a new one begins.
                Err(mpsc::error::TrySendError::Closed(back)) => datagram = back,
            }
        }
        let namespace = port.plan.borrow().stream.namespace.clone();
        let Some(place) = port.room.now(&Whose::new(&namespace, port.port, client.ip())) else {
            port.tell_full(&namespace);
            continue;
        };
        place.heard();
        let turns = own::turns_of_datagrams(client);
        let turns = turns.map_or(0, |turns| turns.load(Ordering::Relaxed));
        let (sender, receiver) = mpsc::channel(WAITING);
        if sender.try_send(datagram).is_ok() {
            held(&sessions).insert(client, sender);
        }
        let (port, socket, listed) = (port.clone(), socket.clone(), Arc::downgrade(&sessions));
        tokio::spawn(async move {
            tokio::select! {
                ended = session(&socket, (client, turns), receiver, &port, &place) => {
                    if let Err(error) = ended {
                        tracing::debug!(port = %port.port, %client, %error, "a session ended");
                    }
                }
                () = place.lost() => port.tell_full(&namespace),
            }
            if let Some(sessions) = listed.upgrade() {
                let mut sessions = held(&sessions);
                // Otherwise the client has another one by now.
                if sessions.get(&client).is_some_and(mpsc::Sender::is_closed) {
                    sessions.remove(&client);
                }
            }
            drop(place);
        });
    }
}

fn held(sessions: &Sessions) -> MutexGuard<'_, HashMap<SocketAddr, mpsc::Sender<Vec<u8>>>> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One session. It ends when the port or the listener's list of sessions drops the sender.
async fn session(
    listener: &UdpSocket,
    (client, turns): (SocketAddr, u8),
    mut datagrams: mpsc::Receiver<Vec<u8>>,
    port: &Port,
    place: &Place,
) -> io::Result<()> {
    let Plan { stream, global, counts, named } = port.plan.borrow().clone();
    let counted = counts.begin();
    let (idle, responses) = (global.streams.idle, u64::from(global.streams.responses));
    let endpoint = port.reach.next(&*endpoints(&stream, named, &port.turn).await)?;
    let upstream = UdpSocket::bind(any_port(endpoint)).await?;
    upstream.connect(endpoint).await?;
    let own = Own::of_datagrams(upstream.local_addr()?, endpoint);
    if own.as_ref().is_some_and(|own| !own.carries(turns)) {
        port.tell_circle(&stream.service);
        return Ok(());
    }
    let (mut asked, mut answered): (u64, u64) = (0, 0);
    let mut ending = false;
    loop {
        let moved = timeout(idle, async {
            tokio::select! {
                datagram = datagrams.recv(), if !ending => Ok::<_, io::Error>(Moved::In(datagram)),
                ready = upstream.readable() => ready.map(|()| Moved::Out),
            }
        });
        match moved.await?? {
            Moved::In(Some(datagram)) => {
                asked += 1;
                counted.received(datagram.len());
                place.heard();
                upstream.send(&datagram).await?;
            }
            Moved::In(None) => return Ok(()),
            Moved::Out => {
                // A session that waits holds no buffer.
                let mut answer = Vec::with_capacity(LONGEST);
                match upstream.try_recv_buf(&mut answer) {
                    Ok(_) => answered += 1,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error),
                }
                listener.send_to(&answer, client).await?;
                counted.sent(answer.len());
                place.told();
            }
        }
        if answered >= asked.saturating_mul(responses) {
            // The next datagram begins a new session; those that wait already belong to this one.
            datagrams.close();
            ending = true;
            while let Ok(late) = datagrams.try_recv() {
                asked += 1;
                counted.received(late.len());
                upstream.send(&late).await?;
            }
            if answered >= asked.saturating_mul(responses) {
                return Ok(());
            }
        }
    }
}

enum Moved {
    /// From the client; none once the session shall end.
    In(Option<Vec<u8>>),
    /// From the endpoint.
    Out,
}

fn any_port(endpoint: SocketAddr) -> SocketAddr {
    match endpoint {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
