//! What is looked at again, told by marks that are gone where it is.

use crate::gateway::RouteStatus;
use crate::{Options, Translator};
use objects::{ObjectKey, Snapshot, snapshot_of};
use std::path::Path;
use std::sync::Arc;

const OBJECTS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i, namespace: a, resourceVersion: 'VERSION'}
spec: {ingressClassName: nginx, rules: [{host: i.test, http: {paths: []}}]}
status: {loadBalancer: {ingress: [{ip: 192.0.2.VERSION}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway, resourceVersion: 'VERSION'}
spec: {controllerName: fairway/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: a, resourceVersion: 'VERSION'}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
status: {addresses: [{value: 192.0.2.VERSION}]}
";

const ROUTE: &str = "
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: NAMESPACE, resourceVersion: 'VERSION'}
spec:
  parentRefs: [{name: web, namespace: a}]
  hostnames: [NAMESPACE.test]
  rules: [{backendRefs: [{name: s, namespace: c, port: 80}]}]
status: {parents: [{controllerName: told-VERSION}]}
";

const GRANT: &str = "
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: g, namespace: c, resourceVersion: 'VERSION'}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: FROM}]
  to: [{group: '', kind: Service}]
";

fn snapshot(version: &str, grant_from: Option<&str>) -> Snapshot {
    let routes: String = ["a", "b"].map(|name| ROUTE.replace("NAMESPACE", name)).concat();
    let grant = grant_from.map(|from| GRANT.replace("FROM", from)).unwrap_or_default();
    let text = [OBJECTS, &routes, &grant].concat().replace("VERSION", version);
    snapshot_of([(Path::new("in.yaml"), text.as_str())])
}

fn route(namespace: &str) -> (objects::Kind, ObjectKey) {
    (objects::Kind::HttpRoute, ObjectKey::new(namespace, "r"))
}

/// Puts marks in the place of what routes are told.
fn mark(translator: &mut Translator) {
    for namespace in ["a", "b"] {
        let status = RouteStatus { generation: -1, parents: Vec::new() };
        translator.gateway.statuses.routes.insert(route(namespace), Arc::new(status));
    }
}

/// The namespaces whose routes were looked at again since then.
fn looked_at(translator: &Translator) -> Vec<&'static str> {
    let told = &translator.gateway.statuses.routes;
    let marked = |namespace| told.get(&route(namespace)).is_some_and(|told| told.generation == -1);
    ["a", "b"].into_iter().filter(|namespace| !marked(namespace)).collect()
}

#[test]
fn what_differs_in_its_status_and_version_alone_is_not_looked_at_again() {
    let mut translator = Translator::new(Options::default());
    let first = translator.update(&snapshot("1", Some("a")));
    assert_eq!((first.statuses.routes.len(), first.served.len()), (2, 1));
    mark(&mut translator);
    let ingress = ObjectKey::new("a", "i");
    let draft = Arc::clone(&translator.drafts[&ingress]);
    let gateway = first.statuses.gateways.values().next().cloned().expect("a Gateway");
    let second = translator.update(&snapshot("2", Some("a")));
    assert!(second.changes.is_empty());
    assert!(looked_at(&translator).is_empty());
    assert!(Arc::ptr_eq(&draft, &translator.drafts[&ingress]), "the Ingress was read again");
    let told = second.statuses.gateways.values().next().expect("a Gateway");
    assert!(Arc::ptr_eq(&gateway, told), "the Gateway was read again");
    // What is asked for otherwise is looked at, of course.
    let mut third = snapshot("3", Some("a"));
    let changed = third.http_routes.get_mut(&route("b")).expect("a route");
    Arc::make_mut(changed).hostnames = vec!["c.test".to_owned()];
    translator.update(&third);
    assert_eq!(looked_at(&translator), ["b"]);
}

const WIRES: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: b}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway}
spec: {controllerName: fairway/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: wires, namespace: a}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: tls, protocol: TLS, port: 8443, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
  - {name: tcp, protocol: TCP, port: 5432, allowedRoutes: {namespaces: {from: All}}}
";

/// A route of streams and the Service that it leads to, which another one leads to as well.
const WIRE: &str = "
---
apiVersion: gateway.networking.k8s.io/v1
kind: KIND
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  parentRefs: [{name: wires, namespace: a}]
  rules: [{backendRefs: [{name: NAME, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NAMESPACE}
spec: {ports: [{port: 80}]}
";

#[test]
fn a_route_of_streams_is_read_again_only_where_something_touches_it() {
    let routes = [("TLSRoute", "a", "r"), ("TLSRoute", "a", "s"), ("TCPRoute", "b", "t")];
    let text = routes.map(|(kind, namespace, name)| {
        let text = WIRE.replace("KIND", kind).replace("NAMESPACE", namespace);
        text.replace("NAME", name)
    });
    let text = [WIRES, &text.concat()].concat();
    let mut now = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let pool = vec!["192.0.2.1/32".parse().expect("a network")];
    let mut translator = Translator::new(Options { gateway_addresses: pool, ..Options::default() });
    let first = translator.update(&now);
    assert_eq!((first.statuses.stream_routes.len(), first.configuration.streams.len()), (3, 1));
    let tls = (objects::Kind::TlsRoute, ObjectKey::new("a", "r"));
    let mut again = |now: &Snapshot| {
        let told = &mut translator.gateway.statuses.stream_routes;
        let ids: Vec<_> = told.keys().cloned().collect();
        for id in &ids {
            let status = RouteStatus { generation: -1, parents: Vec::new() };
            told.insert(id.clone(), Arc::new(status));
        }
        translator.update(now);
        let told = &translator.gateway.statuses.stream_routes;
        let marked = |id: &&_| told.get(*id).is_some_and(|told| told.generation == -1);
        let read = ids.iter().filter(|id| !marked(id)).map(|(_, key)| key.name.to_string());
        read.collect::<Vec<_>>()
    };
    let changed = now.stream_routes.get_mut(&tls).expect("a route");
    Arc::make_mut(changed).hostnames = vec!["a.example".to_owned()];
    assert_eq!(again(&now), ["r"]);
    let service = now.services.get_mut(&ObjectKey::new("a", "s")).expect("a Service");
    Arc::make_mut(service).ports.clear();
    assert_eq!(again(&now), ["s"]);
    now.stream_routes.remove(&tls);
    assert_eq!(again(&now), ["r"], "it went, and what it was told with it");
    now.namespaces.remove(&ObjectKey::new("", "b"));
    assert_eq!(again(&now), ["t"]);
    let gateway = now.gateways.get_mut(&ObjectKey::new("a", "wires")).expect("a Gateway");
    Arc::make_mut(gateway).listeners.pop();
    assert_eq!(again(&now), ["t", "s"]);
}

#[test]
fn a_grant_touches_the_routes_of_the_namespaces_that_it_names() {
    let mut translator = Translator::new(Options::default());
    translator.update(&snapshot("1", None));
    for (from, expected) in
        [(Some("a"), &["a"][..]), (Some("b"), &["a", "b"]), (None, &["b"]), (Some("d"), &[])]
    {
        mark(&mut translator);
        translator.update(&snapshot("1", from));
        assert_eq!(looked_at(&translator), expected, "{from:?}");
    }
}
