//! Who is behind the Service ports that routes lead to, as far as their namespaces may have endpoints.

use super::backends::{Port, upstream_id};
use super::{Around, Gateways, Work};
use crate::endpoint_budget::too_many;
use crate::ingress::{Role, Target};
use crate::upstream::{self, Behind};
use model::{Configuration, Kind, Upstream};
use objects::{ObjectKey, PortRef};
use std::ops::RangeInclusive;
use std::sync::Arc;

impl Gateways {
    /// Looks again who is behind the touched Service ports, and which of them have to wait.
    pub(super) fn make_upstreams(
        &mut self,
        around: &Around<'_>,
        configuration: &mut Configuration,
        work: &mut Work,
    ) {
        let mut touched = std::mem::take(&mut work.ports);
        let ports = &self.links.ports;
        for service in around.services {
            touched.extend(ports.range(ports_of(service)).map(|(port, _)| port.clone()));
        }
        for port in &touched {
            let weight = upstream::weight(&target_of(port), around.new);
            let weight = weight.filter(|_| ports.contains_key(port));
            self.lists.weigh(&port.0.namespace, port, weight);
        }
        let news = self.lists.admit(around.endpoints);
        work.crowded.extend(news.iter().map(|(service, _)| service.clone()));
        touched.extend(news);
        for port in &touched {
            self.make_upstream(port, around, configuration);
        }
    }

    /// Tells Services that there are too many endpoints of theirs, and what becomes of what leads there.
    pub(super) fn tell_services(&self, work: &mut Work) {
        for service in std::mem::take(&mut work.crowded) {
            let mut ports = self.links.ports.range(ports_of(&service));
            let waits = ports.any(|(port, _)| self.lists.waits(&service.namespace, port));
            let ends = self.streams.is_crowded(&service);
            let told = [(waits, "what leads there answers 503"), (ends, "connections there end")];
            let told = told.into_iter().filter(|(holds, _)| *holds);
            let told = told.map(|(_, what)| format!("{}; {what}", too_many(&service)));
            work.tell(Kind::Service, &service, told.collect());
        }
    }

    fn make_upstream(&self, port: &Port, around: &Around<'_>, configuration: &mut Configuration) {
        let id = upstream_id(port);
        if !self.links.ports.contains_key(port) {
            configuration.upstreams.remove(&id);
            return;
        }
        let behind = if self.lists.waits(&port.0.namespace, port) {
            Behind::default()
        } else {
            upstream::behind(&target_of(port), around.new, around.options)
        };
        let endpoints = Arc::new(behind.endpoints);
        // A name of DNS is whole: with a search domain behind it, it would be a Service of somebody else's namespace.
        let external = behind.external.map(|(name, port)| {
            let root = if name.ends_with('.') { "" } else { "." };
            (format!("{name}{root}"), port)
        });
        let upstream =
            Upstream { id: id.clone(), endpoints, external, namespace: port.0.namespace.clone() };
        if configuration.upstreams.get(&id).is_none_or(|known| **known != upstream) {
            configuration.upstreams.insert(id, Arc::new(upstream));
        }
    }
}

/// A Service port as an Ingress would name it.
fn target_of((service, port): &Port) -> Target {
    let number = PortRef::Number(*port);
    Target::new(&service.namespace, &service.name, Some(&number), Role::Backend)
}

/// All ports of a Service.
fn ports_of(service: &ObjectKey) -> RangeInclusive<Port> {
    (service.clone(), 0)..=(service.clone(), u16::MAX)
}
