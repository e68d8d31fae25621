//! The Snapshot that is being built: objects come and go one by one, and taking a copy costs a few pointers.

use crate::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, HttpRoute, Ingress,
    IngressClass, Issuer, Kind, ListenerSet, Malformed, Meta, Namespace, ObjectKey, ReferenceGrant,
    Secret, Service, Snapshot, StreamRoute,
};
use imbl::OrdMap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// An object of any kind, trimmed and shared.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// networking.k8s.io/v1 Ingress.
    Ingress(Arc<Ingress>),
    /// networking.k8s.io/v1 IngressClass.
    IngressClass(Arc<IngressClass>),
    /// v1 Service.
    Service(Arc<Service>),
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice(Arc<EndpointSlice>),
    /// v1 Secret.
    Secret(Arc<Secret>),
    /// v1 ConfigMap.
    ConfigMap(Arc<ConfigMap>),
    /// v1 Namespace.
    Namespace(Arc<Namespace>),
    /// gateway.networking.k8s.io/v1 GatewayClass.
    GatewayClass(Arc<GatewayClass>),
    /// gateway.networking.k8s.io/v1 Gateway.
    Gateway(Arc<Gateway>),
    /// gateway.networking.k8s.io/v1 ListenerSet.
    ListenerSet(Arc<ListenerSet>),
    /// gateway.networking.k8s.io/v1 HTTPRoute.
    HttpRoute(Arc<HttpRoute>),
    /// gateway.networking.k8s.io/v1 TCPRoute, UDPRoute or TLSRoute.
    StreamRoute(Arc<StreamRoute>),
    /// gateway.networking.k8s.io/v1 BackendTLSPolicy.
    BackendTlsPolicy(Arc<BackendTlsPolicy>),
    /// gateway.networking.k8s.io/v1beta1 ReferenceGrant.
    ReferenceGrant(Arc<ReferenceGrant>),
}

impl Object {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta().key
    }

    /// What all kinds have.
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Ingress(object) => &object.meta,
            Self::IngressClass(object) => &object.meta,
            Self::Service(object) => &object.meta,
            Self::EndpointSlice(object) => &object.meta,
            Self::Secret(object) => &object.meta,
            Self::ConfigMap(object) => &object.meta,
            Self::Namespace(object) => &object.meta,
            Self::GatewayClass(object) => &object.meta,
            Self::Gateway(object) => &object.meta,
            Self::ListenerSet(object) => &object.meta,
            Self::HttpRoute(object) => &object.meta,
            Self::StreamRoute(object) => &object.meta,
            Self::BackendTlsPolicy(object) => &object.meta,
            Self::ReferenceGrant(object) => &object.meta,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ingress(_) => Kind::Ingress,
            Self::IngressClass(_) => Kind::IngressClass,
            Self::Service(_) => Kind::Service,
            Self::EndpointSlice(_) => Kind::EndpointSlice,
            Self::Secret(_) => Kind::Secret,
            Self::ConfigMap(_) => Kind::ConfigMap,
            Self::Namespace(_) => Kind::Namespace,
            Self::GatewayClass(_) => Kind::GatewayClass,
            Self::Gateway(_) => Kind::Gateway,
            Self::ListenerSet(_) => Kind::ListenerSet,
            Self::HttpRoute(object) => object.kind,
            Self::StreamRoute(object) => object.kind,
            Self::BackendTlsPolicy(_) => Kind::BackendTlsPolicy,
            Self::ReferenceGrant(_) => Kind::ReferenceGrant,
        }
    }
}

