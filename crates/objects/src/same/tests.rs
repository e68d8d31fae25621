//! For each kind: what only the API server or a writer of statuses changed is the same, and all else is not.

use crate::gateway::{
    RawGateway, RawGatewayClass, RawHttpRoute, RawReferenceGrant, RawTcpRoute, RawTlsRoute,
};
use crate::trim::trimmed;
use crate::{Asks, Object, Store, Trim};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use serde_json::{Value, json};

/// An object in a version, with what somebody told it, that asks for something.
fn object<K: Trim>(version: &str, told: &str, asks: Value) -> Object {
    let mut object = json!({
        "metadata": {
            "name": "a", "namespace": "demo", "uid": "u", "resourceVersion": version,
            "managedFields": [{"manager": told, "operation": "Update"}],
        },
        "status": {
            "parents": [{"controllerName": told}], "addresses": [{"value": told}],
            "conditions": [{"type": told, "status": "True", "lastTransitionTime": null}],
        },
    });
    object.as_object_mut().expect("a map").extend(asks.as_object().expect("a map").clone());
    if matches!(K::KIND, crate::Kind::Ingress | crate::Kind::Service) {
        object["status"] = json!({"loadBalancer": {"ingress": []}});
    }
    trimmed::<K>(object)
}

fn same(one: &Object, other: &Object) -> bool {
    match (one, other) {
        (Object::Ingress(a), Object::Ingress(b)) => a.asks_the_same_as(b),
        (Object::Secret(a), Object::Secret(b)) => a.asks_the_same_as(b),
        (Object::GatewayClass(a), Object::GatewayClass(b)) => a.asks_the_same_as(b),
        (Object::Gateway(a), Object::Gateway(b)) => a.asks_the_same_as(b),
        (Object::HttpRoute(a), Object::HttpRoute(b)) => a.asks_the_same_as(b),
        (Object::StreamRoute(a), Object::StreamRoute(b)) => a.asks_the_same_as(b),
        (a, b) => a == b,
    }
}

/// Whether a store has something new to say about the second of two versions.
fn is_published(one: &Object, other: &Object) -> bool {
    let mut store = Store::default();
    store.put(one.clone());
    store.publish();
    store.put(other.clone());
    store.publish().is_some()
}

/// Of what nobody wants to know the version, another one is not even published.
fn check<K: Trim>(asks: Value, otherwise: Value, is_versioned: bool) {
    let first = object::<K>("1", "one", asks.clone());
    let second = object::<K>("2", "two", asks);
    let third = object::<K>("3", "two", otherwise);
    assert!(same(&first, &second), "{first:?} {second:?}");
    assert!(!same(&second, &third), "{second:?} {third:?}");
    assert_eq!(is_published(&first, &second), is_versioned, "{first:?} {second:?}");
    assert!(is_published(&second, &third));
}

#[test]
fn versions_and_what_objects_are_told_change_nothing_that_they_ask_for() {
    let hosts = |host: &str| json!({"spec": {"hostnames": [host]}});
    check::<RawHttpRoute>(hosts("a.test"), hosts("b.test"), true);
    check::<RawTlsRoute>(hosts("a.test"), hosts("b.test"), true);
    let parents = |name: &str| json!({"spec": {"parentRefs": [{"name": name}]}});
    check::<RawTcpRoute>(parents("a"), parents("b"), true);
    let class = |name: &str| json!({"spec": {"gatewayClassName": name}});
    check::<RawGateway>(class("a"), class("b"), true);
    let named = |name: &str| json!({"spec": {"controllerName": name}});
    check::<RawGatewayClass>(named("a"), named("b"), true);
    let ingress = |name: &str| json!({"spec": {"ingressClassName": name}});
    check::<Ingress>(ingress("a"), ingress("b"), true);
    let data = |text: &str| json!({"stringData": {"key": text}});
    check::<Secret>(data("a"), data("b"), true);
    let map = |text: &str| json!({"data": {"key": text}});
    check::<ConfigMap>(map("a"), map("b"), false);
    let service = |address: &str| json!({"spec": {"clusterIP": address}});
    check::<Service>(service("192.0.2.1"), service("192.0.2.2"), false);
    let grant = |from: &str| {
        let from = json!({"group": "g", "kind": "HTTPRoute", "namespace": from});
        json!({"spec": {"from": [from], "to": []}})
    };
    check::<RawReferenceGrant>(grant("a"), grant("b"), false);
    let slice = |address: &str| {
        let mut slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": [address]}]});
        slice["metadata"] = json!({
            "name": "a", "namespace": "demo", "resourceVersion": address.len().to_string(),
            "labels": {"kubernetes.io/service-name": "a"},
        });
        slice
    };
    let [one, other] =
        ["192.0.2.1", "192.0.2.10"].map(|at| object::<EndpointSlice>("", "", slice(at)));
    assert!(!same(&one, &other) && is_published(&one, &other));
    let mut again = slice("192.0.2.1");
    again["metadata"]["resourceVersion"] = json!("77");
    assert!(!is_published(&one, &object::<EndpointSlice>("", "", again)));
}

#[test]
fn another_generation_is_told_about_anew() {
    let route = |generation: u32| {
        let metadata = json!({"name": "a", "namespace": "demo", "generation": generation});
        object::<RawHttpRoute>("1", "one", json!({"metadata": metadata}))
    };
    assert!(same(&route(1), &route(1)) && !same(&route(1), &route(2)));
}

#[test]
fn who_told_a_route_something_is_kept_once_each() {
    let told = json!({"parents": [
        {"controllerName": "us"}, {"controllerName": "them"}, {"controllerName": "us"}, {},
    ]});
    let Object::HttpRoute(route) = object::<RawHttpRoute>("1", "", json!({"status": told})) else {
        panic!("an HTTPRoute")
    };
    assert_eq!(route.told_by, ["", "them", "us"]);
}
