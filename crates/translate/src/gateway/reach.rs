//! How Gateways are reached: by the addresses of the process, by an address of their own, or by a Service.

use super::addresses::Given;
use super::service_names::service_name;
use super::targets::{Port, Target, Targets};
use crate::Options;
use model::{StreamPort, Transport};
use objects::gateway::Gateway;
use objects::{ObjectKey, Service};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Addresses that a status has at most.
const ADDRESSES: usize = 16;

/// Why a port is not opened for want of sockets.
const CROWDED: &str = "there are no sockets left for its port: listeners have a quarter of the files that Fairway may \
                       open, those of one namespace half of that, and a port of HTTP or TLS takes one for each thread; \
                       use fewer ports, or raise the limit of open files";

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

/// Ports of the process that are open at all addresses and shared with nobody: a socket at the address of a Gateway
/// would keep them from being opened, or they would keep it.
#[derive(Clone, Copy)]
pub(super) struct Taken<'a> {
    by_process: &'a BTreeSet<u16>,
    by_streams: &'a BTreeSet<StreamPort>,
    /// Ports of the Gateway for which there are no sockets.
    crowded: Option<&'a BTreeSet<Port>>,
}

impl<'a> Taken<'a> {
    pub(super) fn of(
        options: &'a Options,
        by_streams: &'a BTreeSet<StreamPort>,
        crowded: Option<&'a BTreeSet<Port>>,
    ) -> Self {
        Self { by_process: &options.process_ports, by_streams, crowded }
    }

    fn why(self, (transport, number): Port) -> Option<String> {
        let who = if transport == Transport::Tcp && self.by_process.contains(&number) {
            "Fairway itself"
        } else if self.by_streams.contains(&StreamPort { transport, number, address: None }) {
            "a TCP or UDP service of a ConfigMap"
        } else {
            return None;
        };
        Some(format!("port {number} is that of {who} at every address: choose another one"))
    }
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
    pub(super) fn of(gateway: &Gateway, service: Option<&Arc<Service>>, targets: Targets) -> Self {
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

    /// Why a port cannot be had. Where it leads to another one, `taken` is not in its way.
    pub(super) fn refuses(&self, port: Port, taken: Taken<'_>) -> Option<(&'static str, String)> {
        let why = match self {
            Self::Shared => return None,
            Self::Own(_) => taken.why(port),
            Self::Behind(behind) => match behind.targets.get(&port) {
                Some(Target::Refused(why)) => Some((*why).to_owned()),
                _ => None,
            },
        };
        let no_room = || taken.crowded?.contains(&port).then(|| CROWDED.to_owned());
        Some(("PortUnavailable", why.or_else(no_room)?))
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
pub(super) fn is_of(service: &Service, gateway: &Gateway) -> bool {
    service.made_for.as_ref().is_some_and(|made| made.uid == gateway.meta.uid)
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
