//! Objects of the Gateway API come and go in any order: following them means the same as translating anew, whatever a
//! change is thought to touch.

use crate::builders::*;
use imbl::OrdMap;
use objects::{EndpointSlice, ObjectKey, Service, Snapshot};
use std::sync::Arc;
use translate::{Options, Translator, translate};

const OBJECTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: own}
spec:
  parentRefs: [{name: web}]
  hostnames: [a.test]
  rules: [{backendRefs: [{name: a, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: abroad}
spec:
  parentRefs: [{name: web}]
  hostnames: [a.test]
  rules: [{matches: [{path: {value: /news}}], backendRefs: [{name: b, namespace: news, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: news, name: copies}
spec:
  parentRefs: [{name: web, namespace: shop}]
  hostnames: [b.test]
  rules:
  - filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, namespace: shop, port: 80}}}]
    backendRefs: [{name: b, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: guarded}
spec:
  parentRefs: [{name: web}]
  hostnames: [d.test]
  rules:
  - filters: [{type: ExternalAuth, externalAuth: {protocol: GRPC, backendRef: {name: b, namespace: news, port: 80}}}]
    sessionPersistence: {sessionName: s}
    backendRefs: [{name: a, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {namespace: shop, name: abroad}
spec:
  parentRefs: [{name: web}]
  hostnames: [c.test]
  rules: [{backendRefs: [{name: b, namespace: news, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {namespace: news, name: of-news}
spec:
  from:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}
  - {group: gateway.networking.k8s.io, kind: GRPCRoute, namespace: shop}
  to: [{group: '', kind: Service}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {namespace: shop, name: of-shop}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: news}]
  to: [{group: '', kind: Service, name: a}]
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: a}
spec: {ports: [{name: web, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: news, name: b}
spec: {ports: [{name: web, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {namespace: news, name: younger, creationTimestamp: '2026-01-02T00:00:00Z'}
spec:
  targetRefs: [{group: '', kind: Service, name: b}]
  validation: {wellKnownCACertificates: System, hostname: younger.example}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {namespace: news, name: older, creationTimestamp: '2026-01-01T00:00:00Z'}
spec:
  targetRefs: [{group: '', kind: Service, name: b}]
  validation: {wellKnownCACertificates: System, hostname: older.example}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {namespace: news, name: of-port, creationTimestamp: '2026-01-03T00:00:00Z'}
spec:
  targetRefs: [{group: '', kind: Service, name: b, sectionName: web}, {group: '', kind: Service, name: c}]
  validation: {wellKnownCACertificates: System, hostname: port.example}
";

/// Routes of streams that want the same ports and hosts, at listeners that end TLS and others, of a Gateway and of a
/// ListenerSet.
const STREAMS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: wires}
spec:
  gatewayClassName: fairway
  addresses: [{type: IPAddress, value: 192.0.2.1}]
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: db, protocol: TCP, port: 5432, allowedRoutes: {namespaces: {from: All}}}
  - {name: dns, protocol: UDP, port: 53, allowedRoutes: {namespaces: {from: All}}}
  - {name: passed, protocol: TLS, port: 8443, hostname: '*.example', tls: {mode: Passthrough},
     allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {let: in}}}}}
  - {name: ended, protocol: TLS, port: 8444, tls: {mode: Terminate, certificateRefs: [{name: cert}]}, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: waves}
spec:
  gatewayClassName: fairway
  addresses: [{type: IPAddress, value: 192.0.2.2}]
  listeners: [{name: db, protocol: TCP, port: 5432}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {namespace: news, name: more}
spec:
  parentRef: {name: wires, namespace: shop}
  listeners: [{name: db, protocol: TCP, port: 5433}]
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: a, creationTimestamp: '2026-01-02T00:00:00Z'}
spec: {ports: [{name: tcp, port: 80}, {name: udp, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: c, creationTimestamp: '2026-01-01T00:00:00Z'}
spec: {ports: [{name: tcp, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: news, name: b}
spec: {ports: [{name: tcp, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {namespace: news, name: of-news}
spec:
  from:
  - {group: gateway.networking.k8s.io, kind: TCPRoute, namespace: shop}
  - {group: gateway.networking.k8s.io, kind: TLSRoute, namespace: shop}
  to: [{group: '', kind: Service}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {namespace: shop, name: of-a}
spec:
  targetRefs: [{group: '', kind: Service, name: a}]
  validation: {wellKnownCACertificates: System, hostname: a.example}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {namespace: news, name: of-b}
spec:
  targetRefs: [{group: '', kind: Service, name: b, sectionName: tcp}]
  validation: {hostname: b.example}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {let: in}}
---
apiVersion: v1
kind: Namespace
metadata: {name: news, labels: {let: in}}
";

/// Kind, namespace, name, age in days, parents, host names and backends of routes.
const WANTED: [[&str; 6]; 12] = [
    ["TCPRoute", "shop", "old", "1", "{name: wires}", "{name: a, port: 80}"],
    ["TCPRoute", "shop", "young", "3", "{name: wires}", "{name: c, port: 80}"],
    ["TCPRoute", "shop", "abroad", "2", "{name: wires}", "{name: b, namespace: news, port: 80}"],
    ["TCPRoute", "news", "added", "1", "{name: more, kind: ListenerSet}", "{name: b, port: 80}"],
    [
        "TCPRoute",
        "shop",
        "both",
        "4",
        "{name: waves}, {name: wires}",
        "{name: a, port: 80}, {name: c, port: 80}",
    ],
    ["TCPRoute", "shop", "astray", "5", "{name: wire}", "{name: a, port: 80}"],
    ["UDPRoute", "shop", "dns", "1", "{name: wires}", "{name: a, port: 53}"],
    ["UDPRoute", "news", "dns", "2", "{name: wires, namespace: shop}", "{name: b, port: 53}"],
    ["TLSRoute", "shop", "wide", "1", "{name: wires}", "{name: a, port: 80}"],
    ["TLSRoute", "shop", "narrow", "2", "{name: wires}", "{name: c, port: 80}"],
    ["TLSRoute", "shop", "same", "3", "{name: wires}", "{name: b, namespace: news, port: 80}"],
    ["TLSRoute", "news", "other", "4", "{name: wires, namespace: shop}", "{name: b, port: 80}"],
];

fn streams() -> String {
    let wanted = |[kind, namespace, name, day, parents, backends]: [&str; 6]| {
        let hosts = match name {
            _ if kind != "TLSRoute" => "",
            "wide" => "hostnames: ['*.example', '*.shop.example']",
            "other" => "hostnames: [a.shop.example, b.example]",
            _ => "hostnames: ['*.shop.example', a.shop.example]",
        };
        route([kind, namespace, name, day], parents, hosts, backends)
    };
    WANTED.map(wanted).concat()
}

#[test]
fn following_routes_of_streams_means_the_same_as_translating_anew() {
    let text = [STREAMS, &streams()].concat();
    let mut all = of_gateways(&text);
    let (certificate, key_of_it) = certificate(&["a.example"]);
    put_secret(
        &mut all,
        secret("shop", "cert", &[("tls.crt", &certificate), ("tls.key", &key_of_it)]),
    );
    assert_eq!((all.stream_routes.len(), all.gateways.len(), all.backend_tls.len()), (12, 2, 2));
    let budgets = ["endpoints=3", "route-places=3", "endpoints=100"];
    let options = Options {
        config_map: Some(key("x", "settings")),
        gateway_addresses: vec!["192.0.2.0/30".parse().expect("a network")],
        ..Options::default()
    };
    let mut seed = 11_u64;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("it is small") % most
    };
    let (mut translator, mut now) = (Translator::new(options.clone()), all.clone());
    let (mut ports, mut hosts, mut crowded) = (0, 0, 0);
    for step in 0..800 {
        for _ in 0..1 + below(2) {
            match below(33) {
                0..12 => toggle(&all.stream_routes, &mut now.stream_routes, below(12)),
                12..15 => toggle(&all.services, &mut now.services, below(3)),
                15..18 => toggle(&all.backend_tls, &mut now.backend_tls, below(2)),
                18..20 => {
                    let (key, grant) = all.grants.iter().next().expect("a grant");
                    if now.grants.remove(key).is_none() {
                        now.grants.insert(key.clone(), grant.clone());
                    }
                }
                20..22 => toggle(&all.gateways, &mut now.gateways, below(2)),
                22 => toggle(&all.listener_sets, &mut now.listener_sets, 0),
                23 => toggle(&all.namespaces, &mut now.namespaces, below(2)),
                24 => toggle(&all.secrets, &mut now.secrets, 0),
                25 => want_tls(&mut now.services, below(3)),
                26..31 => {
                    let service = [("shop", "a"), ("shop", "c"), ("news", "b")][below(3)];
                    let addresses = (0..below(4)).map(|at| endpoint(&format!("10.0.0.{at}")));
                    let (namespace, name) = service;
                    let mut made =
                        slice(namespace, &format!("{name}-1"), name, addresses.collect());
                    with_both_ports(&mut made);
                    put_slice(&mut now, made);
                }
                _ => {
                    let budget = budgets[below(3)];
                    let made = config_map("x", "settings", &[("namespace-budget", budget)]);
                    put_config_map(&mut now, made);
                }
            }
        }
        let followed = translator.update(&now);
        let anew = translate(&now, &options);
        assert_eq!(followed.configuration, anew.configuration, "step {step}");
        assert_eq!(followed.statuses, anew.statuses, "step {step}");
        let problems = anew.problems.to_string();
        assert_eq!(followed.problems.to_string(), problems, "step {step}");
        ports += anew.configuration.streams.len();
        hosts += anew.configuration.tls_routes.len();
        crowded += problems.matches("connections there end").count();
        assert!(translator.update(&now).changes.is_empty(), "step {step}");
    }
    let enough = ports > 400 && hosts > 400 && crowded > 20;
    assert!(enough, "hardly anything was served or refused: {ports} {hosts} {crowded}");
}

/// Lets a slice have the port of either protocol, by the names that Services have for them.
fn with_both_ports(slice: &mut EndpointSlice) {
    slice.ports[0].name = Some("tcp".to_owned());
    let mut udp = slice.ports[0].clone();
    (udp.name, udp.protocol) = (Some("udp".to_owned()), "UDP".to_owned());
    slice.ports.push(udp);
}

/// Puts an object back that was taken away, or takes it away.
fn toggle<K: Ord + Clone, V: Clone>(all: &OrdMap<K, V>, now: &mut OrdMap<K, V>, number: usize) {
    let (key, value) = all.iter().nth(number).expect("there are so many");
    if now.remove(key).is_none() {
        now.insert(key.clone(), value.clone());
    }
}

/// Has the first port of a Service want TLS, or no longer.
fn want_tls(services: &mut OrdMap<ObjectKey, Arc<Service>>, number: usize) {
    let Some((key, service)) = services.iter().nth(number) else { return };
    let mut service = Service::clone(service);
    service.ports[0].tls ^= true;
    services.insert(key.clone(), Arc::new(service));
}

#[test]
fn following_routes_grants_and_policies_means_the_same_as_translating_anew() {
    let all = of_gateways(OBJECTS);
    let counts = [
        all.http_routes.len(),
        all.grants.len(),
        all.backend_tls.len(),
        all.services.len(),
        all.gateways.len(),
    ];
    assert_eq!(counts, [5, 2, 3, 2, 1]);
    let mut seed = 7_u64;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("it is small") % most
    };
    let (mut translator, mut now) = (Translator::new(Options::default()), all.clone());
    let mut served = 0;
    for step in 0..600 {
        for _ in 0..1 + below(2) {
            let Snapshot { http_routes, grants, backend_tls, services, gateways, .. } = &mut now;
            match below(25) {
                0..8 => toggle(&all.http_routes, http_routes, below(counts[0])),
                8..16 => {
                    let (key, grant) = all.grants.iter().nth(below(counts[1])).expect("a grant");
                    if grants.remove(key).is_none() {
                        grants.insert(key.clone(), grant.clone());
                    }
                }
                16..22 => toggle(&all.backend_tls, backend_tls, below(counts[2])),
                22 => toggle(&all.services, services, below(counts[3])),
                23 => want_tls(services, below(counts[3])),
                _ => toggle(&all.gateways, gateways, below(counts[4])),
            }
        }
        let followed = translator.update(&now);
        let anew = translate(&now, &Options::default());
        assert_eq!(followed.configuration, anew.configuration, "step {step}");
        assert_eq!(followed.statuses, anew.statuses, "step {step}");
        assert_eq!(followed.problems.to_string(), anew.problems.to_string(), "step {step}");
        served += anew.configuration.routes.len();
    }
    assert!(served > 300, "hardly anything was served: {served}");
}

#[test]
fn of_very_many_names_that_are_nowhere_few_are_compared_with_those_that_there_are() {
    let parents: Vec<_> = (1..=9).map(|number| format!("{{name: web{number}}}")).collect();
    let text = format!(
        "{OBJECTS}---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: shop, name: astray}}
spec:
  parentRefs: [{}]
  rules: [{{backendRefs: [{{name: a, port: 80}}]}}]
",
        parents.join(", ")
    );
    let snapshot = of_gateways(&text);
    let problems = translate(&snapshot, &Options::default()).problems.to_string();
    assert_eq!(problems.matches("there is no Gateway shop/web").count(), 9, "{problems}");
    assert_eq!(problems.matches("did you mean web?").count(), 2, "{problems}");
}

const SETS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: edge, name: web}
spec:
  gatewayClassName: fairway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: older, creationTimestamp: '2026-01-01T00:00:00Z'}
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: own}]
  rules: [{matches: [{path: {value: /a}}, {path: {value: /b}}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: younger, creationTimestamp: '2026-01-02T00:00:00Z'}
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: own}]
  rules: [{matches: [{path: {value: /c}}, {path: {value: /d}}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: bank, name: of-another, creationTimestamp: '2026-01-03T00:00:00Z'}
spec:
  parentRefs: [{name: web, namespace: edge}]
  hostnames: [bank.test]
  rules: [{}]
---
";

/// The ListenerSet of the routes above, with so many listeners.
fn listeners(number: usize) -> String {
    let one = |number| {
        format!("  - {{name: l{number}, protocol: HTTP, port: 80, hostname: h{number}.test}}\n")
    };
    format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{namespace: shop, name: own}}
spec:
  parentRef: {{name: web, namespace: edge}}
  listeners:
{}",
        (0..number).map(one).collect::<String>()
    )
}

#[test]
fn a_route_counts_for_each_host_of_the_listeners_that_have_it() {
    let options = Options {
        namespace_budget: "route-places=15".parse().expect("a budget"),
        ..Options::default()
    };
    let mut translator = Translator::new(options.clone());
    // Two matches of each route, under each host. What waits is closed as far as it has room once more.
    let expected = [(1, 4, 0), (3, 12, 0), (4, 8, 8), (7, 14, 14), (8, 0, 0), (3, 12, 0)];
    for (number, places, closed) in expected {
        let text = format!("{SETS}{}", listeners(number));
        let snapshot = of_gateways(&text);
        let found = translator.update(&snapshot);
        let anew = translate(&snapshot, &options);
        assert_eq!(found.configuration, anew.configuration, "{number} listeners");
        assert_eq!(found.statuses, anew.statuses, "{number} listeners");
        let hosts = found.configuration.routes.values();
        let made = hosts.flat_map(|host| &host.locations);
        let (shut, made): (Vec<_>, Vec<_>) = made.partition(|place| match &place.backend {
            model::Backend::Broken(why) => why.contains("not accepted, OverBudget"),
            _ => false,
        });
        let problems = found.problems.to_string();
        assert_eq!(made.len(), places + 1, "{number} listeners: {problems}");
        assert_eq!(shut.len(), closed, "{number} listeners: {problems}");
        let waits = problems.matches("leave too little of the route-places").count();
        assert_eq!(waits, if number < 4 { 0 } else { 1 + usize::from(number > 7) }, "{problems}");
    }
}

#[test]
fn a_route_of_streams_counts_for_each_listener_that_has_it() {
    let options = Options {
        namespace_budget: "route-places=15".parse().expect("a budget"),
        gateway_addresses: vec!["127.0.0.8/30".parse().expect("addresses")],
        ..Options::default()
    };
    for (kind, listener) in [
        ("TLSRoute", "protocol: TLS, port: 443, tls: {mode: Passthrough}, hostname: hN.test"),
        ("TCPRoute", "protocol: TCP, port: 90N"),
    ] {
        let mut translator = Translator::new(options.clone());
        // Two backends of each route.
        for (number, waiting) in [(1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (3, 0)] {
            let listeners = (0..number).map(|at| {
                let one = listener.replace('N', &at.to_string());
                format!("{{name: l{at}, {one}}}")
            });
            let listeners = listeners.collect::<Vec<_>>().join(", ");
            let set = "{group: gateway.networking.k8s.io, kind: ListenerSet, name: own}";
            let both = "{name: s, port: 1}, {name: s, port: 2}";
            let older = route([kind, "shop", "older", "1"], set, "", both);
            let younger = route([kind, "shop", "younger", "2"], set, "", both);
            let text = format!(
                "{SETS}apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{namespace: shop, name: own}}
spec: {{parentRef: {{name: web, namespace: edge}}, listeners: [{listeners}]}}\n{older}{younger}"
            );
            let snapshot = of_gateways(&text);
            let found = translator.update(&snapshot);
            let anew = translate(&snapshot, &options);
            assert_eq!(found.configuration, anew.configuration, "{kind} {number}");
            assert_eq!(found.statuses, anew.statuses, "{kind} {number}");
            let problems = found.problems.to_string();
            let waits = problems.matches("leave too little of the route-places").count();
            assert_eq!(waits, waiting, "{kind} at {number} listeners: {problems}");
        }
    }
}

#[test]
fn hosts_share_what_their_rules_ask_for_and_where_they_lead() {
    let text = format!("{SETS}{}", listeners(2));
    let snapshot = of_gateways(&text);
    let found = translate(&snapshot, &Options::default()).configuration.routes;
    let own: Vec<_> = found.values().filter(|host| host.rules.len() == 4).collect();
    let [one, other] = own[..] else { panic!("two hosts: {found:?}") };
    for (one, other) in one.rules.iter().zip(&other.rules) {
        assert!(Arc::ptr_eq(&one.matches, &other.matches));
    }
    for (one, other) in one.locations.iter().zip(&other.locations) {
        assert!(Arc::ptr_eq(one, other));
    }
}
