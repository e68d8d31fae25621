//! What BackendTLSPolicies touch, and what they are told.

use super::backend_tls::{Read, Touched};
use super::kinds::RouteId;
use super::missing::note;
use super::status::PolicyStatus;
use super::unlisted::lets_in;
use super::{Around, Gateways, Work, differing, failing};
use model::Kind;
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Gateways {
    /// Follows the policies; routes to Services that are reached in another way now are touched.
    pub(super) fn take_policies(&mut self, around: &Around<'_>, work: &mut Work) {
        let Touched { services, policies } = {
            let touched = differing(&around.old.backend_tls, &around.new.backend_tls).cloned();
            let (changed, files) = (around.config_maps, &mut self.files);
            self.policies.follow(touched.collect(), changed, around.new, files)
        };
        for service in &services {
            work.routes.extend(self.links.by_service.get(service).into_iter().flatten().cloned());
        }
        // Of a Service whose ports have other names another policy may count.
        let changed = around.services.iter().filter(|service| self.policies.targets(service));
        work.policed.extend(changed.cloned());
        work.policed.extend(services);
        work.policies.extend(policies);
    }

    /// Closes what policies or ListenerSets might be about while nobody knows what they say, and opens it again.
    pub(super) fn take_unlisted(&mut self, around: &Around<'_>, work: &mut Work) {
        if around.old.unlisted == around.new.unlisted {
            return;
        }
        work.routes.extend(self.links.by_service.values().flatten().cloned());
        let lets_in = self.gateways.values().filter(|state| lets_in(&state.gateway));
        work.gateways.extend(lets_in.map(|state| state.gateway.meta.key.clone()));
    }

    /// Tells policies what became of them.
    pub(super) fn tell_policies(&mut self, around: &Around<'_>, work: &mut Work) {
        let policed = std::mem::take(&mut work.policed);
        for service in &policed {
            let of_service = self.policies.by_service.get(service);
            work.policies.extend(of_service.into_iter().flatten().cloned());
        }
        // Looked up once for each Service, however many policies have it for a target.
        let mut reached = BTreeMap::new();
        for key in std::mem::take(&mut work.policies) {
            let status = self.policies.read.get(&key).and_then(|read| {
                let ancestors = self.ancestors(read, &mut reached);
                let told = read.policy.told_by.contains(&around.options.gateway_controller);
                // Whoever was told and is nobody's any more is told so.
                (told || !ancestors.is_empty()).then(|| PolicyStatus {
                    generation: read.policy.meta.generation,
                    ancestors,
                    conditions: self.policies.conditions(read, around.new),
                })
            });
            let is_ours = status.as_ref().filter(|status| !status.ancestors.is_empty());
            let problems = is_ours.map(|status| failing(&status.conditions)).unwrap_or_default();
            work.tell(Kind::BackendTlsPolicy, &key, problems);
            let has_options = |read: &&Read| read.policy.has_options;
            let passed_over = self.policies.read.get(&key).filter(has_options);
            work.note(passed_over.filter(|_| is_ours.is_some()).map(|_| {
                let message = "no options are known: they count for nothing".to_owned();
                note(Kind::BackendTlsPolicy, &key, "spec.options", message)
            }));
            match status {
                Some(status) => self.statuses.policies.insert(key, Arc::new(status)),
                None => self.statuses.policies.remove(&key),
            };
        }
    }

    /// The Gateways through which the targets of a policy are reached.
    fn ancestors(
        &self,
        read: &Read,
        reached: &mut BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    ) -> Vec<ObjectKey> {
        let mut all = BTreeSet::new();
        for (service, _) in read.services() {
            let gateways = || self.gateways_of(&service);
            all.extend(reached.entry(service.clone()).or_insert_with(gateways).iter().cloned());
        }
        all.into_iter().collect()
    }

    fn gateways_of(&self, service: &ObjectKey) -> BTreeSet<ObjectKey> {
        let routes = self.links.by_service.get(service).into_iter().flatten();
        let gateways: BTreeSet<_> =
            routes.flat_map(|id| self.gateways_between(id, service)).collect();
        gateways.into_iter().cloned().collect()
    }

    /// The Gateways through which a route leads to a Service.
    fn gateways_between<'s>(
        &'s self,
        id: &RouteId,
        service: &ObjectKey,
    ) -> impl Iterator<Item = &'s ObjectKey> {
        let listeners = self.routes.get(id).into_iter().flat_map(|attached| &attached.listeners);
        listeners.map(|(gateway, _)| gateway).chain(self.streams.gateways_of(id, service))
    }
}
