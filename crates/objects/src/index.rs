//! Which Ingresses a changed Secret, ConfigMap or Service touches: the references of Ingresses, read backwards.

use crate::ObjectKey;
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;

/// Something that an Ingress names, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// A Secret.
    Secret(ObjectKey),
    /// A ConfigMap.
    ConfigMap(ObjectKey),
    /// A Service, and with it the EndpointSlices of that Service.
    Service(ObjectKey),
}

/// From references back to the Ingresses that hold them. A copy costs a few pointers, a change the logarithm of the
/// number of Ingresses for each reference that comes or goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReverseIndex {
    /// What each Ingress refers to: sorted, without repetition, never empty.
    references: OrdMap<ObjectKey, Arc<[Reference]>>,
    /// Who refers to each thing; never an empty set.
    ingresses: OrdMap<Reference, OrdSet<ObjectKey>>,
}

impl ReverseIndex {
    /// Says what an Ingress refers to from now on; what it referred to before is forgotten.
    pub fn set(&mut self, ingress: ObjectKey, mut references: Vec<Reference>) {
        references.sort_unstable();
        references.dedup();
        let before = if references.is_empty() {
            self.references.remove(&ingress)
        } else {
            self.references.insert(ingress.clone(), references.as_slice().into())
        };
        let before = before.unwrap_or_default();
        if *before == *references {
            return;
        }
        for gone in before.iter().filter(|old| references.binary_search(old).is_err()) {
            self.forget(gone, &ingress);
        }
        for new in references {
            if before.binary_search(&new).is_err() {
                self.ingresses.entry(new).or_default().insert(ingress.clone());
            }
        }
    }

    /// Forgets an Ingress.
    pub fn remove(&mut self, ingress: &ObjectKey) {
        if let Some(references) = self.references.remove(ingress) {
            for reference in references.iter() {
                self.forget(reference, ingress);
            }
        }
    }

    /// The Ingresses that refer to something, in order.
    pub fn touched_by(&self, reference: &Reference) -> impl Iterator<Item = &ObjectKey> {
        self.ingresses.get(reference).into_iter().flatten()
    }

    /// What an Ingress refers to, in order.
    pub fn references_of(&self, ingress: &ObjectKey) -> &[Reference] {
        self.references.get(ingress).map_or(&[], |references| references)
    }

    /// Whether any Ingress refers to this.
    pub fn is_referenced(&self, reference: &Reference) -> bool {
        self.ingresses.contains_key(reference)
    }

    /// Everything that any Ingress refers to, in order.
    pub fn referenced(&self) -> impl Iterator<Item = &Reference> {
        self.ingresses.keys()
    }

    fn forget(&mut self, reference: &Reference, ingress: &ObjectKey) {
        if let Some(holders) = self.ingresses.get_mut(reference) {
            holders.remove(ingress);
            if holders.is_empty() {
                self.ingresses.remove(reference);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    fn secret(name: &str) -> Reference {
        Reference::Secret(key(name))
    }

    fn touched(index: &ReverseIndex, reference: &Reference) -> Vec<String> {
        index.touched_by(reference).map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn every_holder_of_a_reference_is_touched_once_and_in_order() {
        let mut index = ReverseIndex::default();
        index.set(key("b"), vec![secret("tls"), secret("tls")]);
        index.set(key("a"), vec![secret("tls"), Reference::Service(key("tls"))]);
        index.set(key("c"), vec![Reference::ConfigMap(key("tls"))]);
        assert_eq!(touched(&index, &secret("tls")), ["a", "b"]);
        assert_eq!(touched(&index, &Reference::Service(key("tls"))), ["a"]);
        assert_eq!(touched(&index, &Reference::ConfigMap(key("tls"))), ["c"]);
        assert_eq!(touched(&index, &secret("other")), [""; 0]);
    }

    #[test]
    fn setting_again_forgets_what_is_no_longer_named_and_keeps_the_rest() {
        let mut index = ReverseIndex::default();
        index.set(key("a"), vec![secret("one"), secret("two")]);
        let before = index.clone();
        index.set(key("a"), vec![secret("three"), secret("two")]);
        assert!(!index.is_referenced(&secret("one")));
        assert_eq!(touched(&index, &secret("two")), ["a"]);
        assert_eq!(touched(&index, &secret("three")), ["a"]);
        assert_eq!(touched(&before, &secret("one")), ["a"], "a copy stays as it was");
    }

    #[test]
    fn nothing_is_left_behind_by_removal_or_by_an_empty_list() {
        let mut index = ReverseIndex::default();
        index.set(key("a"), vec![secret("one")]);
        index.set(key("b"), vec![secret("one"), secret("two")]);
        index.remove(&key("b"));
        assert_eq!(touched(&index, &secret("one")), ["a"]);
        index.set(key("a"), Vec::new());
        index.remove(&key("unknown"));
        assert_eq!(index, ReverseIndex::default());
    }
}
