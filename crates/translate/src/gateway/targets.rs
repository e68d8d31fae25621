//! The ports of this process that the Services of Gateways lead to (`--gateway-services=load-balancer`). What a Service
//! says is what counts, so that all replicas have the same ports, and a Gateway keeps its own over restarts; what it
//! should say is chosen for those that it does not know yet.

use super::addresses::number;
use super::service_names::service_name;
use model::Transport;
use objects::gateway::{Gateway, Listener};
use objects::{InText, ObjectKey, PortRef, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Ports of a Service at most.
pub(super) const PORTS: usize = 100;

/// The port of a listener, as clients know it.
pub(super) type Port = (Transport, u16);

/// The ports behind the Service of a Gateway.
pub(super) type Targets = BTreeMap<Port, Target>;

/// The port of this process for a port of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The Service leads there.
    Open(u16),
    /// It is to lead there, and does not yet.
    Wanted(u16),
    /// There is none for it, and why.
    Refused(&'static str),
}

impl Target {
    /// The port, if there is one.
    pub(super) fn number(&self) -> Option<u16> {
        match self {
            Self::Open(number) | Self::Wanted(number) => Some(*number),
            Self::Refused(_) => None,
        }
    }
}

/// A Gateway that asks for ports.
pub(super) struct Asking<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    /// Its own ones first.
    pub(super) ports: Vec<Port>,
    /// The Service that was made for it.
    pub(super) service: Option<&'a Service>,
}

/// What there is to give.
pub(super) struct Supply {
    /// `--gateway-target-ports`.
    pub(super) range: RangeInclusive<u16>,
    /// How many the Gateways of a namespace may have.
    pub(super) most: u64,
    /// To these the EndpointSlices of these Services lead still: nobody new gets one, or clients would come along.
    pub(super) led_to: BTreeMap<u16, BTreeSet<ObjectKey>>,
    /// How many of these are those of Gateways that are gone, by namespace: they count as if these were there.
    pub(super) left: BTreeMap<Arc<str>, u64>,
}

/// The port of a listener whose protocol is known.
pub(super) fn port_of(listener: &Listener) -> Option<Port> {
    let transport = match listener.protocol.as_str() {
        "HTTP" | "HTTPS" | "TLS" | "TCP" => Transport::Tcp,
        "UDP" => Transport::Udp,
        _ => return None,
    };
    Some((transport, listener.port))
}

/// How a Service names what carries a port.
pub(super) fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

struct Giving<'a> {
    supply: &'a Supply,
    taken: BTreeSet<u16>,
    counts: BTreeMap<Arc<str>, u64>,
    given: BTreeMap<ObjectKey, Targets>,
}

/// How good a Gateway's claim is to the port to which its Service leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It had it before.
    Had,
    /// EndpointSlices of that Service, which nobody but Fairway writes, lead there as well.
    Leads,
    /// The Service says so, which its owner may write, and nobody else's slices lead there.
    Says,
    /// The clients of somebody else are led there.
    None,
}

/// Gives each Gateway its ports. Of two whose Services lead to the same one the Gateway has it that had it `before`,
/// else the one whose EndpointSlices lead there, else the older one.
pub(super) fn assign(
    mut asking: Vec<Asking<'_>>,
    supply: &Supply,
    before: impl Fn(&ObjectKey, Port) -> Option<Target>,
) -> BTreeMap<ObjectKey, Targets> {
    asking.sort_by_key(|one| (one.gateway.meta.created, InText(one.gateway.meta.key.clone())));
    let (taken, counts, given) = (BTreeSet::new(), supply.left.clone(), BTreeMap::new());
    let mut giving = Giving { supply, taken, counts, given };
    let each = |one: &Asking<'_>| one.ports.iter().copied().take(PORTS).collect::<Vec<_>>();
    for claim in [Claim::Had, Claim::Leads, Claim::Says] {
        for one in &asking {
            for port in each(one) {
                let Some(number) = one.named(port) else { continue };
                let target = Target::Open(number);
                let had = before(&one.gateway.meta.key, port).as_ref() == Some(&target);
                let found = if had { Claim::Had } else { supply.claim(one.gateway, number) };
                if claim == found {
                    giving.give(one, port, target);
                }
            }
        }
    }
    for one in &asking {
        for port in each(one) {
            let known = before(&one.gateway.meta.key, port).and_then(|target| target.number());
            if let Some(number) = known {
                giving.give(one, port, Target::Wanted(number));
            }
        }
    }
    for one in &asking {
        for port in each(one) {
            giving.find(one, port);
        }
        let given = giving.given.entry(one.gateway.meta.key.clone()).or_default();
        for port in one.ports.iter().skip(PORTS) {
            given.insert(*port, Target::Refused("a Service has 100 ports; use fewer"));
        }
    }
    giving.given
}