impl Snapshot {
    /// The object of that kind and name; EndpointSlices are found by their Service alone.
    pub fn object(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        let route = || (kind, key.clone());
        match kind {
            Kind::Ingress => self.ingresses.get(key).cloned().map(Object::Ingress),
            Kind::IngressClass => {
                self.classes.as_ref()?.get(key).cloned().map(Object::IngressClass)
            }
            Kind::Service => self.services.get(key).cloned().map(Object::Service),
            Kind::EndpointSlice => None,
            Kind::Secret => self.secrets.get(key).cloned().map(Object::Secret),
            Kind::ConfigMap => self.config_maps.get(key).cloned().map(Object::ConfigMap),
            Kind::Namespace => self.namespaces.get(key).cloned().map(Object::Namespace),
            Kind::GatewayClass => self.gateway_classes.get(key).cloned().map(Object::GatewayClass),
            Kind::Gateway => self.gateways.get(key).cloned().map(Object::Gateway),
            Kind::ListenerSet => self.listener_sets.get(key).cloned().map(Object::ListenerSet),
            Kind::HttpRoute | Kind::GrpcRoute => {
                self.http_routes.get(&route()).cloned().map(Object::HttpRoute)
            }
            Kind::TcpRoute | Kind::UdpRoute | Kind::TlsRoute => {
                self.stream_routes.get(&route()).cloned().map(Object::StreamRoute)
            }
            Kind::BackendTlsPolicy => {
                self.backend_tls.get(key).cloned().map(Object::BackendTlsPolicy)
            }
            Kind::ReferenceGrant => self.grants.get(key).cloned().map(Object::ReferenceGrant),
        }
    }
}

/// The Snapshot that is being built.
#[derive(Clone, Debug, Default)]
pub struct Store {
    snapshot: Snapshot,
    /// Something changed since the last `publish`.
    changed: bool,
    /// The Service of each EndpointSlice that has one: where in the Snapshot the slice is.
    slice_services: HashMap<ObjectKey, ObjectKey>,
}

impl Store {
    /// The Snapshot as it is by now.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The Snapshot, if anything changed since the last time.
    pub fn publish(&mut self) -> Option<Snapshot> {
        std::mem::take(&mut self.changed).then(|| self.snapshot.clone())
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, object: Object) {
        if self.is_known(&object) {
            return;
        }
        self.changed = true;
        let key = object.key().clone();
        match object {
            Object::Ingress(object) => drop(self.snapshot.ingresses.insert(key, object)),
            Object::IngressClass(object) => {
                drop(self.snapshot.classes.get_or_insert_default().insert(key, object));
            }
            Object::Service(object) => drop(self.snapshot.services.insert(key, object)),
            Object::EndpointSlice(object) => self.put_slice(key, object),
            Object::Secret(object) => drop(self.snapshot.secrets.insert(key, object)),
            Object::ConfigMap(object) => drop(self.snapshot.config_maps.insert(key, object)),
            Object::Namespace(object) => drop(self.snapshot.namespaces.insert(key, object)),
            Object::GatewayClass(object) => drop(self.snapshot.gateway_classes.insert(key, object)),
            Object::Gateway(object) => drop(self.snapshot.gateways.insert(key, object)),
            Object::ListenerSet(object) => drop(self.snapshot.listener_sets.insert(key, object)),
            Object::HttpRoute(object) => {
                drop(self.snapshot.http_routes.insert((object.kind, key), object));
            }
            Object::StreamRoute(object) => {
                drop(self.snapshot.stream_routes.insert((object.kind, key), object));
            }
            Object::BackendTlsPolicy(object) => drop(self.snapshot.backend_tls.insert(key, object)),
            Object::ReferenceGrant(object) => drop(self.snapshot.grants.insert(key, object)),
        }
    }

    /// Whether exactly this is there already: then it keeps its place in memory, and nothing downstream takes it for
    /// changed. A list that is taken again after an interruption says mostly what is known.
    fn is_known(&self, object: &Object) -> bool {
        let (key, all) = (object.key(), &self.snapshot);
        match object {
            Object::EndpointSlice(new) => {
                let service = self.slice_services.get(key);
                let slices = service.and_then(|service| all.slices.get(service));
                slices.and_then(|slices| slices.get(key)) == Some(new)
            }
            _ => all.object(object.kind(), key).as_ref() == Some(object),
        }
    }

