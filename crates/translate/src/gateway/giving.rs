//! What each Gateway is given to be reached by.

use super::addresses::assign;
use super::reach::{Behind, Reach, is_of};
use super::service_names::{named_by, service_name};
use super::targets::{self, Asking, Port, Supply, port_of};
use super::{Around, Gateways, Work};
use crate::GatewayServices;
use objects::gateway::Gateway;
use objects::{ObjectKey, Service, Snapshot};
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
            led_to: led_to(around.new).collect(),
        };
        let before = |key: &ObjectKey, port| self.behind.get(key)?.targets.get(&port).cloned();
        let targets = targets::assign(asking, &supply, before);
        let behind = targets.into_iter().filter_map(|(key, targets)| {
            let gateway = around.new.gateways.get(&key)?;
            Some((key, Behind::of(gateway, service_of(gateway, around.new), targets)))
        });
        let behind = behind.collect();
        let others = |key: &&ObjectKey| {
            self.behind.get(*key) != std::collections::BTreeMap::get(&behind, *key)
        };
        work.gateways.extend(behind.keys().filter(others).cloned());
        self.behind = behind;
    }
}

/// The ports to which the EndpointSlices of Gateways' Services lead, be they served or not.
fn led_to(snapshot: &Snapshot) -> impl Iterator<Item = u16> {
    let services = snapshot.gateways.values().filter_map(|gateway| service_of(gateway, snapshot));
    let made = services.filter(|service| service.made_for.is_some());
    let slices = made.filter_map(|service| snapshot.slices.get(&service.meta.key));
    let ports = slices.flat_map(|slices| slices.values()).flat_map(|slice| &slice.ports);
    ports.filter_map(|port| port.port)
}

/// The Service with the name that the Service of a Gateway has.
fn service_of<'a>(gateway: &Gateway, snapshot: &'a Snapshot) -> Option<&'a Arc<Service>> {
    let ObjectKey { namespace, name } = &gateway.meta.key;
    snapshot.services.get(&ObjectKey::new(namespace.clone(), service_name(name)))
}
