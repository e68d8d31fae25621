//! TCP and UDP services follow what is in force, whichever engine carries HTTP.

use crate::flags::Listeners;
use crate::room::Room;
use controller::Known;
use exposition::Places;
use std::sync::Arc;
use std::time::Duration;
use stream::{Resolver, Streams};
use tokio::sync::watch;

/// Connections of TCP services and sessions of UDP services at most, in percent of the file descriptors: each takes
/// two, out of those that HTTP leaves.
const SHARE: u64 = 4;
/// How long until a port that could not be opened is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Opens and closes the ports from now on, on the addresses of flags (none: as the ConfigMap says); no port with
/// `--shadow`.
pub(crate) fn follow(
    mut known: watch::Receiver<Arc<Known>>,
    listeners: &Listeners,
    room: Room,
    resolver: &Arc<Resolver>,
) -> Arc<Streams> {
    let addresses = listeners.bind_address.clone();
    let streams = Streams::new(addresses, room.threads, room.share(SHARE).max(1));
    let streams = Arc::new(streams.with_resolver(resolver.clone()));
    if listeners.shadow {
        return streams;
    }
    if let Err(error) = streams.start() {
        tracing::warn!(%error, "cannot start the threads of TCP and UDP services: tried again with the first of them");
    }
    let following = streams.clone();
    tokio::spawn(async move {
        loop {
            if let Ok(Err(_)) = tokio::time::timeout(AGAIN, known.changed()).await {
                return;
            }
            let latest = known.borrow_and_update().clone();
            following.follow(&latest.serving);
        }
    });
    streams
}

/// What counts the sessions of ports for the page.
pub(crate) fn sessions(streams: &Arc<Streams>) -> console::Sessions {
    let streams = streams.clone();
    Box::new(move || {
        let all = streams.traffic().into_iter();
        let sessions = all.map(|(port, _, traffic)| (port, traffic.sessions)).collect();
        let places = Places::of_ports(&streams);
        console::Ports { sessions, places }
    })
}
