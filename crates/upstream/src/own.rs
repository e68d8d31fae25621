//! Connections of this process to its own machine. A request that comes over one of them was sent by this process: it
//! goes round, and not for ever.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;
use wire::canonical;

/// Times that a request may come back: to an authenticator behind the same address, and to one of that.
const MOST: u8 = 5;

/// How often the request on a connection has come back, as whoever sent it says.
pub type Turns = Arc<AtomicU8>;

/// Of the process as a whole: a connection leaves on one thread and comes in on another.
static OWN: Mutex<Option<HashMap<SocketAddr, Turns>>> = Mutex::new(None);

/// A connection to this machine, as long as it stands.
#[derive(Debug)]
pub struct Own {
    from: SocketAddr,
    turns: Turns,
}

impl Own {
    /// Notes a connection if it leads to this machine.
    pub fn of(tcp: &TcpStream) -> Option<Self> {
        let (from, to) = (tcp.local_addr().ok()?, tcp.peer_addr().ok()?);
        if from.ip() != to.ip() {
            return None;
        }
        let (from, turns) = (canonical(from), Turns::new(AtomicU8::new(1)));
        all().get_or_insert_default().insert(from, turns.clone());
        Some(Self { from, turns })
    }

    /// Whether a request that has come back so often may go over it; then the other end knows of one turn more.
    pub fn carries(&self, turns: u8) -> bool {
        let carries = turns < MOST;
        if carries {
            self.turns.store(turns + 1, Ordering::Relaxed);
        }
        carries
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(all) = all().as_mut() {
            all.remove(&self.from);
        }
    }
}

/// How often requests of a client have come back, if it is this process itself. It is in the books before it sends.
pub fn turns_of(peer: SocketAddr) -> Option<Turns> {
    all().as_ref().and_then(|all| all.get(&canonical(peer)).cloned())
}

fn all() -> MutexGuard<'static, Option<HashMap<SocketAddr, Turns>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}
