//! Requests that are being answered, counted for each client (ngx_http_limit_conn_module).

use super::{Client, SHARDS, shard};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The slots of an Ingress, or of a zone that a snippet declares. Only clients that have one are remembered, so there
/// are as many as running requests at most.
#[derive(Debug)]
pub struct Slots {
    shards: [Mutex<HashMap<Client, u64>>; SHARDS],
    /// Clients that a shard remembers; another one gets no slot.
    room: usize,
    hasher: RandomState,
    /// Clients that got no slot for want of room.
    full: Arc<AtomicU64>,
}

/// A client's slot; it is given back when this is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    client: Client,
    /// Those of other limits that the same request holds.
    beside: Option<Box<Self>>,
}

impl Slot {
    /// This slot, and with it what else the request holds.
    pub fn beside(mut self, other: Option<Self>) -> Self {
        let mut last = &mut self;
        while last.beside.is_some() {
            last = last.beside.as_mut().expect("it was just looked at");
        }
        last.beside = other.map(Box::new);
        self
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::of(usize::MAX)
    }
}

impl Slots {
    /// Slots for so many clients at a time, one in each shard at least.
    pub fn of(clients: usize) -> Self {
        let room = (clients / SHARDS).max(1);
        Self { shards: Default::default(), room, hasher: RandomState::new(), full: Arc::default() }
    }

    /// The same, where those that get none for want of room are counted there.
    pub(super) fn counted(self, full: Arc<AtomicU64>) -> Self {
        Self { full, ..self }
    }

    /// How many clients have some, and how many may.
    pub(super) fn room(&self) -> (usize, usize) {
        let all = self.shards.iter();
        let taken = all.map(|shard| shard.lock().len());
        (taken.sum(), self.room.saturating_mul(SHARDS))
    }

    /// A slot, unless the client has `most` already.
    pub fn take(self: &Arc<Self>, client: Client, most: u64) -> Option<Slot> {
        let mut shard = self.shard(client);
        let taken = shard.get(&client).copied().unwrap_or_default();
        if taken >= most {
            return None;
        }
        if taken == 0 && shard.len() >= self.room {
            self.full.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        shard.insert(client, taken + 1);
        Some(Slot { slots: self.clone(), client, beside: None })
    }

    fn shard(&self, client: Client) -> MutexGuard<'_, HashMap<Client, u64>> {
        self.shards[shard(&self.hasher, client)].lock()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut shard = self.slots.shard(self.client);
        match shard.get_mut(&self.client) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(shard.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Client, Slots};
    use std::sync::Arc;

    #[test]
    fn a_slot_is_free_again_once_it_is_dropped() {
        let slots = Arc::new(Slots::default());
        let (me, other) = (Client(1), Client(2));
        let first = slots.take(me, 2).expect("the first of two");
        let second = slots.take(me, 2).expect("the second of two");
        assert!(slots.take(me, 2).is_none());
        assert!(slots.take(other, 2).is_some());
        drop(first);
        let third = slots.take(me, 2).expect("the one that was given back");
        assert!(slots.take(me, 2).is_none());
        drop((second, third));
        assert!(slots.shards.iter().all(|shard| shard.lock().is_empty()));
    }

    #[test]
    fn slots_that_are_held_as_one_are_given_back_as_one() {
        let [one, two] = [(), ()].map(|()| Arc::new(Slots::default()));
        let take = |slots: &Arc<Slots>| slots.take(Client(1), 1);
        let held = take(&one).expect("the first").beside(take(&two));
        assert!(take(&one).is_none() && take(&two).is_none());
        drop(held);
        assert!(take(&one).is_some() && take(&two).is_some());
    }

    #[test]
    fn a_zone_that_is_full_has_no_slot_for_somebody_new() {
        let slots = Arc::new(Slots::of(1));
        // So many that each shard meets one, whatever the hasher is: of a hundred, one run in forty left a shard empty.
        let held: Vec<_> = (0..5000).filter_map(|client| slots.take(Client(client), 2)).collect();
        assert_eq!(held.len(), super::SHARDS);
        let known = held[0].client;
        assert!(slots.take(known, 2).is_some());
    }
}