    /// Takes an object away, if it is there.
    pub fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        let all = &mut self.snapshot;
        self.changed |= match kind {
            Kind::Ingress => all.ingresses.remove(key).is_some(),
            Kind::IngressClass => {
                all.classes.as_mut().is_some_and(|classes| classes.remove(key).is_some())
            }
            Kind::Service => all.services.remove(key).is_some(),
            Kind::EndpointSlice => self.remove_slice(key),
            Kind::Secret => all.secrets.remove(key).is_some(),
            Kind::ConfigMap => all.config_maps.remove(key).is_some(),
            Kind::Namespace => all.namespaces.remove(key).is_some(),
            Kind::GatewayClass => all.gateway_classes.remove(key).is_some(),
            Kind::Gateway => all.gateways.remove(key).is_some(),
            Kind::ListenerSet => all.listener_sets.remove(key).is_some(),
            Kind::HttpRoute | Kind::GrpcRoute => {
                all.http_routes.remove(&(kind, key.clone())).is_some()
            }
            Kind::TcpRoute | Kind::UdpRoute | Kind::TlsRoute => {
                all.stream_routes.remove(&(kind, key.clone())).is_some()
            }
            Kind::BackendTlsPolicy => all.backend_tls.remove(key).is_some(),
            Kind::ReferenceGrant => all.grants.remove(key).is_some(),
        };
    }

    /// Says whether IngressClasses can be listed at all.
    pub fn set_classes_known(&mut self, known: bool) {
        self.changed |= known != self.snapshot.classes.is_some();
        if known {
            self.snapshot.classes.get_or_insert_default();
        } else {
            self.snapshot.classes = None;
        }
    }

    /// Says of which kinds nobody knows what they say.
    pub fn set_unlisted(&mut self, unlisted: BTreeSet<Kind>) {
        self.changed |= unlisted != self.snapshot.unlisted;
        self.snapshot.unlisted = unlisted;
    }

    /// Adds an Issuer; one that goes stays known, since nothing is served by it.
    pub fn put_issuer(&mut self, issuer: Issuer) {
        self.snapshot.issuers.insert(issuer.key.clone(), Arc::new(issuer));
    }

    /// Reports something that could not be read.
    pub fn report(&mut self, id: Arc<str>, malformed: Malformed) {
        self.changed = true;
        self.snapshot.malformed.insert(id, Arc::new(malformed));
    }

    /// Takes a report back.
    pub fn withdraw(&mut self, id: &str) {
        self.changed |= self.snapshot.malformed.remove(id).is_some();
    }

    /// All namespaced objects of one namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Object> {
        let all = &self.snapshot;
        let mut found = Vec::new();
        found.extend(within(&all.ingresses, namespace).map(|o| Object::Ingress(o.clone())));
        found.extend(within(&all.services, namespace).map(|o| Object::Service(o.clone())));
        found.extend(within(&all.secrets, namespace).map(|o| Object::Secret(o.clone())));
        found.extend(within(&all.config_maps, namespace).map(|o| Object::ConfigMap(o.clone())));
        found.extend(within(&all.gateways, namespace).map(|o| Object::Gateway(o.clone())));
        let sets = within(&all.listener_sets, namespace);
        found.extend(sets.map(|o| Object::ListenerSet(o.clone())));
        let routes = all.http_routes.values();
        let routes = routes.filter(|route| &*route.meta.key.namespace == namespace);
        found.extend(routes.map(|route| Object::HttpRoute(route.clone())));
        let routes = all.stream_routes.values();
        let routes = routes.filter(|route| &*route.meta.key.namespace == namespace);
        found.extend(routes.map(|route| Object::StreamRoute(route.clone())));
        let policies = within(&all.backend_tls, namespace);
        found.extend(policies.map(|o| Object::BackendTlsPolicy(o.clone())));
        found.extend(within(&all.grants, namespace).map(|o| Object::ReferenceGrant(o.clone())));
        for slices in within(&all.slices, namespace) {
            found.extend(slices.values().map(|o| Object::EndpointSlice(o.clone())));
        }
        found
    }

    fn put_slice(&mut self, key: ObjectKey, slice: Arc<EndpointSlice>) {
        let service = slice
            .service
            .as_ref()
            .map(|name| ObjectKey { namespace: key.namespace.clone(), name: name.clone() });
        if self.slice_services.get(&key) != service.as_ref() {
            self.remove_slice(&key);
        }
        // Nothing leads to the endpoints of a slice that names no Service.
        if let Some(service) = service {
            let slices = self.snapshot.slices.entry(service.clone()).or_default();
            Arc::make_mut(slices).insert(key.clone(), slice);
            self.slice_services.insert(key, service);
        }
    }

    fn remove_slice(&mut self, key: &ObjectKey) -> bool {
        let Some(service) = self.slice_services.remove(key) else { return false };
        if let Some(slices) = self.snapshot.slices.get_mut(&service) {
            let slices = Arc::make_mut(slices);
            slices.remove(key);
            if slices.is_empty() {
                self.snapshot.slices.remove(&service);
            }
        }
        true
    }
}

