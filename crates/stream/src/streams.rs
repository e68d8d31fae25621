//! Every open port of TCP and UDP services: what appears is opened, what goes is closed, the rest is not touched.

use crate::names::{Named, Resolver};
use crate::own;
use crate::reach::Reach;
use crate::room::{Memory, Room};
use crate::traffic::{Counts, Traffic};
use crate::turns::{Turn, Turns};
use crate::waiting::Waiting;
use crate::{ports, tcp, udp};
use model::{Configuration, Endpoints, Global, Stream, StreamPort, StreamShare, Transport};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use system::{sockets, threads};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Sessions of UDP have one place in so many.
const SESSIONS: usize = 4;

/// The ports of TCP and UDP services, on threads of their own.
#[derive(Debug)]
pub struct Streams {
    /// Addresses that flags name; none leaves it to the ConfigMap.
    addresses: Vec<IpAddr>,
    threads: usize,
    /// For connections, over all ports.
    connections: Arc<Room>,
    /// For sessions of UDP, which begin with one datagram from anywhere: they cannot take what connections have.
    sessions: Arc<Room>,
    /// For what is done for datagrams: ports take turns.
    turns: Arc<Turns>,
    /// Datagrams that wait for their sessions.
    waiting: Arc<Waiting>,
    resolver: Arc<Resolver>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// No port opens any more.
    stopped: bool,
    runtime: Option<Runtime>,
    open: BTreeMap<StreamPort, Open>,
    /// What was said of ports that cannot be opened.
    refused: BTreeMap<StreamPort, String>,
}

/// A port, as long as this lives.
#[derive(Debug)]
struct Open {
    plan: watch::Sender<Plan>,
    /// Accepts; what was accepted lives on without it.
    _loops: JoinSet<()>,
}

/// Where a port leads at this moment, and how.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) stream: Arc<Stream>,
    pub(crate) global: Arc<Global>,
    /// What goes to this service.
    pub(crate) counts: Arc<Counts>,
    /// The name that stands for endpoints.
    pub(crate) named: Option<Arc<Named>>,
}

/// Who is behind a stream, as soon as that is known.
pub(crate) async fn endpoints(
    stream: &Stream,
    named: Option<Arc<Named>>,
    turn: &AtomicU64,
) -> Arc<Endpoints> {
    match named {
        Some(named) => named.endpoints().await,
        None if stream.shares.is_empty() => stream.endpoints.clone(),
        None => share(&stream.shares, turn.fetch_add(1, Ordering::Relaxed)),
    }
}

/// The share whose turn it is: turns go evenly over all of them (multiples of the golden ratio), by their weights.
fn share(shares: &[StreamShare], turn: u64) -> Arc<Endpoints> {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let total: u64 = shares.iter().map(|share| u64::from(share.weight)).sum();
    let place = u128::from(turn.wrapping_mul(GOLDEN)) * u128::from(total);
    let mut place = u64::try_from(place >> 64).unwrap_or(0);
    for share in shares {
        match place.checked_sub(share.weight.into()) {
            None => return share.endpoints.clone(),
            Some(rest) => place = rest,
        }
    }
    Arc::default()
}

/// What the loops of one port share.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) port: StreamPort,
    pub(crate) plan: watch::Receiver<Plan>,
    pub(crate) reach: Reach,
    /// Counts what came in, for who has shares.
    pub(crate) next: AtomicU64,
    pub(crate) room: Arc<Room>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) waiting: Arc<Waiting>,
    /// What may be said of it.
    pub(crate) lines: Lines,
}

/// What the log says of a port: who comes to it could write there without end.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Somebody was turned away, or ended for somebody else: there was no place.
    pub(crate) full: Seldom,
    /// No endpoint took a connection.
    pub(crate) untaken: Seldom,
    /// It came back to this process.
    pub(crate) circles: Seldom,
    /// It says to come from a port of this process.
    pub(crate) forged: Seldom,
}

impl Port {
    /// Its next turn among all ports of UDP, for so many moves.
    pub(crate) async fn turn(&self, moves: i64) -> Turn {
        let namespace = self.plan.borrow().stream.namespace.clone();
        self.turns.take(&namespace, self.port, moves).await
    }

