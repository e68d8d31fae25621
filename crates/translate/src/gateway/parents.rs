//! What routes name as their parents: Gateways, and ListenerSets that add to them.

use super::listeners::State;
use objects::gateway::{GROUP, ParentRef};
use objects::{ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An object that a route names as its parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Parent {
    /// A Gateway, for its own listeners.
    Gateway(ObjectKey),
    /// A ListenerSet.
    Set(ObjectKey),
}

impl Parent {
    /// What a route of this namespace names; none if it is of a kind that nobody here knows.
    fn read(named: &ParentRef, own: &Arc<str>) -> Option<Self> {
        let key = || named.object.key(own);
        match (&*named.object.group, &*named.object.kind) {
            (GROUP, "Gateway") => Some(Self::Gateway(key())),
            (GROUP, "ListenerSet") => Some(Self::Set(key())),
            _ => None,
        }
    }

    /// The first one that may be of the same kind and in the same namespace.
    pub(super) fn first_beside(&self) -> Self {
        let first = |key: &ObjectKey| ObjectKey::new(key.namespace.clone(), "");
        match self {
            Self::Gateway(key) => Self::Gateway(first(key)),
            Self::Set(key) => Self::Set(first(key)),
        }
    }

    /// Whether it is of the same kind and in the same namespace.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Gateway(own), Self::Gateway(other)) | (Self::Set(own), Self::Set(other)) => {
                own.namespace == other.namespace
            }
            (Self::Gateway(_), Self::Set(_)) | (Self::Set(_), Self::Gateway(_)) => false,
        }
    }

    /// Whose listeners are meant: a Gateway of ours, and the number of its ListenerSet.
    fn find<'a>(
        &self,
        gateways: &'a BTreeMap<ObjectKey, State>,
        snapshot: &Snapshot,
    ) -> Option<(&'a State, Option<usize>)> {
        match self {
            Self::Gateway(key) => Some((gateways.get(key)?, None)),
            Self::Set(key) => {
                let gateway = snapshot.listener_sets.get(key)?.gateway()?;
                let state = gateways.get(&gateway)?;
                let place = state.sets.iter().position(|set| set.object.meta.key == *key)?;
                Some((state, Some(place)))
            }
        }
    }
}

/// What a route names as a parent that is ours, and whose listeners are meant.
pub(super) type Ours<'a, 'r> = (&'r ParentRef, (&'a State, Option<usize>));

/// What a route of this namespace names.
pub(super) fn parents(named: &[ParentRef], own: &Arc<str>) -> BTreeSet<Parent> {
    named.iter().filter_map(|named| Parent::read(named, own)).collect()
}

/// The parents of a route of this namespace that are ours, with whose listeners are meant.
pub(super) fn ours<'a, 'r>(
    named: &'r [ParentRef],
    own: &Arc<str>,
    gateways: &'a BTreeMap<ObjectKey, State>,
    snapshot: &Snapshot,
) -> Vec<Ours<'a, 'r>> {
    let ours = named
        .iter()
        .filter_map(|named| Some((named, Parent::read(named, own)?.find(gateways, snapshot)?)));
    ours.collect()
}
