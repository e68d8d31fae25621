//! What decides about a route besides itself: what it names, what that names, and nothing else, so that a review costs
//! the same in a cluster of any size.

use super::{Route, named};
use crate::{Options, gateway};
use objects::gateway::{
    BackendRef, GROUP, GrantFrom, GrantTo, ObjectRef, ReferenceGrant, RouteFilter,
};
use objects::{Gateway, Kind, ListenerSet, Meta, ObjectKey, Snapshot};
use std::sync::Arc;

/// The Snapshot with the route, and with what decides about it.
pub(super) fn around(route: &Route, snapshot: &Snapshot, options: &Options) -> Snapshot {
    let mut made = Around { from: snapshot, to: Snapshot::default() };
    let own = &route.key().namespace;
    made.namespace(own);
    made.to.config_maps.extend(options.config_map.iter().filter_map(|key| {
        let found = snapshot.config_maps.get(key)?;
        Some((key.clone(), found.clone()))
    }));
    for (kind, key) in route.parents().iter().filter_map(|parent| named(parent, route.key())) {
        if kind == Kind::ListenerSet {
            made.listener_set(&key);
        } else {
            made.gateway(&key);
        }
    }
    for backend in backends(route) {
        made.permit(route.kind(), own, &backend.object);
        let key = backend.object.key(own);
        if let Some(service) = snapshot.services.get(&key) {
            made.to.services.insert(key, service.clone());
        }
    }
    let id = (route.kind(), route.key().clone());
    match route {
        Route::Http(route) => drop(made.to.http_routes.insert(id, route.clone())),
        Route::Stream(route) => drop(made.to.stream_routes.insert(id, route.clone())),
    }
    made.to
}

struct Around<'a> {
    from: &'a Snapshot,
    to: Snapshot,
}

impl Around<'_> {
    fn namespace(&mut self, name: &Arc<str>) {
        let key = ObjectKey::new("", name.clone());
        if let Some(namespace) = self.from.namespaces.get(&key) {
            self.to.namespaces.insert(key, namespace.clone());
        }
    }

    fn listener_set(&mut self, key: &ObjectKey) {
        let Some(set) = self.from.listener_sets.get(key) else { return };
        self.namespace(&key.namespace);
        for secret in gateway::secrets_of_set(set) {
            self.secret(secret);
        }
        for named in certificates_of(set) {
            self.permit(Kind::ListenerSet, &key.namespace, named);
        }
        if let Some(gateway) = set.gateway() {
            self.gateway(&gateway);
        }
        self.to.listener_sets.insert(key.clone(), set.clone());
    }

    fn gateway(&mut self, key: &ObjectKey) {
        let Some(gateway) = self.from.gateways.get(key) else { return };
        self.namespace(&key.namespace);
        let class = ObjectKey::new("", gateway.class.as_str());
        if let Some(found) = self.from.gateway_classes.get(&class) {
            self.to.gateway_classes.insert(class, found.clone());
        }
        for secret in gateway::secrets_of(gateway) {
            self.secret(secret);
        }
        for named in references_of(gateway) {
            self.permit(Kind::Gateway, &key.namespace, named);
            let key = named.key(&key.namespace);
            if let Some(map) = self.from.config_maps.get(&key) {
                self.to.config_maps.insert(key, map.clone());
            }
        }
        self.to.gateways.insert(key.clone(), gateway.clone());
    }

    fn secret(&mut self, key: ObjectKey) {
        if let Some(secret) = self.from.secrets.get(&key) {
            self.to.secrets.insert(key, secret.clone());
        }
    }

    /// Grants what is granted, of all ReferenceGrants together, to one reference.
    fn permit(&mut self, kind: Kind, from: &Arc<str>, to: &ObjectRef) {
        let Some(namespace) = to.namespace.as_deref().filter(|namespace| *namespace != &**from)
        else {
            return;
        };
        let is_new = !self.to.grants.permit(kind.name(), from, to);
        if !is_new || !self.from.grants.permit(kind.name(), from, to) {
            return;
        }
        let key = ObjectKey::new(namespace, self.to.grants.len().to_string());
        let from = GrantFrom {
            group: GROUP.to_owned(),
            kind: kind.name().to_owned(),
            namespace: from.to_string(),
        };
        let (group, kind) = (to.group.clone(), to.kind.clone());
        let to = GrantTo { group: group.into(), kind: kind.into(), name: Some(to.name.clone()) };
        let meta = Meta { key: key.clone(), ..Meta::default() };
        let grant = ReferenceGrant { meta, from: vec![from], to: vec![to] };
        self.to.grants.insert(key, Arc::new(grant));
    }
}

