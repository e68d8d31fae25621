//! How Gateways are reached: by the addresses of the process, by an address of their own, or by a Service.

use super::addresses::{Given, assign};
use super::listeners::State;
use super::services::service_name;
use super::targets::{self, Asking, Port, Supply, Target, Targets, port_of};
use super::{Around, Gateways, Work, is_served};
use crate::GatewayServices;
use objects::gateway::Gateway;
use objects::{ObjectKey, Service, Snapshot};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Addresses that a status has at most.
const ADDRESSES: usize = 16;

/// How a Gateway is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reach {
    /// By the addresses of the process, as all others.
    Shared,
    /// By an address of its own, or why it has none.
    Own(Given),
    /// By a Service, which leads to ports of its own.
    Behind(Behind),
}

/// The Service of a Gateway, and what is behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Behind {
    pub(super) targets: Targets,
    /// What the load balancer has given.
    addresses: Vec<String>,
    /// The address that it is asked for, or why none can be.
    pub(super) asked: Result<Option<IpAddr>, String>,
    /// Why there is none, as long as that is so.
    lacking: String,
}

impl Behind {
    fn of(gateway: &Gateway, service: Option<&Arc<Service>>, targets: Targets) -> Self {
        let ObjectKey { namespace, name } = &gateway.meta.key;
        let called = format!("Service {namespace}/{}", service_name(name));
        let own = service.filter(|service| is_of(service, gateway));
        let given = own.into_iter().flat_map(|service| &service.addresses);
        let given = given.filter_map(|(host, ip)| ip.as_ref().or(host.as_ref()));
        let lacking = match (service, own) {
            (Some(_), None) => format!("{called} is somebody else's: delete it"),
            (None, _) => format!("{called} is being made"),
            _ => format!("{called} has been given no address by its load balancer yet"),
        };
        Self {
            targets,
            addresses: given.take(ADDRESSES).cloned().collect(),
            asked: asked(gateway),
            lacking,
        }
    }

    fn lacks(&self) -> Option<(&'static str, String)> {
        let given = self.addresses.iter();
        match &self.asked {
            Err(message) => Some(("AddressNotUsable", message.clone())),
            _ if self.addresses.is_empty() => Some(("AddressNotAssigned", self.lacking.clone())),
            Ok(Some(asked)) if !given.clone().any(|one| one.parse() == Ok(*asked)) => {
                let given = given.map(String::as_str).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "spec.addresses: the load balancer gives {given}, not {asked}; ask for another one, or take it out"
                );
                Some(("AddressNotUsable", message))
            }
            Ok(_) => None,
        }
    }
}

impl Reach {
    /// Whether none of its listeners can be served.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Own(Err(_)))
    }

    /// Why it has no address, or not the one that it should have.
    pub(super) fn lacks(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Shared | Self::Own(Ok(_)) => None,
            Self::Own(Err(why)) => Some(why.clone()),
            Self::Behind(behind) => behind.lacks(),
        }
    }

    /// Where connections for a port come in, if that is nobody else's place.
    pub(super) fn place(&self, port: Port) -> Option<SocketAddr> {
        match self {
            Self::Own(Ok(address)) => Some(SocketAddr::new(*address, port.1)),
            Self::Behind(behind) => match behind.targets.get(&port) {
                Some(Target::Open(number)) => Some((Ipv4Addr::UNSPECIFIED, *number).into()),
                _ => None,
            },
            Self::Shared | Self::Own(Err(_)) => None,
        }
    }

    /// Why a port cannot be had.
    pub(super) fn refuses(&self, port: Port) -> Option<(&'static str, String)> {
        let Self::Behind(behind) = self else { return None };
        match behind.targets.get(&port) {
            Some(Target::Refused(why)) => Some(("PortUnavailable", (*why).to_owned())),
            _ => None,
        }
    }

    /// The addresses of its own; nothing where it has those of the process.
    pub(super) fn addresses(&self) -> Option<Vec<String>> {
        match self {
            Self::Shared => None,
            Self::Own(given) => Some(given.iter().map(ToString::to_string).collect()),
            Self::Behind(behind) => Some(behind.addresses.clone()),
        }
    }
}

/// Whether a Service was made for a Gateway.
fn is_of(service: &Service, gateway: &Gateway) -> bool {
    service.made_for.as_ref() == Some(&gateway.meta.uid)
}

/// The address that a Gateway asks its load balancer for.
fn asked(gateway: &Gateway) -> Result<Option<IpAddr>, String> {
    let values = gateway.addresses.iter().map(|(_, value)| value).filter(|value| !value.is_empty());
    match values.collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [one] => one.parse().map(Some).map_err(|_| {
            format!("spec.addresses: {one} is no IP address, and a Service can ask for nothing else; take it out")
        }),
        _ => Err("spec.addresses: a Service can ask for one address; name one".to_owned()),
    }
}

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
        let served = around.new.gateways.values().filter(|gateway| is_served(gateway, around));
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
        let served = around.new.gateways.values().filter(|gateway| is_served(gateway, around));
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
        let supply =
            Supply { range: around.options.gateway_target_ports.clone(), most: around.ports };
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

/// The Service with the name that the Service of a Gateway has.
fn service_of<'a>(gateway: &Gateway, snapshot: &'a Snapshot) -> Option<&'a Arc<Service>> {
    let ObjectKey { namespace, name } = &gateway.meta.key;
    snapshot.services.get(&ObjectKey::new(namespace.clone(), service_name(name)))
}

/// The Gateways whose Service has this name.
pub fn named_by<'a>(
    service: &'a ObjectKey,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = ObjectKey> + use<'a> {
    let may_be = super::services::may_be_named(&service.name);
    let from = may_be.then(|| ObjectKey::new(service.namespace.clone(), ""));
    let all = from.into_iter().flat_map(|from| snapshot.gateways.range(from..));
    let within = all.map(|(key, _)| key).take_while(|key| key.namespace == service.namespace);
    within.filter(|key| service_name(&key.name) == *service.name).cloned()
}

impl State {
    /// Where connections for a listener come in, if that is nobody else's place.
    pub(super) fn place(&self, index: usize) -> Option<SocketAddr> {
        self.reach.place(port_of(self.listener(index))?)
    }
}
