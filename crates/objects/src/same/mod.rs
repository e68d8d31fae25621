//! Whether two versions of an object ask for the same. The API server counts versions, and controllers write into the
//! status; neither is a change for whoever reads what an object asks for.

use crate::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, HttpRoute, Ingress,
    IngressClass, ListenerSet, Malformed, Meta, Namespace, ObjectKey, ReferenceGrant, Secret,
    Service, StreamRoute,
};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::sync::Arc;

/// The keys of what is in one of two maps only, or is another value in which `is_same` sees a difference.
pub fn differing<'a, K: Ord + Clone, V: PartialEq>(
    old: &'a OrdMap<K, Arc<V>>,
    new: &'a OrdMap<K, Arc<V>>,
    is_same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = &'a K> {
    old.diff(new).filter_map(move |item| match item {
        DiffItem::Add(key, _) | DiffItem::Remove(key, _) => Some(key),
        DiffItem::Update { old: (_, a), new: (key, b) } => {
            (!Arc::ptr_eq(a, b) && !is_same(a, b)).then_some(key)
        }
    })
}

/// What is kept of a kind of object.
pub trait Asks: PartialEq {
    /// Whether nothing but the status differs, and the numbers that the API server counts versions with.
    fn asks_the_same_as(&self, other: &Self) -> bool {
        self == other
    }
}

impl Asks for Ingress {
    fn asks_the_same_as(&self, other: &Self) -> bool {
        let Self { meta, class, default_backend, rules, tls, addresses: _ } = self;
        let Meta { key, uid, created, generation: _, resource_version: _, annotations } = meta;
        *key == other.meta.key
            && *uid == other.meta.uid
            && *created == other.meta.created
            && *annotations == other.meta.annotations
            && *class == other.class
            && *default_backend == other.default_backend
            && *rules == other.rules
            && *tls == other.tls
    }
}

impl Asks for Secret {
    fn asks_the_same_as(&self, other: &Self) -> bool {
        let Self { meta, kind, data } = self;
        let meta = Meta { resource_version: other.meta.resource_version.clone(), ..meta.clone() };
        meta == other.meta && *kind == other.kind && *data == other.data
    }
}

// What these are told names the generation that it is about: that counts.
macro_rules! told {
    ($($kind:ty, $($told:ident)?;)*) => {$(
        impl Asks for $kind {
            fn asks_the_same_as(&self, other: &Self) -> bool {
                if self.meta.generation != other.meta.generation {
                    return false;
                }
                let mut this = self.clone();
                this.meta.resource_version = other.meta.resource_version.clone();
                $(this.$told.clone_from(&other.$told);)?
                this == *other
            }
        }
    )*};
}

told! {
    GatewayClass, ;
    Gateway, published;
    ListenerSet, ;
    HttpRoute, told_by;
    StreamRoute, told_by;
    BackendTlsPolicy, ;
}

// Of these no version and no status is kept.
impl Asks for IngressClass {}
impl Asks for Service {}
impl Asks for EndpointSlice {}
impl Asks for ConfigMap {}
impl Asks for Namespace {}
impl Asks for ReferenceGrant {}
impl Asks for Malformed {}
impl Asks for OrdMap<ObjectKey, Arc<EndpointSlice>> {}

#[cfg(test)]
mod tests;
