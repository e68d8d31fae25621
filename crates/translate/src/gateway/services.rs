//! The Service that is made for a Gateway (`--gateway-services`): its name in the cluster, where `spec.infrastructure`
//! is to be seen, and with a load balancer what it is reached by.

use super::listeners::{Protocol, State};
use super::missing::note;
use super::reach::Reach;
use super::status::{GatewayService, ServiceKind};
use super::targets::PORTS;
use crate::GatewayServices;
use model::{Kind, Problem, Transport};
use std::collections::BTreeMap;

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
