//! What limits remember of clients. It lives outside generations: a change of the configuration forgets nothing that
//! still has a limit, as nginx's zones survive a reload.

mod buckets;
mod slots;
mod zones;

pub(crate) use buckets::Buckets;
pub(crate) use slots::{Slot, Slots};
pub(crate) use zones::{ConnectionZone, DeclaredZones, Gate, RequestZone, Zones};

use std::hash::{BuildHasher, RandomState};

/// A client as a limit knows it: its address, or a hash of the text that tells it apart. Every client takes the same
/// room, however long its text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(u128);

impl From<std::net::IpAddr> for Client {
    fn from(address: std::net::IpAddr) -> Self {
        match address {
            std::net::IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            std::net::IpAddr::V6(address) => Self(address.to_bits()),
        }
    }
}

/// Makes clients of texts: two hashes with keys of their own, which nobody outside knows.
#[derive(Clone, Debug, Default)]
pub struct Names([RandomState; 2]);

impl Names {
    /// The client that a text stands for.
    pub fn client(&self, text: &str) -> Client {
        let [high, low] = &self.0;
        Client(u128::from(high.hash_one(text)) << 64 | u128::from(low.hash_one(text)))
    }
}

/// Parts of a zone, each with a lock of its own, so that threads hardly ever meet.
const SHARDS: usize = 16;

/// The part that a client belongs to.
fn shard(hasher: &RandomState, client: Client) -> usize {
    (hasher.hash_one(client) % SHARDS as u64) as usize
}