/// The values of one namespace.
fn within<'a, V>(
    map: &'a OrdMap<ObjectKey, V>,
    namespace: &'a str,
) -> impl Iterator<Item = &'a V> + use<'a, V> {
    map.range(ObjectKey::new(namespace, "")..)
        .take_while(move |(key, _)| &*key.namespace == namespace)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trim::trimmed;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::json;

    fn slice(name: &str, service: Option<&str>) -> Object {
        trimmed::<EndpointSlice>(json!({
            "metadata": {
                "name": name, "namespace": "shop",
                "labels": service.map(|name| json!({"kubernetes.io/service-name": name})),
            },
            "addressType": "IPv4", "endpoints": [],
        }))
    }

    fn services(store: &Store) -> Vec<(String, usize)> {
        let slices = store.snapshot().slices.iter();
        slices.map(|(key, slices)| (key.name.to_string(), slices.len())).collect()
    }

    #[test]
    fn a_slice_is_found_under_its_service_also_after_the_label_changed() {
        let mut store = Store::default();
        store.put(slice("a", Some("web")));
        store.put(slice("b", Some("web")));
        store.put(slice("c", None));
        assert_eq!(services(&store), [("web".to_owned(), 2)]);
        store.put(slice("a", Some("api")));
        assert_eq!(services(&store), [("api".to_owned(), 1), ("web".to_owned(), 1)]);
        store.put(slice("a", None));
        store.remove(Kind::EndpointSlice, &ObjectKey::new("shop", "b"));
        assert_eq!(services(&store), []);
    }

    #[test]
    fn a_copy_does_not_see_later_changes() {
        let mut store = Store::default();
        store.put(slice("a", Some("web")));
        let before = store.snapshot().clone();
        store.put(slice("b", Some("web")));
        assert_eq!(before.slices.values().next().map(|slices| slices.len()), Some(1));
    }

    #[test]
    fn putting_what_is_known_changes_nothing() {
        let mut store = Store::default();
        store.put(slice("a", Some("web")));
        assert!(store.publish().is_some());
        store.put(slice("a", Some("web")));
        store.remove(Kind::Service, &ObjectKey::new("shop", "web"));
        store.withdraw("nothing");
        assert_eq!(store.publish(), None);
        store.put(slice("a", Some("api")));
        assert!(store.publish().is_some());
    }

    #[test]
    fn a_namespace_is_listed_without_its_neighbours() {
        let mut store = Store::default();
        store.put(slice("a", Some("web")));
        assert_eq!(store.in_namespace("shop").len(), 1);
        assert_eq!(store.in_namespace("sho").len(), 0);
        assert_eq!(store.in_namespace("shop2").len(), 0);
    }
}