/// The backends of a route, those of its mirrors and guards among them.
fn backends(route: &Route) -> Vec<&BackendRef> {
    match route {
        Route::Stream(route) => route.backends.iter().collect(),
        Route::Http(route) => {
            let rules = route.rules.iter();
            let of_rules = rules.clone().flat_map(|rule| &rule.backends);
            let filters = rules.flat_map(|rule| {
                let inner = rule.backends.iter().flat_map(|backend| &backend.filters);
                rule.filters.iter().chain(inner)
            });
            let of_filters = filters.filter_map(|filter| match filter {
                RouteFilter::Mirror(mirror) => Some(&mirror.backend),
                RouteFilter::Auth(auth) => Some(&auth.backend),
                _ => None,
            });
            of_rules.chain(of_filters).collect()
        }
    }
}

/// What a Gateway refers to.
fn references_of(gateway: &Gateway) -> impl Iterator<Item = &ObjectRef> {
    let tls = gateway.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let certificates = tls.flat_map(|tls| &tls.certificates).chain(&gateway.backend_certificate);
    let asked = gateway.frontend.iter().flat_map(|asked| {
        asked.default.iter().chain(asked.ports.iter().filter_map(|(_, one)| one.as_ref()))
    });
    certificates.chain(asked.flat_map(|asked| &asked.authorities))
}

fn certificates_of(set: &ListenerSet) -> impl Iterator<Item = &ObjectRef> {
    let tls = set.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    tls.flat_map(|tls| &tls.certificates)
}

#[cfg(test)]
mod tests {
    use super::{Route, around};
    use crate::Options;
    use objects::gateway::parse_route;
    use objects::{Kind, Object, Snapshot, snapshot_of};
    use std::fmt::Write;
    use std::path::Path;

    const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway}
spec: {controllerName: fairway/gateway-controller}
";

    /// As many of everything that a route may name.
    fn cluster(size: usize) -> Snapshot {
        let mut text = CLASS.to_owned();
        let api = "apiVersion: gateway.networking.k8s.io/v1";
        for n in 0..size {
            let meta = format!("metadata: {{name: o{n}, namespace: n{n}}}");
            write!(
                text,
                "---\n{api}\nkind: Gateway\n{meta}\nspec: {{gatewayClassName: fairway, listeners: [{{name: a, port: 443, \
                 protocol: HTTPS, tls: {{certificateRefs: [{{name: o0, namespace: n0}}]}}}}]}}\n\
                 ---\n{api}\nkind: ListenerSet\n{meta}\nspec: {{parentRef: {{name: o{n}}}, listeners: []}}\n\
                 ---\napiVersion: v1\nkind: Service\n{meta}\nspec: {{ports: [{{port: 80}}]}}\n\
                 ---\napiVersion: v1\nkind: Secret\n{meta}\ndata: {{}}\n\
                 ---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: n{n}}}\n\
                 ---\n{api}beta1\nkind: ReferenceGrant\n{meta}\nspec: {{from: [{{group: gateway.networking.k8s.io, \
                 kind: HTTPRoute, namespace: n0}}], to: [{{group: '', kind: Service}}]}}\n"
            )
            .expect("a String takes all");
        }
        snapshot_of([(Path::new("in.yaml"), text.as_str())])
    }

    #[test]
    fn a_review_looks_at_what_is_named_and_at_nothing_else_of_the_cluster() {
        let snapshot = cluster(200);
        assert_eq!((snapshot.gateways.len(), snapshot.grants.len()), (200, 200));
        let json = r#"{"metadata": {"name": "r", "namespace": "n0"}, "spec": {
            "parentRefs": [{"name": "o1", "namespace": "n1"}, {"kind": "ListenerSet", "name": "o2", "namespace": "n2"}],
            "rules": [{"backendRefs": [{"name": "o3", "namespace": "n3", "port": 80}, {"name": "o0", "port": 80}],
                "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef":
                    {"name": "o4", "namespace": "n4", "port": 80}}}, {"type": "ExternalAuth", "externalAuth":
                    {"protocol": "HTTP", "backendRef": {"name": "o5", "namespace": "n5", "port": 80}}}]}]}}"#;
        let Ok(Object::HttpRoute(route)) = parse_route(Kind::HttpRoute, json) else {
            panic!("it is a route")
        };
        let small = around(&Route::Http(route), &snapshot, &Options::default());
        let names = |keys: Vec<&objects::ObjectKey>| -> Vec<String> {
            keys.into_iter().map(|key| key.name.to_string()).collect()
        };
        assert_eq!(names(small.gateways.keys().collect()), ["o1", "o2"]);
        assert_eq!(names(small.listener_sets.keys().collect()), ["o2"]);
        assert_eq!(names(small.services.keys().collect()), ["o0", "o3", "o4", "o5"]);
        assert_eq!(names(small.secrets.keys().collect()), ["o0"]);
        assert_eq!(names(small.namespaces.keys().collect()), ["n0", "n1", "n2"]);
        assert_eq!(small.grants.len(), 3, "one for each backend of another namespace");
        assert_eq!(small.gateway_classes.len(), 1);
    }
}
