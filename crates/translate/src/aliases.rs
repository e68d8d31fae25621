//! ExternalName Services that name another Service of the cluster: they lead to its endpoints directly, without DNS
//! (compat/decisions.md).

use objects::{ObjectKey, Service, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// The Service that a cluster's DNS knows as `name`: `<service>.<namespace>.svc`, with or without `cluster.local`.
pub(crate) fn service_named(name: &str) -> Option<ObjectKey> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let name = name.strip_suffix(".cluster.local").unwrap_or(&name);
    let (service, namespace) = name.strip_suffix(".svc")?.split_once('.')?;
    (!service.is_empty() && !namespace.is_empty() && !namespace.contains('.'))
        .then(|| ObjectKey::new(namespace, service))
}

/// Which ExternalName Services lead to which Service.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Aliases {
    /// Takes a Service that may have changed.
    pub(crate) fn follow(&mut self, key: &ObjectKey, old: &Snapshot, new: &Snapshot) {
        if let Some(before) = led_to(key, old)
            && let Some(aliases) = self.of.get_mut(&before)
        {
            aliases.remove(key);
            if aliases.is_empty() {
                self.of.remove(&before);
            }
        }
        if let Some(now) = led_to(key, new) {
            self.of.entry(now).or_default().insert(key.clone());
        }
    }

    /// The Services that lead to `key`.
    pub(crate) fn of(&self, key: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.of.get(key).into_iter().flatten()
    }
}

fn led_to(key: &ObjectKey, snapshot: &Snapshot) -> Option<ObjectKey> {
    let service: &Service = snapshot.services.get(key)?;
    let name = service.external_name.as_deref().filter(|_| service.kind == "ExternalName")?;
    service_named(name)
}

#[cfg(test)]
mod tests {
    use super::service_named;
    use objects::ObjectKey;

    #[test]
    fn names_of_the_clusters_dns_are_told_from_others() {
        let echo = Some(ObjectKey::new("demo", "echo"));
        assert_eq!(service_named("echo.demo.svc.cluster.local"), echo);
        assert_eq!(service_named("Echo.demo.svc."), echo);
        assert_eq!(service_named("echo.demo.example"), None);
        assert_eq!(service_named("pod.echo.demo.svc"), None);
    }
}
