//! Ports that snippets open and close while the process runs: each thread has sockets of its own, as for the others.

use super::accept::{Accepting, accept_all};
use super::sockets::bind_one;
use crate::worker::Worker;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;

/// The ports of snippets that a thread listens on.
#[derive(Debug, Default)]
pub(crate) struct OwnPorts {
    open: HashMap<SocketAddr, Accepting>,
    /// Those that could not be had; each is told of once, and tried again.
    missing: BTreeSet<SocketAddr>,
}

impl OwnPorts {
    /// Opens and closes what differs from `wanted`.
    pub(crate) fn follow(&mut self, wanted: &BTreeSet<SocketAddr>, worker: &Rc<Worker>) {
        let gone: Vec<_> = self.open.keys().filter(|one| !wanted.contains(one)).copied().collect();
        for address in gone {
            if let Some(accepting) = self.open.remove(&address) {
                tokio::task::spawn_local(accepting.stop());
            }
        }
        self.missing.retain(|address| wanted.contains(address));
        for address in wanted {
            if self.open.contains_key(address) {
                continue;
            }
            match bind_one(*address)
                .and_then(|socket| socket.listen(super::sockets::BACKLOG).map(|()| socket))
            {
                Ok(socket) => {
                    self.missing.remove(address);
                    self.open.insert(*address, accept_all(worker, vec![(vec![socket], false)]));
                }
                Err(error) => {
                    if self.missing.insert(*address) {
                        tracing::error!(%address, %error, "a port of http-snippet cannot be had");
                    }
                }
            }
        }
    }

    /// Whether none is open or wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.missing.is_empty()
    }

    /// Takes what already waits, then closes all of them.
    pub(crate) async fn stop(&mut self) {
        for (_, accepting) in self.open.drain() {
            accepting.stop().await;
        }
    }
}
