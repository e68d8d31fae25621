//! Objects of the Gateway API: how many are ours, and what is wrong with them.

use super::elsewhere;
use super::left_out::{of_route, parentless};
use super::remark::Remark;
use crate::{Options, Translation};
use model::{Origin, Severity};
use objects::{Kind, ObjectKey, Snapshot};
use serde::Serialize;

/// What was found about the objects of the Gateway API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GatewayApi {
    /// Gateways, ListenerSets and routes that there are.
    pub found: usize,
    /// Gateways, ListenerSets and routes of a class of ours.
    pub ours: usize,
    /// Objects that are refused, wholly or in part, by the object.
    pub refused: Vec<Remark>,
    /// What changes nothing and should be known, such as a name of nothing.
    pub notes: Vec<Remark>,
}

pub(super) fn check(
    snapshot: &Snapshot,
    translation: &Translation,
    options: &Options,
) -> GatewayApi {
    let statuses = &translation.statuses;
    let mut found = GatewayApi {
        found: snapshot.gateways.len()
            + snapshot.listener_sets.len()
            + snapshot.http_routes.len()
            + snapshot.stream_routes.len(),
        ours: statuses.gateways.len()
            + statuses.sets.len()
            + statuses.routes.len()
            + statuses.stream_routes.len(),
        ..GatewayApi::default()
    };
    let is_of_it = |name: &str| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.is_some_and(|kind| kind.api_version().starts_with("gateway.networking.k8s.io/"))
    };
    let remark =
        |origin: Origin, message: String| Remark { key: Some(origin.to_string()), message };
    let routes = snapshot.http_routes.iter();
    let routes = routes.map(|(id, route)| (id, &route.parents, route.unread.as_ref()));
    let streams = snapshot.stream_routes.iter();
    let streams = streams.map(|(id, route)| (id, &route.parents, route.unread.as_ref()));
    found.notes.extend(routes.chain(streams).filter_map(|((kind, key), parents, unread)| {
        Some(remark(of_route(*kind, key), parentless(parents, unread)?.to_owned()))
    }));
    found.notes.extend(of_policies(snapshot));
    found.notes.extend(elsewhere::parents(snapshot, options));
    found.notes.extend(elsewhere::grants(snapshot, options));
    for problem in translation.problems.iter() {
        // What was not read is told as such.
        if !is_of_it(problem.origin.kind.name()) || problem.key.is_none() {
            continue;
        }
        let key = problem.key.as_deref().unwrap_or_default();
        let remark = Remark {
            key: Some(format!("{} {key}", problem.origin)),
            message: problem.message.to_string(),
        };
        match problem.severity {
            Severity::Notice => found.notes.push(remark),
            Severity::Error | Severity::Warning => found.refused.push(remark),
        }
    }
    found
}

/// Services that policies name and that are not there.
fn of_policies(snapshot: &Snapshot) -> impl Iterator<Item = Remark> {
    snapshot.backend_tls.iter().flat_map(|(policy, spec)| {
        let services = spec.targets.iter().map(|target| &target.object);
        let services = services.filter(|object| object.group.is_empty() && object.kind == "Service");
        services.filter_map(|object| {
            let ObjectKey { namespace, name } = policy;
            let service = ObjectKey::new(namespace.clone(), object.name.as_str());
            let is_missing = !snapshot.services.contains_key(&service);
            is_missing.then(|| Remark {
                key: Some(format!("BackendTLSPolicy {namespace}/{name} spec.targetRefs")),
                message: format!(
                    "Service {namespace}/{} does not exist, so that the policy is for nobody: create it, or name another",
                    object.name
                ),
            })
        })
    })
}
