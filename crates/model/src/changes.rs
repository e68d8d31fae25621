//! What differs between two Configurations, so that engines work only on that.

use crate::{
    CertificateId, Configuration, ListenerId, RouteKey, ServerName, StreamPort, UpstreamId,
};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::sync::Arc;

/// The names of what was added, changed or removed from one Configuration to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether settings of the process as a whole changed.
    pub global: bool,
    /// Hosts whose server appeared, changed or went.
    pub servers: Vec<ServerName>,
    /// Hosts of Gateways that appeared, changed or went.
    pub routes: Vec<RouteKey>,
    /// Listeners of Gateways that appeared, changed or went.
    pub listeners: Vec<ListenerId>,
    /// Hosts of listeners, carried on, that appeared, changed or went.
    pub tls_routes: Vec<RouteKey>,
    /// Upstreams that appeared or whose endpoints changed or that went.
    pub upstreams: Vec<UpstreamId>,
    /// Certificates that appeared, changed or went, and whether the default one did.
    pub certificates: Vec<CertificateId>,
    /// Whether another certificate became the default one.
    pub default_certificate: bool,
    /// Ports of TCP and UDP services that appeared, changed or went.
    pub streams: Vec<StreamPort>,
}

impl Changes {
    /// Compares two Configurations; costs time by what differs, not by what there is.
    pub fn between(old: &Configuration, new: &Configuration) -> Self {
        Self {
            global: !Arc::ptr_eq(&old.global, &new.global) && old.global != new.global,
            servers: differing(&old.servers, &new.servers),
            routes: differing(&old.routes, &new.routes),
            listeners: differing(&old.listeners, &new.listeners),
            tls_routes: differing(&old.tls_routes, &new.tls_routes),
            upstreams: differing(&old.upstreams, &new.upstreams),
            certificates: differing(&old.certificates, &new.certificates),
            default_certificate: old.default_certificate != new.default_certificate,
            streams: differing(&old.streams, &new.streams),
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn differing<K: Ord + Clone, V: PartialEq>(
    old: &OrdMap<K, Arc<V>>,
    new: &OrdMap<K, Arc<V>>,
) -> Vec<K> {
    let same = |a: &Arc<V>, b: &Arc<V>| Arc::ptr_eq(a, b) || a == b;
    old.diff(new)
        .filter_map(|item| match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => Some(key.clone()),
            DiffItem::Update { old: (_, a), new: (key, b) } => (!same(a, b)).then(|| key.clone()),
        })
        .collect()
}
