//! Which Ingress something comes from, and which of two is older.

use model::{Kind, Origin};
use objects::{InText, Ingress, ObjectKey};
use std::cmp::Reverse;
use std::sync::Arc;

/// Which Ingress is older, of two as old the one whose `namespace/name` is the greater text
/// (compat/behaviour.md section 3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    created: i64,
    name: Reverse<InText<ObjectKey>>,
}

impl Age {
    /// The age of an Ingress.
    pub(crate) fn of(ingress: &Ingress) -> Self {
        Self::new(&ingress.meta.key, ingress.meta.created)
    }

    /// The age of an Ingress of this name that was made then.
    pub(crate) fn new(key: &ObjectKey, created: i64) -> Self {
        Self { created, name: Reverse(InText(key.clone())) }
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
