//! The Service that is made for a Gateway (`--gateway-services`): its name in the cluster, where `spec.infrastructure` is
//! to be seen, and with a load balancer what it is reached by.

use super::listeners::{Protocol, State};
use super::missing::note;
use super::reach::Reach;
use super::status::{GatewayService, ServiceKind};
use super::targets::PORTS;
use crate::GatewayServices;
use model::{Kind, Problem, Transport};
use std::collections::BTreeMap;

/// Names of Services and values of labels are no longer.
const LONGEST: usize = 63;
const AFFIX: &str = "gateway-";

/// A name of a Gateway in at most so many characters: a long one, or one that a Service cannot have, ends in a number
/// that is made of it.
fn short(name: &str, most: usize, is_good: impl Fn(&str) -> bool) -> String {
    if name.len() <= most && is_good(name) {
        return name.to_owned();
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let plain: String = name.chars().map(|char| if char == '.' { '-' } else { char }).collect();
    let plain = plain.get(..most - 17).unwrap_or(&plain).trim_end_matches('-');
    format!("{plain}-{hash:016x}")
}

/// The name of the Service of a Gateway.
pub fn service_name(gateway: &str) -> String {
    let is_good = |name: &str| !name.contains('.');
    format!("{AFFIX}{}", short(gateway, LONGEST - AFFIX.len(), is_good))
}

/// Whether the Service of a Gateway may have this name.
pub(super) fn may_be_named(service: &str) -> bool {
    service.starts_with(AFFIX)
}

/// The name of a Gateway as the value of a label.
pub fn label_of(gateway: &str) -> String {
    short(gateway, LONGEST, |name| name.len() <= LONGEST)
}

impl State {
    /// The Service that should be there for the Gateway.
    pub(super) fn service(&self) -> Option<GatewayService> {
        if self.services == GatewayServices::None || self.refused.is_some() {
            return None;
        }
        let (kind, ports) = match &self.reach {
            Reach::Shared | Reach::Own(Err(_)) => return None,
            Reach::Own(Ok(address)) => {
                let ports = self.served_ports().map(|port| (port, port.1));
                (ServiceKind::Headless(*address), ports.take(PORTS).collect())
            }
            Reach::Behind(behind) => {
                let asked = behind.asked.as_ref().ok().copied().flatten();
                let ports = behind.targets.iter();
                let ports: BTreeMap<_, _> =
                    ports.filter_map(|(port, target)| Some((*port, target.number()?))).collect();
                if ports.is_empty() {
                    return None;
                }
                (ServiceKind::LoadBalancer(asked), ports)
            }
        };
        let infrastructure = self.gateway.infrastructure.clone();
        Some(GatewayService { uid: self.gateway.meta.uid.clone(), kind, ports, infrastructure })
    }

    fn served_ports(&self) -> impl Iterator<Item = (Transport, u16)> {
        let served = self.each().enumerate().filter(|(index, _)| self.serves(*index));
        served.filter_map(|(_, (listener, read))| {
            let transport = match read.protocol? {
                Protocol::Spoken(_) => Transport::Tcp,
                Protocol::Raw(transport) => transport,
            };
            Some((transport, listener.port))
        })
    }

    /// A note if `spec.infrastructure` says what nothing carries.
    pub(super) fn unused_infrastructure(&self) -> Option<Problem> {
        let asked = &self.gateway.infrastructure;
        let is_empty = asked.labels.is_empty() && asked.annotations.is_empty();
        let has_service = self.services != GatewayServices::None && self.reach != Reach::Shared;
        (!is_empty && !has_service).then(|| {
            let message = "nothing is made for the Gateway that could carry labels and annotations: start Fairway with \
                           --gateway-services=load-balancer, or with --gateway-addresses and --gateway-services=headless";
            note(Kind::Gateway, &self.gateway.meta.key, "spec.infrastructure", message.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, label_of, service_name};

    #[test]
    fn names_are_short_and_those_that_were_cut_differ() {
        assert_eq!(service_name("web"), "gateway-web");
        let long = |end: &str| format!("{}{end}", "a".repeat(252));
        let names = [
            service_name("a.b"),
            service_name("a-b"),
            service_name(&long("b")),
            service_name(&long("c")),
        ];
        let known: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(known.len(), 4, "{names:?}");
        for name in &names {
            assert!(name.len() <= LONGEST && !name.contains('.'), "{name}");
        }
        assert!(label_of(&long("b")).len() <= LONGEST);
    }
}
