//! Sessions of a UDP service: a client's address has a socket towards one endpoint until its answers have come
//! (nginx stream: proxy_responses), nothing moved for too long, or newer sessions took its place.

use crate::holders::Holder;
use crate::own::{self, Own};
use crate::room::Place;
use crate::streams::{Plan, Port, endpoints};
use crate::turns::{FEW, Turn};
use crate::waiting::{Datagram, Queue};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Datagrams that wait for one session at most, within the bounds of their bytes; more are dropped, as on the way.
const WAITING: usize = 64;
/// Bytes of the longest datagram.
const LONGEST: usize = 65_535;
/// Pause after a failed receive.
const PAUSE: Duration = Duration::from_millis(50);
/// Datagrams that are received in one turn of a port.
const RECEIVED: usize = 16;
/// Sessions that begin in one turn of a port: each costs a socket, and as much as many datagrams of those that exist.
const BEGUN: usize = 4;

/// What such a turn takes of others, in moves of a datagram: a quarter of what is done between two looks at what came.
const RECEIVING: i64 = FEW / 4;

/// The sessions of one socket, and the way to each.
type Sessions = Mutex<HashMap<SocketAddr, Way>>;

/// The way to a session.
type Way = (mpsc::Sender<Datagram>, Arc<Queue>);

/// What is received on.
struct Listener {
    socket: Arc<UdpSocket>,
    /// Sessions end when this goes.
    sessions: Arc<Sessions>,
    port: Arc<Port>,
    _listened: Option<own::Listened>,
}

/// Receives until the port is closed; its sessions end with it. What comes faster than it has turns waits in the system
/// and is dropped there, where it costs nobody anything.
pub(crate) async fn receive_on(socket: UdpSocket, port: Arc<Port>) {
    let listened = socket.local_addr().ok().map(|address| own::Listened::new(address.port()));
    let (socket, sessions) = (Arc::new(socket), Arc::default());
    let listener = Listener { socket, sessions, port, _listened: listened };
    let mut buffer = vec![0; LONGEST];
    loop {
        let received = match listener.socket.readable().await {
            Ok(()) => {
                let turn = Arc::new(listener.port.turn(RECEIVING).await);
                listener.receive(&mut buffer, &turn)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = received {
            tracing::debug!(port = %listener.port.port, %error, "a datagram could not be received");
            #[expect(
                clippy::disallowed_methods,
                reason = "nothing tells when descriptors are free again"
            )]
            tokio::time::sleep(PAUSE).await;
        }
        // The event loop looks what came for others.
        yield_now().await;
    }
}

