//! How many sockets listeners of Gateways may have, and how many a port takes.

use crate::Sockets;
use model::Listeners;

/// What there is, and what a port takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(super) most: u64,
    /// Sockets of a port of HTTP or TLS at one address.
    pub(super) threads: u64,
    /// Addresses of a port that is open at those of the process.
    pub(super) addresses: u64,
}

impl Room {
    /// What there is by what flags and the ConfigMap say.
    pub(crate) fn of(sockets: Sockets, listeners: &Listeners) -> Self {
        let Sockets { most, threads, fixed_threads, addresses } = sockets;
        let own = listeners.threads.map(|own| u64::from(own.get())).filter(|_| !fixed_threads);
        let named = listeners.everywhere().len() as u64;
        // All addresses: those of IPv4 and those of IPv6.
        let all = [addresses, named].into_iter().find(|count| *count > 0).unwrap_or(2);
        Self { most, threads: own.unwrap_or(threads).max(1), addresses: all }
    }

    /// What one namespace may have: in any case one port.
    pub(super) fn half(self) -> u64 {
        (self.most / 2).max(self.threads * self.addresses)
    }
}
