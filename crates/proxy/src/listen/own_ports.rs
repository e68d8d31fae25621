//! Ports that snippets and Gateways open and close while the process runs: each thread has sockets of its own, as for
//! the others.

use super::accept::{Accepting, Entrance, accept_all};
use crate::worker::Worker;
use rustix::io::Errno;
use socket2::Socket;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use system::sockets::{self, BACKLOG, EVERYWHERE, Opening, lacks_ipv6};
use tokio::sync::OwnedSemaphorePermit;
use wire::descriptors::client_fits;

/// What to do where there are too few files.
const MORE_FILES: &str = "use fewer ports, or raise the limit of open files";

/// The ports of snippets and Gateways that a thread listens on.
#[derive(Debug, Default)]
pub(crate) struct OwnPorts {
    open: HashMap<SocketAddr, (Entrance, Accepting, OwnedSemaphorePermit)>,
    /// Those that could not be had; each is told of once, and tried again.
    missing: BTreeSet<SocketAddr>,
}

impl OwnPorts {
    /// Opens and closes what differs from `wanted`.
    pub(crate) fn follow(&mut self, wanted: &BTreeMap<SocketAddr, Entrance>, worker: &Rc<Worker>) {
        let open = self.open.iter().map(|(address, (entrance, ..))| (address, entrance));
        let gone = open.filter(|(address, entrance)| wanted.get(address) != Some(entrance));
        let gone: Vec<_> = gone.map(|(address, _)| *address).collect();
        for address in gone {
            if let Some((_, accepting, _)) = self.open.remove(&address) {
                tokio::task::spawn_local(accepting.stop());
            }
        }
        self.missing.retain(|address| wanted.contains_key(address));
        for (address, entrance) in wanted {
            if self.open.contains_key(address) {
                continue;
            }
            // A machine may get the address of a Gateway later.
            let of_gateway = matches!(entrance, Entrance::Gateway { .. });
            let ahead = of_gateway && !address.ip().is_unspecified();
            match listen(Opening { ahead, ..Opening::SHARED }, *address, worker) {
                Ok((socket, permit)) => {
                    self.missing.remove(address);
                    let accepting = accept_all(worker, vec![(vec![socket], *entrance)]);
                    self.open.insert(*address, (*entrance, accepting, permit));
                }
                // A machine without IPv6 is served over IPv4 alone.
                Err(error) if address.ip() == EVERYWHERE[1] && lacks_ipv6(&error) => {}
                Err(error) => {
                    if self.missing.insert(*address) {
                        let of = if of_gateway { "a Gateway" } else { "http-snippet" };
                        let remedy = sockets::remedy(&error, "choose another one", "the address");
                        let files = error.raw_os_error() == Some(Errno::MFILE.raw_os_error());
                        let remedy = if files { MORE_FILES.to_owned() } else { remedy };
                        tracing::error!(%address, "a port of {of} cannot be had: {error}; {remedy}");
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
        for (_, (_, accepting, _)) in self.open.drain() {
            accepting.stop().await;
        }
    }
}

/// A socket that listens. Whoever asks for ports leaves files to connections and to the process itself.
fn listen(
    opening: Opening,
    address: SocketAddr,
    worker: &Worker,
) -> io::Result<(Socket, OwnedSemaphorePermit)> {
    let full = || io::Error::from(Errno::MFILE);
    let permit = worker.shared.sockets.clone().try_acquire_owned().map_err(|_| full())?;
    let socket = opening.bind(address)?;
    if !client_fits(&socket) {
        return Err(full());
    }
    socket.listen(BACKLOG)?;
    Ok((socket, permit))
}
