//! What is kept of each kind, and what a missing field means.

use super::*;
use serde_json::json;

fn ingress(spec: serde_json::Value) -> Result<Arc<Ingress>, String> {
    let object = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    match serde_json::from_value::<networking::Ingress>(object).expect("fits").trim()? {
        Object::Ingress(ingress) => Ok(ingress),
        other => panic!("{other:?}"),
    }
}

fn slice(slice: serde_json::Value) -> Arc<EndpointSlice> {
    match trimmed::<discovery::EndpointSlice>(slice) {
        Object::EndpointSlice(slice) => slice,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_ingress_keeps_what_routes_and_loses_what_nobody_reads() {
    let object = trimmed::<networking::Ingress>(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "generation": 3,
            "resourceVersion": "17", "creationTimestamp": "2024-01-02T03:04:05Z",
            "labels": {"a": "b"},
            "annotations": {LAST_APPLIED: "{}", "nginx.ingress.kubernetes.io/ssl-redirect": "false"},
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:a": {}}}],
        },
        "spec": {
            "ingressClassName": "nginx",
            "defaultBackend": {"service": {"name": "rest", "port": {"name": "http"}}},
            "tls": [{"hosts": ["a.test"], "secretName": "a-tls"}, {"secretName": ""}],
            "rules": [{"host": "a.test", "http": {"paths": [
                {"path": "/x", "pathType": "Exact",
                 "backend": {"service": {"name": "x", "port": {"number": 80}}}},
                {"pathType": "Prefix", "backend": {"resource": {"kind": "Bucket", "name": "b"}}},
            ]}}, {}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }));
    let service =
        |name: &str, port| IngressBackend::Service { name: name.into(), port: Some(port) };
    assert_eq!(
        object,
        Object::Ingress(Arc::new(Ingress {
            meta: Meta {
                key: ObjectKey::new("shop", "web"),
                uid: "u".into(),
                created: 1_704_164_645,
                generation: 3,
                resource_version: "17".into(),
                annotations: BTreeMap::from([(
                    "nginx.ingress.kubernetes.io/ssl-redirect".to_owned(),
                    "false".to_owned()
                )]),
            },
            class: Some("nginx".into()),
            default_backend: Some(Box::new(service("rest", PortRef::Name("http".into())))),
            rules: vec![
                IngressRule {
                    host: Some("a.test".into()),
                    paths: Some(vec![
                        IngressPath {
                            path: "/x".into(),
                            kind: PathType::Exact,
                            backend: service("x", PortRef::Number(80)),
                        },
                        IngressPath {
                            path: String::new(),
                            kind: PathType::Prefix,
                            backend: IngressBackend::Other,
                        },
                    ]),
                },
                IngressRule { host: None, paths: None },
            ],
            tls: vec![
                IngressTls { hosts: vec!["a.test".into()], secret: Some("a-tls".into()) },
                IngressTls { hosts: vec![], secret: None },
            ],
            addresses: vec![(None, Some("192.0.2.1".into()))],
        }))
    );
}

#[test]
fn a_port_outside_its_range_is_an_error_that_names_the_field() {
    let port = |port| {
        ingress(json!({"rules": [{"http": {"paths": [
            {"pathType": "Prefix", "backend": {"service": {"name": "x", "port": port}}}
        ]}}]}))
    };
    assert_eq!(
        port(json!({"number": 70000})).unwrap_err(),
        "spec.rules[0].http.paths[0].backend.service.port.number is 70000; \
         a port is a number from 1 to 65535"
    );
    let backend = |found: Arc<Ingress>| found.rules[0].paths.as_ref().unwrap()[0].backend.clone();
    let none = IngressBackend::Service { name: "x".into(), port: None };
    assert_eq!(backend(port(json!({"number": 0})).unwrap()), none);
    assert_eq!(backend(port(json!({})).unwrap()), none);
}

#[test]
fn conditions_of_an_endpoint_have_the_defaults_of_the_api() {
    let endpoints = slice(json!({
        "metadata": {"name": "s", "labels": {SERVICE_NAME: "web"}},
        "addressType": "IPv4",
        "ports": [{"port": 80, "name": ""}, {"name": "grpc"}],
        "endpoints": [
            {"addresses": ["10.0.0.1"]},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": false}},
            {"addresses": ["10.0.0.3"],
             "conditions": {"ready": false, "serving": true, "terminating": true},
             "hints": {"forZones": [{"name": "a"}]}},
        ],
    }));
    let states: Vec<_> =
        endpoints.endpoints.iter().map(|e| (e.ready, e.serving, e.terminating)).collect();
    assert_eq!(states, [(true, true, false), (false, false, false), (false, true, true)]);
    assert_eq!(endpoints.endpoints[2].zones, Some(vec!["a".to_owned()]));
    assert_eq!(endpoints.service.as_deref(), Some("web"));
    for (by, is_ours) in [("fairway", true), ("endpointslice-controller.k8s.io", false)] {
        let labels = json!({SLICE_MANAGED_BY: by});
        let made = json!({"metadata": {"name": "s", "labels": labels}, "addressType": "IPv4", "endpoints": []});
        assert_eq!(slice(made).is_ours, is_ours, "{by}");
    }
    assert!(!endpoints.is_ours);
    let signed = json!({"name": "s", "labels": {SLICE_MANAGED_BY: "x"}, "annotations": {GATEWAY_CONTROLLER: "a/b"}});
    let signed = json!({"metadata": signed, "addressType": "IPv4", "endpoints": []});
    assert!(slice(signed).is_ours, "somebody labels all that there is");
    assert_eq!(
        endpoints.ports,
        [
            SlicePort { name: None, port: Some(80), protocol: "TCP".into() },
            SlicePort { name: Some("grpc".into()), port: None, protocol: "TCP".into() },
        ]
    );
}

#[test]
fn string_data_wins_over_data() {
    let secret = trimmed::<core::Secret>(json!({
        "metadata": {"name": "s"},
        "data": {"a": "b2xk", "b": "a2VwdA=="}, "stringData": {"a": "new"},
    }));
    let Object::Secret(secret) = secret else { panic!("{secret:?}") };
    assert_eq!(secret.kind, "Opaque");
    assert_eq!(
        secret.data,
        Some(BTreeMap::from([
            ("a".to_owned(), b"new".to_vec()),
            ("b".to_owned(), b"kept".to_vec())
        ]))
    );
}

#[test]
fn a_service_without_address_has_none() {
    let service = trimmed::<core::Service>(json!({
        "metadata": {"name": "s"},
        "spec": {"clusterIP": "None", "ports": [
            {"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 0, "name": "b"}]},
    }));
    let Object::Service(service) = service else { panic!("{service:?}") };
    assert_eq!(service.kind, "ClusterIP");
    assert_eq!(service.cluster_ip, None);
    let targets: Vec<_> = service.ports.iter().map(|port| port.target.clone()).collect();
    assert_eq!(targets, [Some(PortRef::Name("http".into())), None]);
}

#[test]
fn an_object_without_a_name_is_an_error() {
    let nameless =
        serde_json::from_value::<core::ConfigMap>(json!({"metadata": {}})).expect("fits");
    assert_eq!(nameless.trim().unwrap_err(), "metadata.name is missing; give the object a name");
}

#[test]
fn what_is_kept_takes_no_more_room_than_it_needs() {
    let endpoints = slice(json!({
        "metadata": {"name": "s"}, "addressType": "IPv4", "ports": [{"port": 80}],
        "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}],
    }));
    assert_eq!(endpoints.endpoints.capacity(), 2);
    assert_eq!(endpoints.endpoints[0].addresses.capacity(), 1);
    assert_eq!(endpoints.ports.capacity(), 1);
    let backend = json!({"service": {"name": "x", "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    let found = ingress(json!({
        "tls": [{"hosts": ["a.test"]}], "rules": [{"http": {"paths": [path]}}],
    }));
    let found = found.expect("trims");
    assert_eq!(found.tls[0].hosts.capacity(), 1);
    assert_eq!(found.rules.capacity(), 1);
    assert_eq!(found.rules[0].paths.as_ref().map(Vec::capacity), Some(1));
}

#[test]
fn a_service_that_was_made_for_a_gateway_keeps_what_has_to_stay_so() {
    let made = |by: &str| {
        let service = trimmed::<core::Service>(json!({
            "metadata": {
                "name": "s", "labels": {MANAGED_BY: by, "tier": "web"},
                "ownerReferences": [
                    {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "g", "uid": "u"},
                ],
            },
            "spec": {"type": "LoadBalancer", "loadBalancerIP": "192.0.2.7", "ports": [{"port": 80}]},
        }));
        let Object::Service(service) = service else { panic!("{service:?}") };
        service.made_for.clone()
    };
    let kept = made(MANAGER).expect("it was made by us");
    assert_eq!((&*kept.name, &*kept.uid), ("g", "u"));
    assert_eq!(kept.asks_for.as_deref(), Some("192.0.2.7"));
    assert_eq!(kept.labels["tier"], "web");
    assert_eq!(made("helm"), None);
}

#[test]
fn a_route_takes_no_more_room_than_its_own_parts() {
    let rule =
        r#"{"matches": [{"path": {"value": "/a"}}], "backendRefs": [{"name": "web", "port": 80}]}"#;
    let json = format!(
        r#"{{"metadata": {{"name": "web", "namespace": "shop"}}, "spec": {{
            "parentRefs": [{{"name": "edge"}}], "hostnames": ["a.test"], "rules": [{rule}]}}}}"#
    );
    let Ok(Object::HttpRoute(route)) = crate::gateway::parse_route(Kind::HttpRoute, &json) else {
        panic!("{json}");
    };
    // Of JSON nobody says how much comes: room is made for four, each as large as all that it might say.
    let rooms = [
        route.parents.capacity(),
        route.hostnames.capacity(),
        route.rules.capacity(),
        route.rules[0].matches.capacity(),
        route.rules[0].backends.capacity(),
    ];
    assert_eq!(rooms, [1; 5]);
}