impl Listener {
    /// Receives what may come in one turn.
    fn receive(&self, buffer: &mut [u8], turn: &Arc<Turn>) -> io::Result<()> {
        let mut begun = 0;
        for _ in 0..RECEIVED {
            let (length, client) = match self.socket.try_recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let datagram = &buffer[..length];
            if self.is_known(client, datagram) {
                continue;
            }
            self.begin(client, datagram, turn.clone());
            begun += 1;
            if begun == BEGUN {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Hands a datagram to the session of its client; false if there is none.
    fn is_known(&self, client: SocketAddr, datagram: &[u8]) -> bool {
        let sessions = held(&self.sessions);
        let Some((sender, queue)) = sessions.get(&client) else { return false };
        match sender.try_reserve() {
            Ok(room) => {
                if let Some(datagram) = queue.take(datagram) {
                    room.send(datagram);
                }
                true
            }
            Err(mpsc::error::TrySendError::Full(())) => true,
            // It has ended meanwhile: a new one begins.
            Err(mpsc::error::TrySendError::Closed(())) => false,
        }
    }

    /// Begins a session, if there is a place for it.
    fn begin(&self, client: SocketAddr, datagram: &[u8], turn: Arc<Turn>) {
        let port = self.port.clone();
        if is_forged(client) {
            return port.tell_forged(client);
        }
        let namespace = port.plan.borrow().stream.namespace.clone();
        let queue = port.waiting.queue(&namespace);
        let Some(first) = queue.take(datagram) else { return port.tell_full(&namespace) };
        let Some(place) = port.room.now(&Holder::new(&namespace, port.port, client.ip())) else {
            port.tell_full(&namespace);
            return;
        };
        place.heard();
        let hops = own::hops_of_datagrams(client);
        let (sender, receiver) = mpsc::channel(WAITING);
        if sender.try_send(first).is_ok() {
            held(&self.sessions).insert(client, (sender, queue));
        }
        let (socket, listed) = (self.socket.clone(), Arc::downgrade(&self.sessions));
        tokio::spawn(async move {
            let serving = session(&socket, (client, hops), receiver, &port, &place, turn);
            tokio::select! {
                // Who has lost its place before it has begun needs no socket.
                biased;
                () = place.lost() => port.tell_full(&namespace),
                ended = serving => {
                    if let Err(error) = ended {
                        tracing::debug!(port = %port.port, %client, %error, "a session ended");
                    }
                }
            }
            if let Some(sessions) = listed.upgrade() {
                let mut sessions = held(&sessions);
                // Otherwise the client has another one by now.
                if sessions.get(&client).is_some_and(|(sender, _)| sender.is_closed()) {
                    sessions.remove(&client);
                }
            }
            drop(place);
        });
    }
}

fn held(sessions: &Sessions) -> MutexGuard<'_, HashMap<SocketAddr, Way>> {
    sessions.lock()
}

/// One session. It ends when the port or the listener's list of sessions drops the sender.
async fn session(
    listener: &UdpSocket,
    (client, hops): (SocketAddr, u8),
    mut datagrams: mpsc::Receiver<Datagram>,
    port: &Port,
    place: &Place,
    turn: Arc<Turn>,
) -> io::Result<()> {
    let Plan { stream, global, counts, named } = port.plan.borrow().clone();
    let counted = counts.begin();
    let (idle, responses) = (global.streams.idle, u64::from(global.streams.responses));
    // The turn in which it came lasts until it has begun, or waits for a name.
    let turn = Some(turn).filter(|_| named.is_none());
    let endpoint = port.reach.next(&*endpoints(&stream, named, &port.next).await)?;
    let (upstream, own) = connected(endpoint).await?;
    if own.as_ref().is_some_and(|own| !own.carries(hops)) {
        port.tell_circle(&stream.service);
        return Ok(());
    }
    drop(turn);
    let (mut asked, mut answered, mut ending) = (0_u64, 0_u64, false);
    loop {
        let moved = timeout(idle, async {
            tokio::select! {
                datagram = datagrams.recv(), if !ending => Ok::<_, io::Error>(Moved::In(datagram)),
                ready = upstream.readable() => ready.map(|()| Moved::Out),
            }
        });
        match moved.await?? {
            Moved::In(Some(datagram)) => {
                // The first one had its turn when it came.
                if asked > 0 {
                    drop(port.turn(1).await);
                }
                asked += 1;
                counted.received(datagram.len());
                place.heard();
                upstream.send(&datagram).await?;
            }
            Moved::In(None) => return Ok(()),
            Moved::Out => {
                drop(port.turn(1).await);
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
                drop(port.turn(1).await);
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

/// Whether a datagram says that it comes from a port on which this process listens itself. Nothing is asked from there,
/// so somebody forged it: the answer would be a question to that port, and its answer another one, without end.
fn is_forged(client: SocketAddr) -> bool {
    // Elsewhere others may ask from a port of the same number.
    own::is_listened(client.port()) && is_here(client).unwrap_or(false)
}

/// Whether an address is one of this machine: who goes there comes from there. That it can be bound to would say
/// nothing, since a system may allow that for all addresses (net.ipv4.ip_nonlocal_bind).
fn is_here(address: SocketAddr) -> io::Result<bool> {
    let socket = std::net::UdpSocket::bind(any_port(address))?;
    socket.connect(address)?;
    Ok(socket.local_addr()?.ip() == address.ip())
}

/// A socket towards an endpoint, and that it leads to this machine, if it does.
async fn connected(endpoint: SocketAddr) -> io::Result<(UdpSocket, Option<Own>)> {
    let upstream = UdpSocket::bind(any_port(endpoint)).await?;
    upstream.connect(endpoint).await?;
    let own = Own::of_datagrams(upstream.local_addr()?, endpoint);
    Ok((upstream, own))
}

enum Moved {
    /// From the client; none once the session shall end.
    In(Option<Datagram>),
    /// From the endpoint.
    Out,
}

fn any_port(endpoint: SocketAddr) -> SocketAddr {
    match endpoint {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BEGUN, Listener, RECEIVING, WAITING, held, is_forged, receive_on};
    use crate::own::Listened;
    use crate::reach::Reach;
    use crate::room::Room;
    use crate::streams::{Lines, Plan, Port};
    use crate::turns::Turns;
    use model::{Endpoints, Global, Stream, StreamPort, Transport};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use tokio::net::UdpSocket;
    use tokio::sync::watch;

    /// More than tokio lets a task receive before it has to let others go.
    const MANY: usize = 150;

    async fn any() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        let address = socket.local_addr().expect("its address");
        (socket, address)
    }

    /// So many clients that have sent their first datagram.
    async fn clients(to: SocketAddr, says: &[u8], many: usize) -> Vec<UdpSocket> {
        let mut clients = Vec::new();
        for _ in 0..many {
            let (client, _) = any().await;
            client.send_to(says, to).await.expect("it is sent");
            clients.push(client);
        }
        clients
    }

    /// A port of a namespace that leads to an endpoint, and what keeps it.
    fn port(
        namespace: &str,
        endpoint: SocketAddr,
        (room, turns): (&Arc<Room>, &Arc<Turns>),
    ) -> (watch::Sender<Plan>, Arc<Port>) {
        let stream = Stream {
            service: namespace.into(),
            namespace: namespace.into(),
            endpoints: Arc::new(Endpoints { ready: vec![endpoint], draining: Vec::new() }),
            external: None,
            takes_proxy: false,
            gives_proxy: false,
            shares: Vec::new(),
        };
        let (stream, global) = (Arc::new(stream), Arc::new(Global::default()));
        let plan = Plan { stream, global, counts: Arc::default(), named: None };
        let (keeps, plan) = watch::channel(plan);
        let number = u16::try_from(namespace.len()).expect("a short name");
        let port = Port {
            port: StreamPort { transport: Transport::Udp, number, address: None },
            plan,
            reach: Reach::default(),
            next: AtomicU64::new(0),
            room: room.clone(),
            turns: turns.clone(),
            waiting: Arc::default(),
            lines: Lines::default(),
        };
        (keeps, Arc::new(port))
    }

    #[test]
    fn who_says_to_be_a_port_of_this_process_is_told_from_others_with_that_number() {
        let listened = [(); 2].map(|()| Listened::new(1));
        let here = SocketAddr::from(([127, 0, 0, 1], 1));
        // An address that no machine has (RFC 5737).
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 1));
        assert!(is_forged(here) && !is_forged(elsewhere));
        let [first, last] = listened;
        drop(first);
        assert!(is_forged(here));
        drop(last);
        assert!(!is_forged(here));
    }

    #[tokio::test]
    async fn long_datagrams_that_wait_for_a_session_are_fewer_than_short_ones() {
        let (all, turns) = (Room::new(9), Turns::new(1));
        let ((socket, _), (_endpoint, to), (_client, from)) =
            (any().await, any().await, any().await);
        let (_keeps, port) = port("a", to, (&all, &turns));
        let (socket, sessions) = (Arc::new(socket), Arc::default());
        let listener = Listener { socket, sessions, port, _listened: None };
        let turn = Arc::new(listener.port.turn(RECEIVING).await);
        listener.begin(from, &[0; 4096], turn);
        // The session itself has not had its turn yet.
        (1..WAITING).for_each(|_| assert!(listener.is_known(from, &[0; 4096])));
        let room = || held(&listener.sessions)[&from].0.capacity();
        assert_eq!(room(), WAITING - 24, "96k wait");
    }

    #[tokio::test]
    async fn however_many_sessions_begin_at_one_port_few_go_before_those_of_another_namespace() {
        let (all, turns) = (Room::new(4 * MANY), Turns::new(1));
        let (endpoint, to) = any().await;
        let ((flooded, flooded_at), (quiet, quiet_at)) = (any().await, any().await);
        let _clients =
            (clients(flooded_at, b"bad", MANY).await, clients(quiet_at, b"good", BEGUN).await);
        let (_keeps, port_of_bad) = port("bad", to, (&all, &turns));
        let (_keeps_too, port_of_good) = port("good", to, (&all, &turns));
        tokio::spawn(receive_on(flooded, port_of_bad));
        tokio::spawn(receive_on(quiet, port_of_good));
        let mut before = 0;
        for of_good in 0..BEGUN {
            let mut said = [0; 4];
            while endpoint.recv(&mut said).await.expect("it comes") != b"good".len() {
                before += 1;
            }
            assert!(before <= 4 * BEGUN, "{before} before number {of_good}");
        }
    }
}
