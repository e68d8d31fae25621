//! What a cluster holds and what of it is shown: the namespaces that matter, and the data of referenced Secrets.

use super::{Referrer, SecretsOf};
use crate::watch::Change;
use imbl::OrdSet;
use objects::gateway::{FromNamespaces, Gateway};
use objects::{
    Kind, Malformed, Meta, Object, ObjectKey, Reference, ReverseIndex, Secret, Snapshot, Store,
    Unread,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::watch;

/// Names a class where IngressClasses cannot be read, too.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// What a cluster holds and what of it is shown.
pub(super) struct Contents {
    /// What is shown.
    shown: Store,
    /// What there is, when a selector shows only some of it.
    all: Option<Store>,
    pinned: HashSet<Reference>,
    secrets_of: SecretsOf,
    by_ingress: ReverseIndex,
    by_config_map: ReverseIndex,
    by_gateway: ReverseIndex,
    by_set: ReverseIndex,
    /// The Secrets whose data are kept, for the watches to know.
    wanted: watch::Sender<Option<OrdSet<ObjectKey>>>,
    /// Secrets about whose data something may have to be done.
    unsettled: BTreeSet<ObjectKey>,
    /// Secrets that were asked for and are ahead of their watch, in these versions.
    ahead: HashMap<ObjectKey, u64>,
}

impl Contents {
    pub(super) fn new(
        pinned: &[Reference],
        secrets_of: SecretsOf,
        has_selector: bool,
        wanted: watch::Sender<Option<OrdSet<ObjectKey>>>,
    ) -> Self {
        let mut contents = Self {
            shown: Store::default(),
            all: has_selector.then(Store::default),
            pinned: pinned.iter().cloned().collect(),
            secrets_of,
            by_ingress: ReverseIndex::default(),
            by_config_map: ReverseIndex::default(),
            by_gateway: ReverseIndex::default(),
            by_set: ReverseIndex::default(),
            wanted,
            unsettled: BTreeSet::new(),
            ahead: HashMap::new(),
        };
        contents.shown.set_classes_known(true);
        contents
    }

    /// The Snapshot, if anything changed since the last time.
    pub(super) fn publish(&mut self) -> Option<Snapshot> {
        self.shown.publish()
    }

    /// Says whether IngressClasses can be listed at all.
    pub(super) fn set_classes_known(&mut self, known: bool) {
        self.shown.set_classes_known(known);
    }

    /// How many Ingresses name an IngressClass and have no annotation that says as much.
    pub(super) fn naming_classes(&self) -> usize {
        let ingresses = self.shown.snapshot().ingresses.values();
        let has_annotation = |meta: &Meta| meta.annotations.contains_key(CLASS_ANNOTATION);
        ingresses.filter(|it| it.class.is_some() && !has_annotation(&it.meta)).count()
    }

    /// Says of which kinds nobody knows what they say.
    pub(super) fn set_unlisted(&mut self, unlisted: BTreeSet<Kind>) {
        self.shown.set_unlisted(unlisted);
    }

    /// Whether something depends on what this kind says: routes at Gateways on policies, Gateways that let them in on
    /// ListenerSets.
    pub(super) fn may_need(&self, kind: Kind) -> bool {
        let all = self.shown.snapshot();
        let lets_in = |gateway: &Arc<Gateway>| gateway.allowed_sets != FromNamespaces::None;
        match kind {
            Kind::BackendTlsPolicy => {
                let has_routes = !all.http_routes.is_empty() || !all.stream_routes.is_empty();
                has_routes && !all.gateways.is_empty()
            }
            Kind::ListenerSet => all.gateways.values().any(lets_in),
            _ => false,
        }
    }

    /// From now on it is known which Secrets are wanted, as far as the objects say that are there.
    pub(super) fn know_wanted(&mut self) {
        let unknown = self.wanted.borrow().is_none();
        if unknown {
            let referenced = self.by_ingress.referenced().chain(self.by_config_map.referenced());
            let referenced = referenced.chain(self.by_gateway.referenced());
            let referenced = referenced.chain(self.by_set.referenced());
            let wanted = referenced.chain(&self.pinned).filter_map(|reference| match reference {
                Reference::Secret(key) => Some(key.clone()),
                Reference::ConfigMap(_) | Reference::Service(_) => None,
            });
            self.wanted.send_replace(Some(wanted.collect()));
        }
    }

    /// Takes a change of which a watch tells. What it tells is how things are, even if it is of an older version than
    /// what was there: an API server may have been put back to a backup.
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Put(object) => {
                if !self.is_overtaken(&object) {
                    self.put(object);
                }
            }
            Change::Removed(kind, key) => {
                if kind == Kind::Secret {
                    self.ahead.remove(&key);
                }
                self.shown.withdraw(&kind.label(&key));
                if let Some(all) = &mut self.all {
                    all.remove(kind, &key);
                }
                self.hide(kind, &key);
            }
            Change::Malformed(kind, key, message) => {
                let id = kind.label(&key).into();
                let message = format!("{message}; its last good version, if any, still counts");
                self.shown.report(
                    id,
                    Malformed { kind: Some(kind), key, of: None, why: Unread::Wrong, message },
                );
            }
        }
    }

    /// Takes a Secret that was asked for when this version of it was known. False if it is not taken: its watch has
    /// told of a later one since.
    pub(super) fn fetched(&mut self, object: Object, asked: Option<u64>) -> bool {
        let Object::Secret(new) = &object else { return true };
        let key = new.meta.key.clone();
        // Its watch has told that it is gone.
        let Some(known) = self.secret(&key) else { return true };
        let (known_version, version) = (version(known), version(new));
        // Whoever asked after he heard of a version is told of that one or of a later one, unless there is none: the
        // API server was put back to a backup.
        if known_version != asked && known_version > version {
            return false;
        }
        if let Some(version) = version.filter(|version| Some(*version) > known_version) {
            self.ahead.insert(key, version);
        }
        self.put(object);
        true
    }

    /// A list of Secrets is here: nothing is ahead of it.
    pub(super) fn secrets_are_listed(&mut self) {
        self.ahead.clear();
    }

    /// In which version a Secret is known.
    pub(super) fn version_of(&self, key: &ObjectKey) -> Option<u64> {
        self.secret(key).and_then(|secret| version(secret))
    }

    fn put(&mut self, object: Object) {
        self.shown.withdraw(&object.kind().label(object.key()));
        if let Some(all) = &mut self.all {
            all.put(object.clone());
        }
        self.place(object);
    }

    /// Shows an object, or hides it, as its namespace says.
    fn place(&mut self, object: Object) {
        if !self.is_visible(&object) {
            return self.hide(object.kind(), object.key());
        }
        match &object {
            Object::Ingress(ingress) => {
                let secrets = (self.secrets_of)(Referrer::Ingress(ingress));
                self.refer(Kind::Ingress, object.key(), secrets);
            }
            Object::ConfigMap(map) => {
                let secrets = (self.secrets_of)(Referrer::ConfigMap(map));
                self.refer(Kind::ConfigMap, object.key(), secrets);
            }
            Object::Gateway(gateway) => {
                let secrets = (self.secrets_of)(Referrer::Gateway(gateway));
                self.refer(Kind::Gateway, object.key(), secrets);
            }
            Object::ListenerSet(set) => {
                let secrets = (self.secrets_of)(Referrer::ListenerSet(set));
                self.refer(Kind::ListenerSet, object.key(), secrets);
            }
            Object::Secret(secret) => drop(self.unsettled.insert(secret.meta.key.clone())),
            Object::Namespace(namespace) => {
                let name = namespace.meta.key.name.clone();
                if !self.shown.snapshot().namespaces.contains_key(&namespace.meta.key) {
                    self.shown.put(object);
                    return self.place_namespace(&name);
                }
            }
            Object::IngressClass(_)
            | Object::Service(_)
            | Object::EndpointSlice(_)
            | Object::GatewayClass(_)
            | Object::HttpRoute(_)
            | Object::StreamRoute(_)
            | Object::BackendTlsPolicy(_)
            | Object::ReferenceGrant(_) => {}
        }
        self.shown.put(object);
    }

    fn hide(&mut self, kind: Kind, key: &ObjectKey) {
        match kind {
            Kind::Ingress | Kind::ConfigMap | Kind::Gateway | Kind::ListenerSet => {
                self.refer(kind, key, Vec::new());
            }
            _ => {}
        }
        self.shown.remove(kind, key);
        if kind == Kind::Namespace {
            self.place_namespace(&key.name);
        }
    }

    /// Decides again about everything in a namespace.
    fn place_namespace(&mut self, namespace: &str) {
        let objects = self.all.as_ref().map(|all| all.in_namespace(namespace));
        for object in objects.unwrap_or_default() {
            self.place(object);
        }
    }

    fn is_visible(&self, object: &Object) -> bool {
        let key = object.key();
        if self.all.is_none() || !object.kind().is_namespaced() {
            return true;
        }
        let namespace = ObjectKey::new("", key.namespace.clone());
        if self.shown.snapshot().namespaces.contains_key(&namespace) {
            return true;
        }
        self.pinned.contains(&match object {
            Object::Secret(_) => Reference::Secret(key.clone()),
            Object::ConfigMap(_) => Reference::ConfigMap(key.clone()),
            Object::Service(_) => Reference::Service(key.clone()),
            Object::EndpointSlice(slice) => Reference::Service(ObjectKey {
                namespace: key.namespace.clone(),
                name: slice.service.clone().unwrap_or_default(),
            }),
            _ => return false,
        })
    }

    /// Notes which Secrets an object refers to now.
    fn refer(&mut self, kind: Kind, key: &ObjectKey, secrets: Vec<ObjectKey>) {
        let index = match kind {
            Kind::Ingress => &mut self.by_ingress,
            Kind::Gateway => &mut self.by_gateway,
            Kind::ListenerSet => &mut self.by_set,
            _ => &mut self.by_config_map,
        };
        let before = index.references_of(key);
        if before.is_empty() && secrets.is_empty() {
            return;
        }
        for reference in before {
            if let Reference::Secret(secret) = reference {
                self.unsettled.insert(secret.clone());
            }
        }
        self.unsettled.extend(secrets.iter().cloned());
        index.set(key.clone(), secrets.into_iter().map(Reference::Secret).collect());
    }

    fn is_wanted(&self, secret: &ObjectKey) -> bool {
        let reference = Reference::Secret(secret.clone());
        self.pinned.contains(&reference)
            || self.by_ingress.is_referenced(&reference)
            || self.by_config_map.is_referenced(&reference)
            || self.by_gateway.is_referenced(&reference)
            || self.by_set.is_referenced(&reference)
    }

    /// Drops the data that nothing refers to any more, and returns the Secrets whose data are missing.
    pub(super) fn settle(&mut self) -> Vec<ObjectKey> {
        // Before it is known what is wanted nothing was dropped, and nothing can be missing.
        if self.wanted.borrow().is_none() {
            return Vec::new();
        }
        let mut missing = Vec::new();
        for key in std::mem::take(&mut self.unsettled) {
            let wanted = self.is_wanted(&key);
            self.wanted.send_if_modified(|all| match (all, wanted) {
                (Some(all), true) => all.insert(key.clone()).is_none(),
                (Some(all), false) => all.remove(&key).is_some(),
                (None, _) => false,
            });
            let is_shown = self.shown.snapshot().secrets.contains_key(&key);
            let Some(secret) = self.secret(&key) else { continue };
            match (&secret.data, wanted) {
                (None, true) if is_shown => missing.push(key),
                (Some(_), false) => {
                    let mut secret = secret.clone();
                    Arc::make_mut(&mut secret).data = None;
                    if is_shown {
                        self.shown.put(Object::Secret(secret.clone()));
                    }
                    if let Some(all) = &mut self.all {
                        all.put(Object::Secret(secret));
                    }
                }
                (None, _) | (Some(_), true) => {}
            }
        }
        missing
    }

    /// Whether a Secret is shown without the data that something refers to.
    pub(super) fn lacks_data(&self, key: &ObjectKey) -> bool {
        let shown = self.shown.snapshot().secrets.get(key);
        self.is_wanted(key) && shown.is_some_and(|secret| secret.data.is_none())
    }

    fn secret(&self, key: &ObjectKey) -> Option<&Arc<Secret>> {
        let store = self.all.as_ref().unwrap_or(&self.shown);
        store.snapshot().secrets.get(key)
    }

    /// Whether a Secret of which its watch tells was asked for, and came in this version or a later one, of which the
    /// watch is about to tell.
    fn is_overtaken(&mut self, object: &Object) -> bool {
        let Object::Secret(new) = object else { return false };
        let key = &new.meta.key;
        let known = self.secret(key).filter(|known| known.meta.uid == new.meta.uid);
        let is_lacking = |known: &Arc<Secret>| {
            known.data.is_some() && new.data.is_none() && version(known) == version(new)
        };
        let lacks_data = known.is_some_and(is_lacking);
        let ahead = known.and_then(|_| self.ahead.get(key)).zip(version(new));
        if ahead.is_some_and(|(ahead, version)| version < *ahead) {
            return true;
        }
        self.ahead.remove(key);
        lacks_data
    }
}

/// The version, which is a number wherever it can be compared.
fn version(secret: &Secret) -> Option<u64> {
    secret.meta.resource_version.parse().ok()
}

#[cfg(test)]
mod tests;
