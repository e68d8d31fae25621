//! What is not known of policies and ListenerSets closes what they might be about; a class that is given parameters
//! ends nothing that it has.

use crate::builders::of_gateways;
use model::Backend;
use objects::gateway::GatewayClass;
use objects::{Kind, ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;
use translate::gateway::Condition;
use translate::{Options, Translation, Translator, translate};

/// A Gateway that lets sets in, one that does not, and a route to each listener.
const GATEWAYS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: open}
spec:
  gatewayClassName: fairway
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: any, protocol: HTTP, port: 80}
  - {name: wide, protocol: HTTP, port: 80, hostname: '*.wide.test'}
  - {name: one, protocol: HTTP, port: 80, hostname: one.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: alone}
spec:
  gatewayClassName: fairway
  listeners: [{name: any, protocol: HTTP, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: web}
spec:
  parentRefs: [{name: open}, {name: alone}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {ports: [{port: 80}]}
";

fn snapshot(unlisted: &[Kind]) -> Snapshot {
    let unlisted = unlisted.iter().copied().collect::<BTreeSet<_>>();
    Snapshot { unlisted, ..of_gateways(GATEWAYS) }
}

/// How many places lead to a backend, and how many are closed.
fn places(made: &Translation) -> (usize, usize) {
    let (mut all, mut closed) = (0, 0);
    for host in made.configuration.routes.values() {
        for share in host.rules.iter().flat_map(|rule| &rule.shares) {
            all += 1;
            let backend = &host.locations[share.location].backend;
            closed += usize::from(matches!(backend, Backend::Broken(_)));
        }
    }
    (all - closed, closed)
}

fn reason<'c>(conditions: &'c [Condition], kind: &str) -> &'c str {
    conditions.iter().find(|one| one.kind == kind).expect("it is told").reason
}

#[test]
fn while_nobody_knows_the_policies_no_backend_is_spoken_to_in_clear() {
    let mut translator = Translator::new(Options::default());
    let route = (Kind::HttpRoute, ObjectKey::new("shop", "web"));
    for unlisted in [&[][..], &[Kind::BackendTlsPolicy], &[]] {
        let all = snapshot(unlisted);
        let made = translator.update(&all);
        let (open, closed) = places(&made);
        assert_eq!((open > 0, closed > 0), (unlisted.is_empty(), !unlisted.is_empty()));
        let (_, told) = &made.statuses.routes[&route].parents[0];
        let expected = if unlisted.is_empty() { "ResolvedRefs" } else { "Pending" };
        assert_eq!(reason(told, "ResolvedRefs"), expected);
        let whole = translate(&all, &Options::default());
        assert_eq!(whole.configuration, made.configuration);
        assert_eq!(whole.statuses, made.statuses);
    }
    let made = Translator::new(Options::default()).update(&snapshot(&[Kind::BackendTlsPolicy]));
    assert_eq!(places(&made).0, 0, "so it is from the start");
}

#[test]
fn while_nobody_knows_the_sets_no_listener_is_served_that_may_be_wider_than_one_of_theirs() {
    let mut translator = Translator::new(Options::default());
    for unlisted in [&[][..], &[Kind::ListenerSet], &[]] {
        let all = snapshot(unlisted);
        let made = translator.update(&all);
        let accepted = |gateway: &str| {
            let listeners = &made.statuses.gateways[&ObjectKey::new("shop", gateway)].listeners;
            listeners.iter().map(|one| reason(&one.conditions, "Accepted")).collect::<Vec<_>>()
        };
        let wide = if unlisted.is_empty() { "Accepted" } else { "Pending" };
        assert_eq!(accepted("open"), [wide, wide, "Accepted"]);
        assert_eq!(accepted("alone"), ["Accepted"], "nobody is let in there");
        assert_eq!(translate(&all, &Options::default()).configuration, made.configuration);
    }
}

#[test]
fn a_class_that_is_given_parameters_takes_no_more_gateways_and_ends_none() {
    let give = |all: &mut Snapshot| {
        let key = ObjectKey::new("", "fairway");
        let class = GatewayClass::clone(&all.gateway_classes[&key]);
        let class = GatewayClass { has_parameters: true, ..class };
        all.gateway_classes.insert(key, Arc::new(class));
    };
    let mut translator = Translator::new(Options::default());
    let mut all = snapshot(&[]);
    let before = translator.update(&all).configuration;
    give(&mut all);
    let made = translator.update(&all);
    assert_eq!(made.configuration, before);
    let class = &made.statuses.classes[&ObjectKey::new("", "fairway")];
    assert_eq!(reason(&class.conditions, "Accepted"), "InvalidParameters");
    assert_eq!(made.statuses.gateways.len(), 2);
    // Whoever starts later knows those that have an address.
    let told = GATEWAYS.replacen("---", "status: {addresses: [{value: 192.0.2.1}]}\n---", 1);
    let mut all = of_gateways(&told);
    give(&mut all);
    let made = translate(&all, &Options::default());
    let served: Vec<_> = made.statuses.gateways.keys().map(|key| &*key.name).collect();
    assert_eq!(served, ["open"]);
}
