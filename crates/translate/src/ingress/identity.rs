//! Which Ingress something comes from, and which of two is older.

use model::{Kind, Origin};
use objects::{Ingress, ObjectKey};
use std::cmp::Reverse;
use std::sync::Arc;

/// Which Ingress is older, of two as old the one whose name is greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    created: i64,
    name: Reverse<(Arc<str>, Arc<str>)>,
}

impl Age {
    /// The age of an Ingress.
    pub(crate) fn of(ingress: &Ingress) -> Self {
        Self::new(&ingress.meta.key, ingress.meta.created)
    }

    /// The age of an Ingress of this name that was made then.
    pub(crate) fn new(key: &ObjectKey, created: i64) -> Self {
        let name = (Arc::clone(&key.namespace), Arc::clone(&key.name));
        Self { created, name: Reverse(name) }
    }
}

/// The origin of what an Ingress causes.
pub(crate) fn origin(key: &ObjectKey) -> Origin {
    Origin {
        kind: Kind::Ingress,
        namespace: Arc::clone(&key.namespace),
        name: Arc::clone(&key.name),
    }
}
