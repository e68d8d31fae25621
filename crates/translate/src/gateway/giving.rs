//! What each Gateway is given to be reached by.

use super::addresses::assign;
use super::reach::{Behind, Reach, is_of};
use super::service_names::{is_of_gateway, named_by, own_slices, service_name};
use super::targets::{self, Asking, Port, Supply, port_of};
use super::{Around, Gateways, Work};
use crate::GatewayServices;
use objects::gateway::Gateway;
use objects::{ObjectKey, Service, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Gateways {
    /// How a Gateway is reached.
    pub(super) fn reach(&self, key: &ObjectKey) -> Reach {
        let own = self.given.get(key).cloned().map(Reach::Own);
        own.or_else(|| self.behind.get(key).cloned().map(Reach::Behind)).unwrap_or(Reach::Shared)
    }

    /// Gives each Gateway its address, or the ports behind its Service, where it has any; notes those that get others.
    pub(super) fn give_addresses(&mut self, around: &Around<'_>, work: &mut Work) {
        let pool = &around.options.gateway_addresses;
        if around.options.raw {
            return;
        }
        if around.options.gateway_services == GatewayServices::LoadBalancer {
            return self.give_targets(around, work);
        }
        if pool.is_empty() || work.gateways.is_empty() {
            return;
        }
        let served = around.new.gateways.values().filter(|gateway| self.is_served(gateway, around));
        let given = assign(pool, &served.collect::<Vec<_>>(), &self.given);
        let others = given.iter().filter(|(key, given)| self.given.get(*key) != Some(given));
        work.gateways.extend(others.map(|(key, _)| key.clone()));
        self.given = given;
    }

    fn give_targets(&mut self, around: &Around<'_>, work: &mut Work) {
        work.gateways.extend(around.services.iter().flat_map(|key| named_by(key, around.new)));
        // A port is free once the last slice of a Gateway that is gone has gone.
        let is_other =
            |key: &ObjectKey| own_slices(key, around.old).ne(own_slices(key, around.new));
        let is_touched = around.services.iter().any(is_other);
        if work.gateways.is_empty() && self.most_ports == around.ports && !is_touched {
            return;
        }
        self.most_ports = around.ports;
        let served = around.new.gateways.values().filter(|gateway| self.is_served(gateway, around));
        let asking = served.map(|gateway| {
            let sets = self.sets_of(gateway, around.new);
            let listeners = gateway.listeners.iter().chain(sets.iter().flat_map(|set| set.added()));
            let mut ports: Vec<Port> = Vec::new();
            for port in listeners.filter_map(port_of) {
                if !ports.contains(&port) {
                    ports.push(port);
                }
            }
            let service = service_of(gateway, around.new).filter(|one| is_of(one, gateway));
            Asking { gateway, ports, service: service.map(|service| &**service) }
        });
        let asking = asking.collect();
        let (led_to, left) = led_to(around.new, around.ports);
        let supply = Supply {
            range: around.options.gateway_target_ports.clone(),
            most: around.ports,
            led_to,
            left,
        };
        let before = |key: &ObjectKey, port| self.behind.get(key)?.targets.get(&port).cloned();
        let targets = targets::assign(asking, &supply, before);
        let behind = targets.into_iter().filter_map(|(key, targets)| {
            let gateway = around.new.gateways.get(&key)?;
            Some((key, Behind::of(gateway, service_of(gateway, around.new), targets)))
        });
        let behind = behind.collect();
        let others = |key: &&ObjectKey| self.behind.get(*key) != BTreeMap::get(&behind, *key);
        work.gateways.extend(behind.keys().filter(others).cloned());
        self.behind = behind;
    }
}

/// The ports to which EndpointSlices lead that Fairway has written, and of which Services, be the Gateway served,
/// refused or gone, and whosever the Service is now: whoever may delete a Gateway may leave its Service behind. Besides
/// how many are those of Gateways that are gone, by namespace. Of each namespace no more than its Gateways may have,
/// and as many of those that are gone: who may write slices makes as many as he likes.
fn led_to(
    snapshot: &Snapshot,
    most: u64,
) -> (BTreeMap<u16, BTreeSet<ObjectKey>>, BTreeMap<Arc<str>, u64>) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let named = snapshot.gateways.keys();
    let named = named.map(|key| ObjectKey::new(key.namespace.clone(), service_name(&key.name)));
    let named: BTreeSet<ObjectKey> = named.collect();
    let mut all: BTreeMap<(&Arc<str>, bool), BTreeSet<u16>> = BTreeMap::new();
    let mut led_to: BTreeMap<u16, BTreeSet<ObjectKey>> = BTreeMap::new();
    for service in snapshot.slices.keys().filter(|key| is_of_gateway(key)) {
        let own = own_slices(service, snapshot).flat_map(|slice| &slice.ports);
        for port in own.filter_map(|port| port.port) {
            let is_left = !named.contains(service);
            let of_namespace = all.entry((&service.namespace, is_left)).or_default();
            if of_namespace.len() >= most && !of_namespace.contains(&port) {
                break;
            }
            of_namespace.insert(port);
            led_to.entry(port).or_default().insert(service.clone());
        }
    }
    let left = all.iter().filter(|((_, is_left), _)| *is_left);
    let left = left.map(|((namespace, _), ports)| (Arc::clone(namespace), ports.len() as u64));
    (led_to, left.collect())
}

