//! Requests that are being answered, counted for each client (ngx_http_limit_conn_module).

use super::{Client, SHARDS, shard};
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The slots of an Ingress. Only clients that have one are remembered, so there are as many as running requests at
/// most.
#[derive(Debug, Default)]
pub struct Slots {
    shards: [Mutex<HashMap<Client, u64>>; SHARDS],
    hasher: RandomState,
}

/// A client's slot; it is given back when this is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    client: Client,
}

impl Slots {
    /// A slot, unless the client has `most` already.
    pub fn take(self: &Arc<Self>, client: Client, most: u64) -> Option<Slot> {
        let mut shard = self.shard(client);
        let taken = shard.get(&client).copied().unwrap_or_default();
        if taken >= most {
            return None;
        }
        shard.insert(client, taken + 1);
        Some(Slot { slots: self.clone(), client })
    }

    fn shard(&self, client: Client) -> MutexGuard<'_, HashMap<Client, u64>> {
        self.shards[shard(&self.hasher, client)].lock().unwrap_or_else(PoisonError::into_inner)
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
        assert!(slots.shards.iter().all(|shard| shard.lock().is_ok_and(|shard| shard.is_empty())));
    }
}
