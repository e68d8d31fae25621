//! The Service that is made for a Gateway with an address of its own (`--gateway-services`): its name in the cluster,
//! and where `spec.infrastructure` is to be seen.

use super::listeners::{Protocol, State};
use super::missing::note;
use super::status::GatewayService;
use model::{Kind, Problem, Transport};

/// Ports of a Service at most.
const PORTS: usize = 100;

impl State {
    /// The Service that should be there for the Gateway.
    pub(super) fn service(&self) -> Option<GatewayService> {
        let Some(Ok(address)) = self.given else { return None };
        if !self.has_service || self.refused.is_some() {
            return None;
        }
        let ports = self.each().enumerate().filter(|(index, _)| self.serves(*index));
        let ports = ports.filter_map(|(_, (listener, read))| {
            let transport = match read.protocol? {
                Protocol::Spoken(_) => Transport::Tcp,
                Protocol::Raw(transport) => transport,
            };
            Some((transport, listener.port))
        });
        Some(GatewayService {
            uid: self.gateway.meta.uid.clone(),
            address,
            ports: ports.take(PORTS).collect(),
            infrastructure: self.gateway.infrastructure.clone(),
        })
    }

    /// A note if `spec.infrastructure` says what nothing carries.
    pub(super) fn unused_infrastructure(&self) -> Option<Problem> {
        let asked = &self.gateway.infrastructure;
        let is_empty = asked.labels.is_empty() && asked.annotations.is_empty();
        let has_service = self.has_service && self.given.is_some();
        (!is_empty && !has_service).then(|| {
            let message = "nothing is made for the Gateway that could carry labels and annotations: start Fairway with \
                           --gateway-addresses and --gateway-services";
            note(Kind::Gateway, &self.gateway.meta.key, "spec.infrastructure", message.to_owned())
        })
    }
}