    /// Tells that there was no place for somebody, or not any more.
    pub(crate) fn tell_full(&self, namespace: &str) {
        if let Some(refused) = self.lines.full.due() {
            let port = &self.port;
            tracing::warn!(%port, namespace, refused, "turned away or ended for others: as many as may be at a time (docs/limits.md)");
        }
    }

    /// Tells that what comes to it comes back to this process.
    pub(crate) fn tell_circle(&self, service: &str) {
        if let Some(times) = self.lines.circles.due() {
            let port = &self.port;
            tracing::warn!(%port, service, times, "what comes here comes back time and again (told once a minute)");
        }
    }

    /// Tells that a datagram was dropped which says to come from a port of this process.
    pub(crate) fn tell_forged(&self, client: SocketAddr) {
        if let Some(times) = self.lines.forged.due() {
            let port = &self.port;
            tracing::warn!(%port, %client, times, "dropped: it says to come from a port of this process, so its source is forged (told once a minute)");
        }
    }
}

/// A line that is written once a minute.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Option<shares::Lines>>);

impl Seldom {
    /// How often there was reason for the line since it was written last, this time included; none if it is too soon.
    pub(crate) fn due(&self) -> Option<u64> {
        let now = Instant::now().into_std();
        let mut lines = self.0.lock();
        let line = lines.get_or_insert_with(|| shares::Lines::new(now)).line(now, 1)?;
        Some(line.left_out + 1)
    }
}