impl Supply {
    /// The claim of a Gateway that did not have this port before.
    fn claim(&self, gateway: &Gateway, number: u16) -> Claim {
        let ObjectKey { namespace, name } = &gateway.meta.key;
        let own = ObjectKey::new(namespace.clone(), service_name(name));
        match self.led_to.get(&number) {
            None => Claim::Says,
            Some(services) if services.contains(&own) => Claim::Leads,
            Some(_) => Claim::None,
        }
    }
}

impl Asking<'_> {
    /// Where the Service leads from a port.
    fn named(&self, (transport, port): Port) -> Option<u16> {
        let mut ports = self.service?.ports.iter();
        let found = ports.find(|one| one.port == port && one.protocol == protocol(transport))?;
        match found.target {
            Some(PortRef::Number(number)) => Some(number),
            _ => None,
        }
    }
}

impl Giving<'_> {
    /// Gives a port if it is free, unless the listener has one already.
    fn give(&mut self, to: &Asking<'_>, port: Port, target: Target) {
        let ObjectKey { namespace, .. } = &to.gateway.meta.key;
        let count = self.counts.entry(namespace.clone()).or_default();
        let given = self.given.entry(to.gateway.meta.key.clone()).or_default();
        let free =
            |number: &u16| self.supply.range.contains(number) && !self.taken.contains(number);
        let Some(number) = target.number().filter(free) else { return };
        if *count < self.supply.most && !given.contains_key(&port) {
            *count += 1;
            given.insert(port, target);
            self.taken.insert(number);
        }
    }

    /// Chooses a port for a listener that has none.
    fn find(&mut self, to: &Asking<'_>, port: Port) {
        let key = &to.gateway.meta.key;
        if self.given.get(key).is_some_and(|given| given.contains_key(&port)) {
            return;
        }
        let refused = if self.counts.get(&key.namespace).copied() >= Some(self.supply.most) {
            "the Gateways of its namespace have as many ports as they may: remove listeners, or raise gateway-ports in \
             namespace-budget of the ConfigMap"
        } else if let Some(number) = self.fresh(key, port) {
            return self.give(to, port, Target::Wanted(number));
        } else {
            "every port of --gateway-target-ports is taken: name more of them, or remove listeners"
        };
        self.given.entry(key.clone()).or_default().insert(port, Target::Refused(refused));
    }

    /// A free port: the first one from the place in the range on that a name suggests.
    fn fresh(&self, key: &ObjectKey, port: Port) -> Option<u16> {
        let (first, last) = (*self.supply.range.start(), *self.supply.range.end());
        let all = usize::from(last.checked_sub(first)?) + 1;
        let from = (number(key) + u128::from(port.1)) % (all as u128);
        let from = usize::try_from(from).unwrap_or_default();
        let mut numbers = (0..all).map(|step| (from + step) % all);
        let number = |place: usize| first.saturating_add(u16::try_from(place).unwrap_or_default());
        let is_free =
            |found: &u16| !self.taken.contains(found) && !self.supply.led_to.contains_key(found);
        numbers.find_map(|place| Some(number(place)).filter(is_free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::{Meta, Snapshot};
    use std::path::Path;

    fn gateways(names: &[(&str, &str)]) -> Vec<Arc<Gateway>> {
        let text = names.iter().map(|(namespace, name)| {
            format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
                 metadata: {{namespace: {namespace}, name: {name}}}\nspec: {{gatewayClassName: c}}\n"
            )
        });
        let text = text.collect::<Vec<_>>().join("---\n");
        let found: Snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        found.gateways.values().cloned().collect()
    }

    fn service(port: u16, target: u16) -> Service {
        let text = format!(
            r#"{{"metadata": {{"name": "s"}}, "spec": {{"ports": [{{"port": {port}, "targetPort": {target}}}]}}}}"#
        );
        Service::clone(&objects::parse_service(&text).expect("a Service"))
    }

    fn aged(gateway: &Arc<Gateway>, created: i64) -> Arc<Gateway> {
        let mut gateway = Gateway::clone(gateway);
        gateway.meta = Meta { created, ..gateway.meta };
        Arc::new(gateway)
    }

    /// Services of a namespace.
    fn led(names: &[&str]) -> BTreeSet<ObjectKey> {
        names.iter().map(|name| ObjectKey::new("a", *name)).collect()
    }

    const HTTP: Port = (Transport::Tcp, 80);

    fn of(given: &BTreeMap<ObjectKey, Targets>, gateway: &Gateway) -> Target {
        given[&gateway.meta.key][&HTTP].clone()
    }

    #[test]
    fn what_services_say_goes_before_what_is_chosen_and_the_older_one_has_what_two_want() {
        let all = gateways(&[("a", "new"), ("a", "old"), ("a", "fresh")]);
        let [fresh, new, old] = [&all[0], &all[1], &all[2]];
        let (new, old) = (aged(new, 9), aged(old, 1));
        let held = service(80, 100);
        let asking = |gateway, service| Asking { gateway, ports: vec![HTTP], service };
        let supply =
            Supply { range: 100..=102, most: 9, led_to: BTreeMap::new(), left: BTreeMap::new() };
        let each =
            || vec![asking(fresh, None), asking(&new, Some(&held)), asking(&old, Some(&held))];
        let given = assign(each(), &supply, |_, _| None);
        assert_eq!(of(&given, &old), Target::Open(100));
        for (name, one) in [("fresh", fresh), ("new", &new)] {
            assert!(matches!(of(&given, one), Target::Wanted(101 | 102)), "{name}: {given:?}");
        }
        // Whoever had it keeps it, and what was chosen stays chosen.
        let before = |key: &ObjectKey, _| {
            Some(match &*key.name {
                "new" => Target::Open(100),
                _ => Target::Wanted(102),
            })
        };
        let given = assign(each(), &supply, before);
        assert_eq!(of(&given, &new), Target::Open(100));
        assert_eq!(of(&given, fresh), Target::Wanted(102), "it is the older one of two");
        assert_eq!(of(&given, &old), Target::Wanted(101));
    }

    #[test]
    fn a_full_range_a_full_namespace_and_ports_outside_of_the_range_leave_nothing() {
        let all = gateways(&[("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]);
        let asking = |service| {
            let asking =
                all.iter().map(move |gateway| Asking { gateway, ports: vec![HTTP], service });
            asking.collect::<Vec<_>>()
        };
        let refused = |supply: &Supply, service| {
            let given = assign(asking(service), supply, |_, _| None);
            let told = all.iter().map(|gateway| match of(&given, gateway) {
                Target::Refused(why) => why.split(' ').take(2).collect::<Vec<_>>().join(" "),
                _ => String::new(),
            });
            told.collect::<Vec<_>>()
        };
        let outside = service(80, 99);
        let in_all = ["", "the Gateways", "", "the Gateways"];
        assert_eq!(
            refused(
                &Supply {
                    range: 100..=109,
                    most: 1,
                    led_to: BTreeMap::new(),
                    left: BTreeMap::new()
                },
                Some(&outside)
            ),
            in_all
        );
        assert_eq!(
            refused(
                &Supply {
                    range: 100..=101,
                    most: 9,
                    led_to: BTreeMap::new(),
                    left: BTreeMap::new()
                },
                None
            ),
            ["", "", "every port", "every port"]
        );
        let last = Supply {
            range: u16::MAX..=u16::MAX,
            most: 9,
            led_to: BTreeMap::new(),
            left: BTreeMap::new(),
        };
        assert_eq!(refused(&last, None)[0], "");
    }

    #[test]
    fn nobody_new_gets_a_port_to_which_somebody_s_clients_are_led_still() {
        let all = gateways(&[("a", "one")]);
        let asking = |service| vec![Asking { gateway: &all[0], ports: vec![HTTP], service }];
        let supply = Supply {
            range: 100..=101,
            most: 9,
            led_to: BTreeMap::from([(100, led(&["gateway-one"]))]),
            left: BTreeMap::new(),
        };
        let given = assign(asking(None), &supply, |_, _| None);
        assert_eq!(of(&given, &all[0]), Target::Wanted(101));
        // Whoever has it, as its Service says, keeps it.
        let own = service(80, 100);
        let given = assign(asking(Some(&own)), &supply, |_, _| None);
        assert_eq!(of(&given, &all[0]), Target::Open(100));
        let none = Supply { range: 100..=100, ..supply };
        let given = assign(asking(None), &none, |_, _| None);
        assert!(matches!(of(&given, &all[0]), Target::Refused(_)));
    }

    #[test]
    fn a_port_to_which_somebody_s_clients_are_led_is_nobody_else_s_whatever_services_say() {
        let all = gateways(&[("a", "old"), ("a", "one")]);
        let [old, one] = [&aged(&all[0], 1), &aged(&all[1], 9)];
        let same = service(80, 100);
        let supply = |led_to| Supply { range: 100..=102, most: 9, led_to, left: BTreeMap::new() };
        // As at a start, where nobody had anything before.
        let given = |supply: &Supply, owner: Option<&'_ Service>| {
            let asking = |gateway, service| Asking { gateway, ports: vec![HTTP], service };
            let given =
                assign(vec![asking(old, Some(&same)), asking(one, owner)], supply, |_, _| None);
            [of(&given, old), of(&given, one)]
        };
        let own =
            supply(BTreeMap::from([(100, led(&["gateway-one"])), (101, led(&["gateway-old"]))]));
        assert_eq!(given(&own, Some(&same)), [Target::Wanted(102), Target::Open(100)]);
        // Also where the one whose slices they are is not asking for it, or is gone.
        assert_eq!(given(&own, None)[0], Target::Wanted(102));
        let both = supply(BTreeMap::from([(100, led(&["gateway-one", "gateway-old"]))]));
        assert_eq!(given(&both, Some(&same))[0], Target::Open(100), "it is the older one");
    }

    #[test]
    fn a_service_has_a_hundred_ports() {
        let all = gateways(&[("a", "one")]);
        let ports: Vec<Port> = (1..=101).map(|port| (Transport::Tcp, port)).collect();
        let asking = vec![Asking { gateway: &all[0], ports, service: None }];
        let given = assign(
            asking,
            &Supply {
                range: 1000..=2000,
                most: 999,
                led_to: BTreeMap::new(),
                left: BTreeMap::new(),
            },
            |_, _| None,
        );
        let targets = &given[&all[0].meta.key];
        let refused = |port| matches!(targets[&(Transport::Tcp, port)], Target::Refused(_));
        assert!(!refused(100) && refused(101));
        let numbers: BTreeSet<_> = targets.values().filter_map(Target::number).collect();
        assert_eq!(numbers.len(), 100);
    }
}
