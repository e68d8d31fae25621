//! From the difference of two Snapshots to what has to be looked at again.

use imbl::OrdMap;
use objects::{Asks, Kind, ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The keys of what differs between two Snapshots.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) ingresses: BTreeSet<ObjectKey>,
    /// Services that changed, or whose EndpointSlices did.
    pub(super) services: BTreeSet<ObjectKey>,
    pub(super) secrets: Vec<ObjectKey>,
    pub(super) config_maps: BTreeSet<ObjectKey>,
    pub(super) malformed: Vec<Arc<str>>,
}

impl Touched {
    pub(super) fn between(old: &Snapshot, new: &Snapshot) -> Self {
        let services =
            differing(&old.services, &new.services).chain(differing(&old.slices, &new.slices));
        let mut secrets: BTreeSet<_> = differing(&old.secrets, &new.secrets).cloned().collect();
        // Whether a Secret is missing or could not be read makes a difference to whoever names it.
        let unread = differing(&old.malformed, &new.malformed);
        let unread =
            unread.flat_map(|id| old.malformed.get(id).into_iter().chain(new.malformed.get(id)));
        let objects = unread.filter_map(|it| it.object());
        secrets.extend(objects.filter(|(kind, _)| *kind == Kind::Secret).map(|(_, key)| key));
        Self {
            ingresses: differing(&old.ingresses, &new.ingresses).cloned().collect(),
            services: services.cloned().collect(),
            secrets: secrets.into_iter().collect(),
            config_maps: differing(&old.config_maps, &new.config_maps).cloned().collect(),
            malformed: differing(&old.malformed, &new.malformed).cloned().collect(),
        }
    }
}

/// The keys of what differs in what it asks for.
pub(crate) fn differing<'a, K: Ord + Clone, V: Asks>(
    old: &'a OrdMap<K, Arc<V>>,
    new: &'a OrdMap<K, Arc<V>>,
) -> impl Iterator<Item = &'a K> {
    objects::differing(old, new, V::asks_the_same_as)
}

#[cfg(test)]
mod tests;
