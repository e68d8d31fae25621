//! The sockets that listeners of Gateways take. There are so many for all of them and half as many for one namespace;
//! where there are too few, the newest ports of whoever holds most wait.

use super::reach::{Reach, Taken};
use super::room::Room;
use super::targets::{Port, port_of};
use super::{Around, Gateways, Work};
use objects::ObjectKey;
use objects::gateway::Listener;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a socket is: the port of a Gateway.
type Spot = (ObjectKey, Port);
/// When an object was made, and which.
type Age = (i64, ObjectKey);

/// What listeners ask for.
#[derive(Default)]
struct Claims {
    /// The ports that each namespace asks for, the age of the oldest object that does, and what it takes as that
    /// namespace asks for it: what another one asks for at the same port is nothing that this one pays for.
    namespaces: BTreeMap<Arc<str>, BTreeMap<Spot, (Age, u64)>>,
}

impl Claims {
    fn add(&mut self, spot: Spot, cost: u64, age: Age) {
        let namespace = self.namespaces.entry(age.1.namespace.clone()).or_default();
        let (oldest, most) = namespace.entry(spot).or_insert_with(|| (age.clone(), cost));
        *most = cost.max(*most);
        if age < *oldest {
            *oldest = age;
        }
    }

    /// The ports for which there are no sockets. Those go first with which a namespace holds least, then the older
    /// ones: nobody loses a port to a namespace that holds more.
    fn waiting(&self, room: Room) -> BTreeSet<Spot> {
        let mut order = Vec::new();
        for spots in self.namespaces.values() {
            let own = spots.iter().map(|(spot, (age, cost))| (age, spot, *cost));
            let mut own: Vec<(&Age, &Spot, u64)> = own.collect();
            own.sort();
            let mut held = 0;
            for (age, spot, cost) in own {
                let then = held + cost;
                if then <= room.half() {
                    held = then;
                    order.push((held, age, spot, cost));
                }
            }
        }
        order.sort();
        let (mut taken, mut open) = (0, BTreeSet::new());
        for (_, _, spot, cost) in order {
            if taken + cost <= room.most && open.insert(spot) {
                taken += cost;
            }
        }
        let all = self.namespaces.values().flat_map(BTreeMap::keys);
        all.filter(|spot| !open.contains(spot)).cloned().collect()
    }
}

/// What a port of a listener takes at one address.
fn sockets(listener: &Listener, room: Room) -> u64 {
    if matches!(listener.protocol.as_str(), "TCP" | "UDP") { 1 } else { room.threads }
}

impl Gateways {
    /// Finds the ports for which there are no sockets; their Gateways are touched where that is news.
    pub(super) fn weigh_ports(&mut self, around: &Around<'_>, work: &mut Work) {
        if self.sockets == around.sockets && work.gateways.is_empty() {
            return;
        }
        self.sockets = around.sockets;
        let waiting = around.sockets.map(|room| self.claims(around, room).waiting(room));
        let mut crowded = BTreeMap::<ObjectKey, BTreeSet<Port>>::new();
        for (gateway, port) in waiting.into_iter().flatten() {
            crowded.entry(gateway).or_default().insert(port);
        }
        let before = std::mem::replace(&mut self.crowded, crowded);
        let all = before.keys().chain(self.crowded.keys());
        let news = all.filter(|key| before.get(*key) != self.crowded.get(*key));
        work.gateways.extend(news.cloned());
    }

    /// What the listeners ask for that nothing else refuses.
    fn claims(&self, around: &Around<'_>, room: Room) -> Claims {
        let mut claims = Claims::default();
        let taken = Taken::of(around.options, around.stream_ports, None);
        for (key, gateway) in &around.new.gateways {
            let reach = self.reach(key);
            let addresses = match &reach {
                Reach::Own(Ok(_)) => 1,
                Reach::Behind(_) => room.addresses,
                Reach::Shared | Reach::Own(Err(_)) => continue,
            };
            if !self.is_served(gateway, around) {
                continue;
            }
            let sets = self.sets_of(gateway, around.new);
            let added = sets.iter().map(|set| (&set.object.meta, set.added()));
            for (meta, listeners) in
                [(&gateway.meta, &gateway.listeners[..])].into_iter().chain(added)
            {
                for listener in listeners {
                    let port =
                        port_of(listener).filter(|port| reach.refuses(*port, taken).is_none());
                    let Some(port) = port else { continue };
                    let cost = sockets(listener, room) * addresses;
                    claims.add((key.clone(), port), cost, (meta.created, meta.key.clone()));
                }
            }
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::{Claims, Room};
    use model::Transport;
    use objects::ObjectKey;

    /// Whose ports wait, by namespace and port; `all` are namespace, port, cost and age.
    fn waiting(most: u64, all: &[(&str, u16, u64, i64)]) -> Vec<u16> {
        let mut claims = Claims::default();
        for (namespace, port, cost, created) in all {
            let spot = (ObjectKey::new("op", "g"), (Transport::Tcp, *port));
            claims.add(spot, *cost, (*created, ObjectKey::new(*namespace, "set")));
        }
        let waiting = claims.waiting(Room { most, threads: 2, addresses: 1 });
        waiting.into_iter().map(|(_, (_, port))| port).collect()
    }

    #[test]
    fn a_namespace_has_half_and_its_newest_ports_wait() {
        let all = [("a", 1, 2, 9), ("a", 2, 2, 1), ("a", 3, 2, 5), ("b", 4, 2, 10)];
        assert_eq!(waiting(8, &all), [1]);
        assert_eq!(waiting(16, &all), [0; 0]);
        // What somebody else asks for at the same port costs a namespace nothing.
        let same = [("a", 1, 1, 1), ("a", 2, 1, 2), ("b", 1, 8, 3), ("b", 2, 8, 4)];
        assert_eq!(waiting(8, &same), [0; 0]);
        // What takes less may still have room.
        assert_eq!(waiting(6, &[("a", 1, 2, 1), ("a", 2, 2, 2), ("a", 3, 1, 3)]), [2]);
    }

    #[test]
    fn where_all_are_taken_whoever_holds_most_gives_way_and_a_shared_port_counts_once() {
        let all = [("a", 1, 2, 1), ("a", 2, 2, 1), ("b", 3, 2, 2), ("b", 4, 2, 2), ("c", 5, 2, 9)];
        assert_eq!(waiting(8, &all), [4], "the youngest of those who hold more than one");
        let all = [("a", 1, 2, 1), ("b", 1, 2, 2), ("c", 1, 2, 3), ("d", 2, 2, 4)];
        assert_eq!(waiting(4, &all), [0; 0]);
    }

    #[test]
    fn a_namespace_has_one_port_however_little_there_is() {
        assert_eq!(waiting(2, &[("a", 1, 2, 1), ("a", 2, 2, 2)]), [2]);
    }
}
