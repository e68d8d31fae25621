//! How hard the process is pressed, and what was turned away because of it (docs/overload.md).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// How hard the process is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    /// There is enough of everything.
    #[default]
    Normal,
    /// Connections are kept for nobody: who waits for nothing goes, and so does whoever was answered.
    High,
    /// Nothing new is taken either.
    Full,
}

/// Why somebody was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are as many connections as there may be.
    Connections,
    /// File descriptors are running out.
    Descriptors,
    /// [`Pressure::Full`].
    Pressure,
    /// There is no header of the PROXY protocol, or none that can be read.
    Announcement,
}

impl Refusal {
    /// Says so of this peer, where a thread has so many places.
    pub(crate) fn tell(self, peer: IpAddr, places: usize) {
        match self {
            Self::Connections => tracing::warn!(
                places,
                "connections are refused: each thread has so many places, of which those before their first request \
                 from one network have a quarter; raise the limit of open files (ulimit -n) or max-worker-connections \
                 of the ConfigMap (told once a minute; fairway_connections_refused_total counts)"
            ),
            Self::Descriptors => tracing::warn!(
                "connections are refused: file descriptors run out; raise the limit of open files (ulimit -n) (told \
                 once a minute; fairway_connections_refused_total counts)"
            ),
            Self::Pressure => tracing::warn!(
                "connections are refused: memory or file descriptors are used up, see docs/overload.md (told once a \
                 minute; fairway_connections_refused_total counts)"
            ),
            Self::Announcement => tracing::warn!(
                %peer,
                "connections are refused: they begin with no header of the PROXY protocol that can be read, which \
                 use-proxy-protocol of the ConfigMap asks for; switch it on at the load balancer, or off here (told \
                 once a minute; fairway_connections_refused_total counts)"
            ),
        }
    }
}

/// What was turned away, and what broke, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shed {
    /// How hard the process is pressed now.
    pub pressure: Pressure,
    /// Connections dropped since there were as many as there may be.
    pub over_bound: u64,
    /// Connections dropped for want of file descriptors.
    pub over_descriptors: u64,
    /// Connections dropped under [`Pressure::Full`].
    pub over_pressure: u64,
    /// Connections dropped for their header of the PROXY protocol.
    pub unannounced: u64,
    /// Requests answered 503 under [`Pressure::Full`].
    pub requests: u64,
    /// Connections ended under pressure, since they held much and took little.
    pub unread: u64,
    /// Times that no connection could be accepted.
    pub accept_failures: u64,
    /// Connections and streams that ended with a panic.
    pub panics: u64,
}

/// Seconds between two lines about refusals of one kind.
const QUIET: u64 = 60;

/// What all threads know about the load.
#[derive(Debug)]
pub(crate) struct Load {
    start: Instant,
    pressure: AtomicU8,
    /// Whether it is memory that is scarce.
    of_memory: AtomicBool,
    refusals: [AtomicU64; 4],
    /// When refusals of each kind were told last, in seconds since the start and one; zero: never.
    told: [AtomicU64; 4],
    requests: AtomicU64,
    unread: AtomicU64,
    accept_failures: AtomicU64,
    panics: AtomicU64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            pressure: AtomicU8::default(),
            of_memory: AtomicBool::default(),
            refusals: Default::default(),
            told: Default::default(),
            requests: AtomicU64::default(),
            unread: AtomicU64::default(),
            accept_failures: AtomicU64::default(),
            panics: AtomicU64::default(),
        }
    }
}

impl Load {
    pub(crate) fn pressure(&self) -> Pressure {
        match self.pressure.load(Ordering::Relaxed) {
            0 => Pressure::Normal,
            1 => Pressure::High,
            _ => Pressure::Full,
        }
    }

    pub(crate) fn press(&self, pressure: Pressure, of_memory: bool) {
        self.of_memory.store(of_memory, Ordering::Relaxed);
        self.pressure.store(pressure as u8, Ordering::Relaxed);
    }

    /// Whether there is next to no memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.pressure() == Pressure::Full && self.of_memory.load(Ordering::Relaxed)
    }

    /// Counts a refusal; whether it is to be told: of each kind, one in a while is.
    pub(crate) fn refused(&self, refusal: Refusal) -> bool {
        self.refusals[refusal as usize].fetch_add(1, Ordering::Relaxed);
        let now = self.start.elapsed().as_secs() + 1;
        let told = &self.told[refusal as usize];
        let last = told.load(Ordering::Relaxed);
        let is_due = last == 0 || now >= last + QUIET;
        is_due && told.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn refused_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended_unread(&self, connections: usize) {
        self.unread.fetch_add(connections as u64, Ordering::Relaxed);
    }

    /// Notes that no connection could be accepted; whether it was the first time for a while that this happened.
    pub(crate) fn accept_failed(&self) -> bool {
        self.accept_failures.fetch_add(1, Ordering::Relaxed).is_multiple_of(200)
    }

    pub(crate) fn shed(&self) -> Shed {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [connections, descriptors, pressure, announcement] = &self.refusals;
        Shed {
            pressure: self.pressure(),
            over_bound: count(connections),
            over_descriptors: count(descriptors),
            over_pressure: count(pressure),
            unannounced: count(announcement),
            requests: count(&self.requests),
            unread: count(&self.unread),
            accept_failures: count(&self.accept_failures),
            panics: count(&self.panics),
        }
    }

    /// Counts and tells a panic of this connection, if there is one right now; it ends nothing else, since each
    /// connection is a task of its own.
    pub(crate) fn tell_of_panic(&self, peer: SocketAddr, serial: u64) {
        if std::thread::panicking() {
            self.panics.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%peer, connection = serial, "a connection ended with a panic; only that one ends");
        }
    }
}

/// Sees to it that a panic of one stream is counted and told, which is a task of its own, too.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) load: Arc<Load>,
    /// Whose connection it is, and its number.
    pub(crate) peer: SocketAddr,
    pub(crate) serial: u64,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.load.tell_of_panic(self.peer, self.serial);
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Pressure, Refusal, Witness};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use tokio::task::LocalSet;

    #[test]
    fn what_is_turned_away_is_counted_by_its_reason() {
        let load = Load::default();
        load.press(Pressure::Full, true);
        let refused = [Refusal::Connections, Refusal::Pressure, Refusal::Pressure];
        let told = refused.map(|refusal| load.refused(refusal));
        assert_eq!(told, [true, true, false], "a line for each kind, not for each connection");
        load.refused_request();
        assert!(load.accept_failed() && !load.accept_failed());
        let shed = load.shed();
        assert_eq!(shed.pressure, Pressure::Full);
        assert_eq!((shed.over_bound, shed.over_descriptors, shed.over_pressure), (1, 0, 2));
        assert_eq!((shed.requests, shed.accept_failures, shed.panics), (1, 2, 0));
    }

    #[tokio::test]
    async fn a_panic_ends_its_own_task_and_is_counted() {
        let load = Arc::new(Load::default());
        let witness = |serial| Witness {
            load: load.clone(),
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            serial,
        };
        let (first, second) = (witness(1), witness(2));
        let tasks = LocalSet::new();
        let outcomes = tasks.run_until(async move {
            let broken = tokio::task::spawn_local(async move {
                let _witness = first;
                tokio::task::yield_now().await;
                panic!("this is what the test is about");
            });
            let whole = tokio::task::spawn_local(async move {
                let _witness = second;
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                "served"
            });
            let broken: Result<(), _> = broken.await;
            (broken.is_err(), whole.await.ok())
        });
        assert_eq!(outcomes.await, (true, Some("served")));
        assert_eq!(load.shed().panics, 1);
    }
}
