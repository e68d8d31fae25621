//! What objects say of themselves: Ingresses without a Service, problems.

use controller::Known;
use model::{Backend, Kind, Origin, Severity, UpstreamId};
use objects::ObjectKey;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an Ingress lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacks {
    pub(crate) service: bool,
    pub(crate) endpoints: bool,
}

/// What each Ingress lacks, over all its paths.
pub(crate) fn orphans(known: &Known) -> BTreeMap<(Arc<str>, Arc<str>), Lacks> {
    let mut all = BTreeMap::new();
    let mut note = |origin: &Origin, service: bool, upstream: &UpstreamId| {
        let key = (origin.namespace.clone(), origin.name.clone());
        let lacks: &mut Lacks = all.entry(key).or_default();
        let found = known.configuration.upstreams.get(upstream);
        let served = found
            .is_some_and(|found| found.external.is_some() || !found.endpoints.usable().is_empty());
        lacks.service |= !service;
        lacks.endpoints |= service && !served;
    };
    let locations = known.configuration.servers.values().flat_map(|server| &server.locations);
    for location in locations {
        if let (Some(origin), Some(service), Backend::Upstream(id)) =
            (&location.origin, &location.service, &location.backend)
        {
            let key = ObjectKey::new(service.namespace.clone(), service.name.clone());
            note(origin, known.snapshot.services.contains_key(&key), id);
        }
        if let Some(canary) = &location.canary {
            let exists = known.configuration.upstreams.contains_key(&canary.upstream);
            note(&canary.origin, exists, &canary.upstream);
        }
    }
    all
}

/// How many problems there are of each kind of object and severity; zero is said, too, but for
/// kinds of the Gateway API, which most clusters do not have.
pub(crate) fn problems(known: &Known) -> BTreeMap<(&'static str, &'static str), u64> {
    let severities = [Severity::Error, Severity::Warning, Severity::Notice];
    let kinds = [Kind::Ingress, Kind::IngressClass, Kind::Service, Kind::EndpointSlice];
    let others = [Kind::Secret, Kind::ConfigMap, Kind::Namespace, Kind::File];
    let none = kinds
        .iter()
        .chain(&others)
        .flat_map(|kind| severities.iter().map(|severity| ((kind.name(), severity.name()), 0)));
    let mut counts: BTreeMap<_, u64> = none.collect();
    for problem in known.problems.iter() {
        let key = (problem.origin.kind.name(), problem.severity.name());
        *counts.entry(key).or_default() += 1;
    }
    counts
}