/// The Service with the name that the Service of a Gateway has.
fn service_of<'a>(gateway: &Gateway, snapshot: &'a Snapshot) -> Option<&'a Arc<Service>> {
    let ObjectKey { namespace, name } = &gateway.meta.key;
    snapshot.services.get(&ObjectKey::new(namespace.clone(), service_name(name)))
}

#[cfg(test)]
mod tests {
    use super::super::targets::Target;
    use super::*;
    use std::fmt::Write as _;
    use std::path::Path;

    /// An EndpointSlice of Service `shop/gateway-web`, with ports from this one on.
    fn slice(text: &mut String, name: &str, by: &str, from: u16, count: u16) {
        slice_of(text, ("gateway-web", name), by, from, count);
    }

    fn slice_of(text: &mut String, (service, name): (&str, &str), by: &str, from: u16, count: u16) {
        let ports = (from..from + count).map(|port| format!("{{port: {port}}}"));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let labels = format!(
            "{{kubernetes.io/service-name: {service}, endpointslice.kubernetes.io/managed-by: {by}}}"
        );
        let slice = format!(
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: shop, name: {name}, labels: \
             {labels}}}\naddressType: IPv4\nendpoints: []\nports: [{ports}]\n"
        );
        text.write_str(&slice).expect("memory");
    }

    #[test]
    fn slices_that_others_make_hold_no_port_and_a_namespace_holds_no_more_than_it_may_have() {
        let mut text = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web, uid: u}
spec: {gatewayClassName: another, listeners: []}
---
apiVersion: v1
kind: Service
metadata:
  namespace: shop
  name: gateway-web
  labels: {app.kubernetes.io/managed-by: fairway}
  ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u}]
spec: {ports: [{port: 80}]}
"
        .to_owned();
        for number in 0..20_u16 {
            let by = ["somebody", "fairway"][usize::from(number % 2)];
            slice(&mut text, &format!("x{number}"), by, 20_000 + number * 100, 100);
        }
        slice(&mut text, "gateway-web-v4", "somebody", 20_000, 100);
        slice(&mut text, "gateway-web-v6", "fairway", 21_000, 3);
        let found: Snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        assert_eq!(found.slices.values().map(|slices| slices.len()).sum::<usize>(), 22);
        let none = BTreeMap::new();
        let web = |ports: &[u16]| -> BTreeMap<u16, BTreeSet<ObjectKey>> {
            let own = BTreeSet::from([ObjectKey::new("shop", "gateway-web")]);
            ports.iter().map(|port| (*port, own.clone())).collect()
        };
        assert_eq!(led_to(&found, 100), (web(&[21_000, 21_001, 21_002]), none.clone()));
        assert_eq!(led_to(&found, 2), (web(&[21_000, 21_001]), none));
    }

    /// Gateways `b/shop` and `shop/next` ask for a port, while slices of Gateways lead on that are gone.
    fn given(text: &str, most: u64) -> Vec<Target> {
        let gateways = [("b", "shop"), ("shop", "next")].map(|(namespace, name)| {
            format!(
                "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
                 metadata: {{namespace: {namespace}, name: {name}}}\nspec: {{gatewayClassName: c, listeners: []}}\n"
            )
        });
        let text = gateways.concat() + text;
        let found: Snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let (led_to, left) = led_to(&found, most);
        let supply = Supply { range: 20_000..=20_003, most, led_to, left };
        let port = (model::Transport::Tcp, 80);
        let asking = found.gateways.values().map(|gateway| Asking {
            gateway,
            ports: vec![port],
            service: None,
        });
        let given = targets::assign(asking.collect(), &supply, |_, _| None);
        given.into_values().map(|targets| targets[&port].clone()).collect()
    }

    #[test]
    fn a_port_to_which_slices_of_a_gateway_that_is_gone_lead_is_given_to_nobody_and_counts() {
        let lost = "---\napiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: gateway-web}\n\
                    spec: {type: LoadBalancer, ports: [{port: 80}]}\n";
        // Whether its Service has lost its owner, or has gone without them.
        for service in [lost, ""] {
            let mut text = service.to_owned();
            slice(&mut text, "gateway-web-v4", "fairway", 20_000, 2);
            let mut free = given(&text, 3).iter().map(Target::number).collect::<Vec<_>>();
            free.sort_unstable();
            assert_eq!(free, [Some(20_002), Some(20_003)], "{service}");
            let given = given(&text, 2);
            assert!(given[0].number().is_some(), "that one is of another namespace: {given:?}");
            assert!(matches!(given[1], Target::Refused(_)), "it has as many as it may: {given:?}");
        }
        // However many there are of others, those that are gone hold theirs.
        let mut text = String::new();
        for number in 0..9_u16 {
            let name = format!("gateway-a{number}");
            slice_of(&mut text, (&name, &format!("{name}-v4")), "fairway", 21_000 + number, 1);
            write!(
                text,
                "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
                 metadata: {{namespace: shop, name: a{number}}}\nspec: {{gatewayClassName: c, listeners: []}}\n"
            )
            .expect("memory");
        }
        slice(&mut text, "gateway-web-v4", "fairway", 20_000, 2);
        let found: Snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let (led_to, left) = led_to(&found, 2);
        assert!(led_to.into_keys().eq([20_000, 20_001, 21_000, 21_001]));
        assert_eq!(left, BTreeMap::from([("shop".into(), 2)]));
    }
}
