//! What is wrong with objects that are neither Ingresses, nor of the Gateway API, nor the controller's ConfigMap: the
//! ConfigMaps of TCP and UDP services, and what flags name.

use super::remark::Remark;
use crate::{Options, Translation, streams};
use model::{Kind, Problem};
use objects::{Malformed, ObjectKey, Snapshot};

/// Their problems, but for what was not read, which is told as such.
pub(super) fn problems(
    snapshot: &Snapshot,
    translation: &Translation,
    options: &Options,
) -> Vec<Remark> {
    let is_told_here = |problem: &&Problem| {
        let origin = &problem.origin;
        let kind = objects::Kind::ALL.into_iter().find(|kind| kind.name() == origin.kind.name());
        let key = ObjectKey::new(origin.namespace.clone(), origin.name.clone());
        let told = match origin.kind {
            Kind::Ingress | Kind::File => true,
            Kind::ConfigMap => options.config_map.as_ref() == Some(&key),
            _ => kind.is_some_and(|kind| kind.api_version().starts_with("gateway.networking.")),
        };
        !told && !kind.is_some_and(|kind| Malformed::is_among(&snapshot.malformed, kind, &key))
    };
    let remark = |problem: &Problem| {
        let key = problem.key.as_deref().map(|key| format!(" {key}")).unwrap_or_default();
        Remark {
            key: Some(format!("{}{key}", problem.origin)),
            message: problem.message.to_string(),
        }
    };
    translation.problems.iter().filter(is_told_here).map(remark).collect()
}

/// ConfigMaps that look like TCP or UDP services and that no flag names: their ports would be closed.
pub(super) fn unnamed_services(snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let named = [&options.tcp_services, &options.udp_services];
    let looks_like_it = snapshot.config_maps.iter().filter(|(key, map)| {
        !named.contains(&&Some((*key).clone()))
            && !map.data.is_empty()
            && map.data.iter().all(|(name, value)| streams::is_entry(name, value))
    });
    let remark = |key: &ObjectKey| {
        let ObjectKey { namespace, name } = key;
        let kind = if name.contains("udp") { "udp" } else { "tcp" };
        Remark {
            key: Some(format!("ConfigMap {namespace}/{name}")),
            message: format!(
                "looks like services of ports, and no flag names it, so that nothing of it was checked: give \
                 --{kind}-services-configmap={namespace}/{name} if the controller has it"
            ),
        }
    };
    looks_like_it.map(|(key, _)| remark(key)).collect()
}
