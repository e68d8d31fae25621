//! Which listeners want what others have: ports with another protocol, and names. Those of a Gateway go before those of
//! its ListenerSets, and an older set before a younger one, so that nobody takes what somebody else has.

use super::names::covers;
use objects::gateway::Listener;
use std::collections::{BTreeMap, BTreeSet};

/// The listeners of one object.
pub(super) struct Group<'a> {
    /// Its namespace.
    pub(super) namespace: &'a str,
    /// Its listeners.
    pub(super) listeners: &'a [Listener],
    /// Whether each of them could be served, for all that it says itself. One that cannot takes its port from nobody.
    pub(super) usable: Vec<bool>,
}

/// A port, and whether it is one of UDP, which is not one of TCP.
type Port = (u16, bool);

/// What is taken by objects that go before.
#[derive(Default)]
struct Taken<'a> {
    protocols: BTreeMap<Port, BTreeSet<&'a str>>,
    /// With their protocol, as of two on a port none may be served.
    names: BTreeSet<(Port, &'a str, String)>,
    /// Wildcards of ListenerSets, with their namespace.
    wildcards: BTreeMap<(Port, &'a str, String), &'a str>,
}

/// What keeps a listener from being served, and whether its name is its own all the same: a mistake of its owner gives
/// nobody what he has.
type Found = (Option<&'static str>, bool);

/// What becomes of each listener; the Gateway's own stand first, then those of its sets by precedence. Of two listeners
/// of one object none is served, of two objects that which goes before. `number` says which socket a port means.
pub(super) fn conflicts(groups: &[Group<'_>], number: impl Fn(u16) -> u16) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut taken = Taken::default();
    for (place, group) in groups.iter().enumerate() {
        let port = |listener: &Listener| (number(listener.port), listener.protocol == "UDP");
        let all = || group.listeners.iter().zip(group.usable.iter().copied());
        let lost = all().map(|one| taken.conflict(port(one.0), one, group.namespace));
        let lost: Vec<_> = lost.collect();
        let first = found.len();
        for (index, own) in all().enumerate() {
            let others = all().zip(&lost).enumerate();
            // Whoever lost already is in nobody's way.
            let others = others.filter(|(other, (_, lost))| *other != index && lost.is_none());
            let others = others.map(|(_, (other, _))| other);
            let conflict = lost[index].or_else(|| within(own, others, port));
            found.push((conflict, lost[index].is_none() && group.usable[index]));
        }
        for (index, listener) in group.listeners.iter().enumerate() {
            let (conflict, keeps) = found[first + index];
            // What a Gateway says of itself is never anybody else's to say.
            if keeps && (place == 0 || conflict != Some("ProtocolConflict")) {
                taken.protocols.entry(port(listener)).or_default().insert(&listener.protocol);
            }
            if place == 0 || keeps {
                taken.take(port(listener), listener, (place > 0).then_some(group.namespace));
            }
        }
    }
    found
}

/// Whether others of the same object want the same port in another way, or the same name there.
fn within<'a>(
    (own, usable): (&Listener, bool),
    others: impl Iterator<Item = (&'a Listener, bool)> + Clone,
    port: impl Fn(&Listener) -> Port,
) -> Option<&'static str> {
    let mut others = others.filter(|(other, _)| port(other) == port(own));
    // A protocol that is not supported anyway makes no conflict: the one that is gets the port.
    let mut served = others.clone().filter(|(_, other_usable)| usable && *other_usable);
    if served.any(|(other, _)| other.protocol != own.protocol) {
        return Some("ProtocolConflict");
    }
    others
        .any(|(other, _)| other.protocol == own.protocol && name(other) == name(own))
        .then_some("HostnameConflict")
}

fn name(listener: &Listener) -> String {
    listener.hostname.as_deref().unwrap_or_default().to_ascii_lowercase()
}

impl<'a> Taken<'a> {
    fn take(&mut self, port: Port, listener: &'a Listener, set: Option<&'a str>) {
        let (name, protocol) = (name(listener), &*listener.protocol);
        if let Some(namespace) = set.filter(|_| name.starts_with('*')) {
            self.wildcards.entry((port, protocol, name.clone())).or_insert(namespace);
        }
        self.names.insert((port, protocol, name));
    }

    fn conflict(
        &self,
        port: Port,
        (own, usable): (&'a Listener, bool),
        namespace: &str,
    ) -> Option<&'static str> {
        let mut protocols = self.protocols.get(&port).into_iter().flatten();
        if usable && protocols.any(|protocol| **protocol != *own.protocol) {
            return Some("ProtocolConflict");
        }
        let (name, protocol) = (name(own), &*own.protocol);
        let is_covered = |at: usize| {
            let wide = format!("*{}", &name[at..]);
            let owner = self.wildcards.get(&(port, protocol, wide.clone()));
            owner.is_some_and(|owner| *owner != namespace) && covers(&wide, &name)
        };
        let is_anothers = name.match_indices('.').any(|(at, _)| is_covered(at));
        (self.names.contains(&(port, protocol, name)) || is_anothers).then_some("HostnameConflict")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::gateway::FromNamespaces;

    fn listener(protocol: &str, port: u16, hostname: &str) -> Listener {
        Listener {
            name: String::new(),
            hostname: (!hostname.is_empty()).then(|| hostname.to_owned()),
            port,
            protocol: protocol.to_owned(),
            tls: None,
            namespaces: FromNamespaces::Same,
            kinds: Vec::new(),
            asks_filters: false,
        }
    }

    /// Protocol, port and host name.
    type Asked<'a> = (&'a str, u16, &'a str);

    /// Letters for what becomes of `protocol port hostname`, object by object.
    fn told(objects: &[(&str, &[Asked<'_>])]) -> String {
        let letter = |found: Option<&str>| {
            found.map_or('-', |reason| if reason.starts_with('P') { 'P' } else { 'H' })
        };
        found(objects).into_iter().map(|(found, _)| letter(found)).collect()
    }

    fn found(objects: &[(&str, &[Asked<'_>])]) -> Vec<Found> {
        let read: Vec<(&str, Vec<Listener>)> = objects
            .iter()
            .map(|(namespace, all)| {
                (*namespace, all.iter().map(|one| listener(one.0, one.1, one.2)).collect())
            })
            .collect();
        let groups: Vec<Group<'_>> = read
            .iter()
            .map(|(namespace, listeners)| Group {
                namespace,
                listeners,
                usable: listeners.iter().map(|one| one.protocol != "NONE").collect(),
            })
            .collect();
        conflicts(&groups, |port| port)
    }

    #[test]
    fn whoever_goes_before_keeps_port_and_name() {
        let gateway: &[_] = &[("HTTP", 80, "a.test"), ("UDP", 53, "")];
        let first: &[_] = &[("HTTP", 80, "A.test"), ("HTTP", 80, "b.test"), ("TCP", 53, "")];
        let second: &[_] = &[("TCP", 80, ""), ("HTTP", 80, "b.test"), ("HTTP", 8080, "a.test")];
        assert_eq!(told(&[("g", gateway), ("x", first), ("y", second)]), "--H--PH-");
    }

    #[test]
    fn of_one_object_none_of_two_is_served_and_neither_is_in_the_way_of_other_names() {
        let both: &[_] = &[("HTTP", 80, ""), ("HTTPS", 80, "")];
        let wanted: &[_] = &[("HTTP", 80, "a.test"), ("HTTP", 80, "")];
        assert_eq!(told(&[("g", &[]), ("x", both), ("y", wanted)]), "PP-H");
        assert_eq!(
            told(&[("g", both), ("x", &[("HTTP", 80, "a.test")])]),
            "PPP",
            "a Gateway's port is its own"
        );
        let unknown: &[_] = &[("NONE", 80, "")];
        let wanted: &[_] = &[("HTTP", 80, "")];
        assert_eq!(told(&[("g", &[]), ("x", unknown), ("y", wanted)]), "--");
        let beside: &[_] = &[("NONE", 80, ""), ("HTTP", 80, "")];
        let named: &[_] = &[("NONE", 80, "a.test")];
        assert_eq!(told(&[("g", beside), ("x", named), ("y", wanted)]), "---H");
        assert_eq!(told(&[("g", unknown), ("x", &beside[1..]), ("y", wanted)]), "--H");
    }

    #[test]
    fn a_mistake_gives_nobody_a_name_away_and_whoever_lost_has_none() {
        let keeps = |objects: &[(&str, &[Asked<'_>])]| -> String {
            found(objects).iter().map(|(_, keeps)| if *keeps { 'k' } else { '-' }).collect()
        };
        let twice: &[_] = &[("HTTP", 80, "*.a.test"), ("HTTP", 80, "*.A.test")];
        let both: &[_] = &[("HTTP", 80, "*.a.test"), ("TCP", 80, "")];
        let wanted: &[_] = &[("HTTP", 80, "x.a.test"), ("HTTP", 80, "*.a.test"), ("HTTP", 80, "")];
        for mistake in [twice, both] {
            let objects: &[_] = &[("g", &[][..]), ("x", mistake), ("y", wanted)];
            assert_eq!(told(objects)[2..], *"HH-");
            assert_eq!(keeps(objects), "kk--k");
            assert_eq!(keeps(&[("g", mistake)]), "kk");
        }
        assert_eq!(keeps(&[("g", &[]), ("x", &[("NONE", 80, "a.test")])]), "-");
    }

    #[test]
    fn no_set_takes_names_out_of_an_older_wildcard_of_another_namespace() {
        let wide: &[_] = &[("HTTP", 80, "*.a.test")];
        let narrow: &[_] =
            &[("HTTP", 80, "x.y.a.test"), ("HTTP", 80, "*.y.a.test"), ("HTTP", 80, "a.test")];
        assert_eq!(told(&[("g", &[]), ("x", wide), ("y", narrow)]), "-HH-");
        assert_eq!(
            told(&[("g", &[]), ("x", wide), ("x", narrow)]),
            "----",
            "in one namespace they may"
        );
        assert_eq!(told(&[("g", wide), ("y", narrow)]), "----", "a Gateway lets sets in for that");
        assert_eq!(
            told(&[("g", &[]), ("y", narrow), ("x", wide)]),
            "----",
            "what is more special stays"
        );
    }
}
