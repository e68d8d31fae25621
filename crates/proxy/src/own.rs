//! Connections of this process to its own machine. A request that comes over one of them was sent by this process.

use crate::connection::canonical;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;

/// Of the process as a whole: a connection leaves on one thread and comes in on another.
static OWN: Mutex<Option<HashSet<SocketAddr>>> = Mutex::new(None);

/// A connection to this machine, as long as it stands.
#[derive(Debug)]
pub struct Own(SocketAddr);

impl Own {
    /// Notes a connection if it leads to this machine.
    pub fn of(tcp: &TcpStream) -> Option<Self> {
        let (from, to) = (tcp.local_addr().ok()?, tcp.peer_addr().ok()?);
        if from.ip() != to.ip() {
            return None;
        }
        let from = canonical(from);
        all().get_or_insert_default().insert(from);
        Some(Self(from))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(all) = all().as_mut() {
            all.remove(&self.0);
        }
    }
}

/// Whether a client is this process itself.
pub fn is_own(peer: SocketAddr) -> bool {
    all().as_ref().is_some_and(|all| all.contains(&canonical(peer)))
}

fn all() -> MutexGuard<'static, Option<HashSet<SocketAddr>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}
