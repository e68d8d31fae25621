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
        let ObjectKey { namespace, name } = &ingress.meta.key;
        let name = (Arc::clone(namespace), Arc::clone(name));
        Self { created: ingress.meta.created, name: Reverse(name) }
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
