//! What each Gateway is given to be reached by.

use super::addresses::assign;
use super::reach::{Behind, Reach, is_of};
use super::service_names::{FAMILIES, named_by, service_name, slice_name};
use super::targets::{self, Asking, Port, Supply, port_of};
use super::{Around, Gateways, Work};
use crate::GatewayServices;
use objects::gateway::Gateway;
use objects::{EndpointSlice, ObjectKey, Service, Snapshot};
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
        if work.gateways.is_empty() && self.most_ports == around.ports {
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
        let supply = Supply {
            range: around.options.gateway_target_ports.clone(),
            most: around.ports,
            led_to: led_to(around.new, around.ports),
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

/// The ports to which the EndpointSlices of Gateways' Services lead, be they served or not: those that Fairway writes,
/// and of each namespace no more than its Gateways may have. Who may write slices makes as many as he likes.
fn led_to(snapshot: &Snapshot, most: u64) -> BTreeSet<u16> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut all: BTreeMap<&Arc<str>, BTreeSet<u16>> = BTreeMap::new();
    let services = snapshot.gateways.values().filter_map(|gateway| service_of(gateway, snapshot));
    for service in services.filter(|service| service.made_for.is_some()) {
        let ObjectKey { namespace, name } = &service.meta.key;
        let is_own = |slice: &&Arc<EndpointSlice>| {
            let called = &*slice.meta.key.name;
            slice.is_ours && FAMILIES.iter().any(|family| slice_name(name, family) == called)
        };
        let slices = snapshot.slices.get(&service.meta.key);
        let own = slices.into_iter().flat_map(|slices| slices.values()).filter(is_own);
        let of_namespace = all.entry(namespace).or_default();
        for port in own.flat_map(|slice| &slice.ports).filter_map(|port| port.port) {
            if of_namespace.len() >= most {
                break;
            }
            of_namespace.insert(port);
        }
    }
    all.into_values().flatten().collect()
}

/// The Service with the name that the Service of a Gateway has.
fn service_of<'a>(gateway: &Gateway, snapshot: &'a Snapshot) -> Option<&'a Arc<Service>> {
    let ObjectKey { namespace, name } = &gateway.meta.key;
    snapshot.services.get(&ObjectKey::new(namespace.clone(), service_name(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::path::Path;

    /// An EndpointSlice of Service `shop/gateway-web`, with ports from this one on.
    fn slice(text: &mut String, name: &str, by: &str, from: u16, count: u16) {
        let ports = (from..from + count).map(|port| format!("{{port: {port}}}"));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let labels = format!(
            "{{kubernetes.io/service-name: gateway-web, endpointslice.kubernetes.io/managed-by: {by}}}"
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
        assert_eq!(led_to(&found, 100), BTreeSet::from([21_000, 21_001, 21_002]));
        assert_eq!(led_to(&found, 2), BTreeSet::from([21_000, 21_001]));
    }
}