impl Streams {
    /// Opens nothing yet. At most `most` connections and sessions at a time, on `threads` threads.
    pub fn new(addresses: Vec<IpAddr>, threads: usize, most: usize) -> Self {
        let sessions = most.div_ceil(SESSIONS);
        let connections = Room::new(most.saturating_sub(sessions).max(1));
        let sessions = Room::new(sessions);
        Self {
            addresses,
            threads,
            connections,
            sessions,
            turns: Turns::new(threads),
            waiting: Arc::default(),
            resolver: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// The same, but names are looked up by `resolver`.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Opens and closes ports as `configuration` says. What cannot be opened is logged, and tried again the next time.
    /// Must be called within a tokio runtime, where names are followed.
    pub fn follow(&self, configuration: &Configuration) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.stopped {
            return;
        }
        let wanted = &configuration.streams;
        state.open.retain(|port, _| wanted.contains_key(port));
        state.refused.retain(|port, _| wanted.contains_key(port));
        for (port, stream) in wanted {
            let (global, counts) = (configuration.global.clone(), Arc::default());
            let named = self.named(stream, state.open.get(port));
            let plan = Plan { stream: stream.clone(), global, counts, named };
            if let Some(open) = state.open.get(port) {
                open.plan.send_if_modified(|old| {
                    let same = Arc::ptr_eq(&old.stream, &plan.stream)
                        && Arc::ptr_eq(&old.global, &plan.global);
                    let counts = if old.stream.service == plan.stream.service {
                        old.counts.clone()
                    } else {
                        plan.counts.clone()
                    };
                    *old = Plan { counts, ..plan };
                    !same
                });
                continue;
            }
            match self.open(state, *port, plan) {
                Ok(open) => {
                    tracing::info!(%port, service = %stream.service, "a port is open");
                    state.refused.remove(port);
                    state.open.insert(*port, open);
                }
                Err(error) => {
                    let said = format!(
                        "{error}; {}",
                        sockets::remedy(&error, "choose another one", "bind-address")
                    );
                    if state.refused.get(port) != Some(&said) {
                        tracing::error!(%port, service = %stream.service, "cannot be opened: {said}");
                        state.refused.insert(*port, said);
                    }
                }
            }
        }
    }

    /// The name that a port leads to; where it led there before, it goes on being followed.
    fn named(&self, stream: &Stream, open: Option<&Open>) -> Option<Arc<Named>> {
        let name = stream.external.as_ref()?;
        let before = open.and_then(|open| open.plan.borrow().named.clone());
        let same = before.filter(|before| before.name == *name);
        Some(same.unwrap_or_else(|| {
            Arc::new(Named::new(&self.resolver, &stream.namespace, name.clone()))
        }))
    }

    /// Follows how short memory is; to be called each half second while it is short, and once when it is no longer.
    /// Those who take nothing end, then others of whoever holds most (docs/overload.md).
    pub fn press(&self, memory: Memory) {
        self.connections.press(memory);
        self.sessions.press(memory);
    }

    /// Places for connections and for sessions of UDP: those that are taken, all of them, and how often
    /// somebody got none or lost one to somebody else.
    pub fn places(&self) -> [(usize, usize, u64); 2] {
        [self.connections.in_use(), self.sessions.in_use()]
    }

    /// What went through each open port since it leads to its service.
    pub fn traffic(&self) -> Vec<(StreamPort, Arc<str>, Traffic)> {
        let now = |(port, open): (&StreamPort, &Open)| {
            let plan = open.plan.borrow();
            (*port, plan.stream.service.clone(), plan.counts.now())
        };
        self.state.lock().open.iter().map(now).collect()
    }

    /// Closes all ports; returns once the last connection has ended, or after `deadline`. Sessions of UDP end at once.
    pub async fn drain(&self, deadline: Duration) {
        {
            let mut state = self.state.lock();
            state.stopped = true;
            state.open.clear();
        }
        if tokio::time::timeout(deadline, self.connections.is_empty()).await.is_err() {
            tracing::warn!("connections of TCP services were cut off");
        }
    }

    /// Starts the threads now, and not with the first port: they have the priority of whoever starts them.
    pub fn start(&self) -> io::Result<()> {
        self.runtime(&mut self.state.lock()).map(drop)
    }

    fn runtime<'a>(&self, state: &'a mut State) -> io::Result<&'a Runtime> {
        Ok(match &mut state.runtime {
            Some(runtime) => runtime,
            none => {
                let count = self.threads.max(1);
                threads::ask_for(count)?;
                none.insert(
                    Builder::new_multi_thread()
                        .worker_threads(count)
                        .thread_name("streams")
                        .enable_all()
                        .build()?,
                )
            }
        })
    }

    fn open(&self, state: &mut State, port: StreamPort, plan: Plan) -> io::Result<Open> {
        let addresses = if let Some(address) = port.address {
            vec![address]
        } else if self.addresses.is_empty() {
            plan.global.listeners.everywhere()
        } else {
            self.addresses.clone()
        };
        let ahead = port.address.is_some();
        let sockets = ports::open(port.transport, port.number, &addresses, ahead)?;
        let _inside = self.runtime(state)?.enter();
        let (plan, follow) = watch::channel(plan);
        if ahead {
            own::listens_elsewhere();
        }
        let room = match port.transport {
            Transport::Tcp => self.connections.clone(),
            Transport::Udp => self.sessions.clone(),
        };
        let shared = Arc::new(Port {
            port,
            plan: follow,
            reach: Reach::default(),
            next: AtomicU64::new(0),
            room,
            turns: self.turns.clone(),
            waiting: self.waiting.clone(),
            lines: Lines::default(),
        });
        let mut loops = JoinSet::new();
        for socket in sockets {
            let shared = shared.clone();
            match port.transport {
                Transport::Tcp => {
                    let listener = tokio::net::TcpListener::from_std(socket.into())?;
                    loops.spawn(tcp::accept_on(listener, shared));
                }
                Transport::Udp => {
                    let socket = tokio::net::UdpSocket::from_std(socket.into())?;
                    loops.spawn(udp::receive_on(socket, shared));
                }
            }
        }
        Ok(Open { plan, _loops: loops })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.open.clear();
        // Dropped inside of another event loop, a runtime must not wait for its threads.
        if let Some(runtime) = state.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::share;
    use model::{Endpoints, StreamShare};
    use std::sync::Arc;

    #[test]
    fn turns_go_by_weight_and_nobody_has_one_without() {
        let of = |weight, port| {
            let ready = vec![([192, 0, 2, 1], port).into()];
            StreamShare { weight, endpoints: Arc::new(Endpoints { ready, draining: Vec::new() }) }
        };
        let shares = [of(70, 1), of(30, 2), of(0, 3)];
        let mut counts = [0; 4];
        for turn in 0..1000 {
            counts[usize::from(share(&shares, turn).ready[0].port())] += 1;
        }
        assert!((690..=710).contains(&counts[1]) && counts[3] == 0, "{counts:?}");
        assert!(share(&[of(0, 1)], 7).ready.is_empty());
    }
}
