//! How many endpoints the Services of one namespace may have together (docs/tenancy.md).

use crate::builders::*;
use model::{Configuration, ServiceRef, UpstreamId};
use objects::{ServicePort, Snapshot};
use translate::{Options, Translator, fault_behind, translate};

fn options(budget: &str) -> Options {
    Options {
        namespace_budget: budget.parse().expect("a budget"),
        config_map: Some(key("system", "settings")),
        ..Options::default()
    }
}

/// A Service with a path that leads to it, and as many endpoints.
fn put(snapshot: &mut Snapshot, namespace: &str, name: &str, created: i64, endpoints: usize) {
    let host = format!("{name}.{namespace}.test");
    put_ingress(snapshot, simple(namespace, name, &host, "/", name));
    let mut made = service(namespace, name, 80);
    made.meta.created = created;
    put_service(snapshot, made);
    let all = (0..endpoints).map(|at| endpoint(&format!("10.1.{}.{}", at / 250, at % 250 + 1)));
    put_slice(snapshot, slice(namespace, &format!("{name}-1"), name, all.collect()));
}

fn count(configuration: &Configuration, upstream: &str) -> usize {
    configuration.upstreams[&UpstreamId::new(upstream)].endpoints.ready.len()
}

#[test]
fn who_asks_why_a_service_has_nobody_hears_that_it_waits_for_others() {
    let (mut snapshot, options) = (cluster(), options("endpoints=10"));
    put(&mut snapshot, "a", "old", 1, 6);
    put(&mut snapshot, "a", "new", 2, 5);
    let problems = translate(&snapshot, &options).problems;
    let why = |name: &str| {
        let service = ServiceRef { namespace: "a".into(), name: name.into(), port: "80".into() };
        fault_behind(&service, &snapshot, &options, &problems)
    };
    assert_eq!(why("old"), None);
    assert!(why("new").is_some_and(|why| why.starts_with("Service a/new has more endpoints")));
    assert!(why("gone").is_some_and(|why| why.starts_with("Service a/gone does not exist")));
}

#[test]
fn beyond_its_budget_the_newest_services_of_a_namespace_have_no_endpoints() {
    let options = options("endpoints=10");
    let (mut snapshot, mut translator) = (cluster(), Translator::new(options.clone()));
    let mut found = |snapshot: &Snapshot| {
        let found = translator.update(snapshot);
        let anew = translate(snapshot, &options);
        assert_eq!(found.configuration, anew.configuration);
        assert_eq!(found.problems, anew.problems);
        let of = |name| count(&found.configuration, name);
        let counts = ["a-old-80", "a-new-80", "a-small-80", "b-own-80"].map(of);
        (counts, found.problems.to_string())
    };
    put(&mut snapshot, "a", "old", 1, 6);
    put(&mut snapshot, "a", "new", 2, 5);
    put(&mut snapshot, "a", "small", 3, 4);
    put(&mut snapshot, "b", "own", 9, 10);
    let (counts, problems) = found(&snapshot);
    assert_eq!(counts, [6, 0, 4, 10], "{problems}");
    let told = "Error: Ingress a/new: spec: Service a/new has more endpoints than the older ones of its namespace leave \
                of those that they may have: remove some, or raise endpoints in namespace-budget of the ConfigMap; what \
                leads there answers 503";
    assert!(problems.contains(told), "{problems}");
    assert_eq!(problems.matches("more endpoints").count(), 1, "{problems}");
    // The oldest grows, which others pay for, and nobody else's do.
    put(&mut snapshot, "a", "old", 1, 9);
    assert_eq!(found(&snapshot).0, [9, 0, 0, 10]);
    put(&mut snapshot, "a", "old", 1, 2);
    assert_eq!(found(&snapshot).0, [2, 5, 0, 10]);
    put_config_map(
        &mut snapshot,
        config_map("system", "settings", &[("namespace-budget", "endpoints=11")]),
    );
    let (counts, problems) = found(&snapshot);
    assert_eq!(counts, [2, 5, 4, 10]);
    assert!(!problems.contains("more endpoints"), "{problems}");
    // A name that leads to another one's endpoints is paid for by whoever has the name.
    let mut name = service("b", "own", 80);
    (name.kind, name.meta.created) = ("ExternalName".to_owned(), 9);
    name.external_name = Some("old.a.svc.cluster.local".to_owned());
    name.ports[0].target = None;
    put_service(&mut snapshot, name);
    assert_eq!(found(&snapshot).0, [2, 5, 4, 2]);
    put(&mut snapshot, "a", "old", 1, 12);
    let (counts, problems) = found(&snapshot);
    assert_eq!(counts, [0, 5, 4, 0], "one that takes less need not wait");
    assert!(problems.contains("Service b/own has more"), "{problems}");
}

#[test]
fn lists_that_do_not_fit_are_counted_and_never_made() {
    let mut snapshot = cluster();
    let addresses = (0..100_000).map(|at: u32| {
        let [_, high, middle, low] = at.to_be_bytes();
        format!("10.{high}.{middle}.{low}").into()
    });
    let addresses: Vec<_> = addresses.collect();
    let all = addresses
        .chunks(100)
        .map(|some| objects::SliceEndpoint { addresses: some.to_vec(), ..endpoint("10.0.0.1") });
    let mut wide = slice("a", "s-1", "s", all.collect());
    let (own, slot) = (service("a", "s", 80).ports.remove(0), wide.ports.remove(0));
    wide.ports = (1..=100)
        .map(|port| objects::SlicePort { name: None, port: Some(port), ..slot.clone() })
        .collect();
    put_slice(&mut snapshot, wide);
    let mut made = service("a", "s", 80);
    made.ports = (1..=100).map(|port| ServicePort { name: None, port, ..own.clone() }).collect();
    put_service(&mut snapshot, made);
    for port in 1..=100 {
        let name = format!("i{port}");
        let mut own = simple("a", &name, &format!("{name}.test"), "/", "s");
        let to = backend("s", Some(objects::PortRef::Number(port)));
        own.rules[0].paths = Some(vec![path("/", objects::PathType::Prefix, to)]);
        put_ingress(&mut snapshot, own);
    }
    // A thousand million of them: whoever made them would not come back.
    let found = translate(&snapshot, &Options::default());
    assert_eq!(found.configuration.upstreams.len(), 100);
    assert!(found.configuration.upstreams.values().all(|one| one.endpoints.ready.is_empty()));
    assert_eq!(found.problems.to_string().matches("more endpoints").count(), 100);
}

const ROUTES: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: web}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
  - {name: one, protocol: TCP, port: 5432, allowedRoutes: {namespaces: {from: All}}}
  - {name: two, protocol: TCP, port: 5433, allowedRoutes: {namespaces: {from: All}}}
  - {name: three, protocol: TCP, port: 5434, allowedRoutes: {namespaces: {from: All}}}
";

/// A route that is the older, the shorter its name is, to the Service of its name.
fn route_at(kind: &str, namespace: &str, name: &str, listener: &str) -> String {
    let host = match kind {
        "HTTPRoute" => format!("hostnames: [{name}.{namespace}.test]"),
        _ => String::new(),
    };
    let parent = format!("{{name: web, namespace: infra, sectionName: {listener}}}");
    let day = name.len().to_string();
    let backend = format!("{{name: {name}, port: 80}}");
    route([kind, namespace, name, &day], &parent, &host, &backend)
}

/// A Service that is the older, the shorter its name is, with as many endpoints.
fn ports(namespace: &str, name: &str, endpoints: usize) -> String {
    let all: Vec<_> = (1..=endpoints).map(|at| format!("{{addresses: [10.2.0.{at}]}}")).collect();
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{namespace: {namespace}, name: {name}, creationTimestamp: '2026-01-0{}T00:00:00Z'}}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: {namespace}, name: {name}-1, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{port: 8000}}]
endpoints: [{}]
",
        name.len(),
        all.join(", ")
    )
}

#[test]
fn services_of_routes_have_as_many_again() {
    let http = |namespace, name| route_at("HTTPRoute", namespace, name, "http");
    let mut routes = ROUTES.to_owned();
    for text in [http("a", "s"), http("a", "ss"), http("a", "sss"), http("b", "ssss")] {
        routes.push_str(&text);
    }
    for (name, at) in [("s", "one"), ("ss", "two")] {
        routes.push_str(&route_at("TCPRoute", "a", name, at));
    }
    routes.push_str(&route_at("TCPRoute", "b", "ssss", "three"));
    let pool = vec!["192.0.2.1/32".parse().expect("a network")];
    let options = Options { gateway_addresses: pool, ..options("endpoints=10") };
    let mut translator = Translator::new(options.clone());
    for (first, expected, streams) in [
        (6, [6, 0, 4, 10], [6, 0, 10]),
        (5, [5, 5, 0, 10], [5, 5, 10]),
        (11, [0, 5, 4, 10], [0, 5, 10]),
        (1, [1, 5, 4, 10], [1, 5, 10]),
    ] {
        let mut text = routes.clone();
        for (namespace, name, count) in
            [("a", "s", first), ("a", "ss", 5), ("a", "sss", 4), ("b", "ssss", 10)]
        {
            text.push_str(&ports(namespace, name, count));
        }
        let snapshot = of_gateways(&text);
        let found = translator.update(&snapshot);
        let anew = translate(&snapshot, &options);
        assert_eq!(found.configuration, anew.configuration, "{first}");
        assert_eq!(found.problems, anew.problems, "{first}");
        let of = |name: &str| count(&found.configuration, &format!("gateway:{name}:80"));
        let counts = ["a/s", "a/ss", "a/sss", "b/ssss"].map(of);
        let problems = found.problems.to_string();
        assert_eq!(counts, expected, "{first}: {problems}");
        let shares = found.configuration.streams.values().map(|stream| {
            let [share] = &stream.shares[..] else { panic!("{stream:?}") };
            share.endpoints.ready.len()
        });
        assert_eq!(shares.collect::<Vec<_>>(), streams, "{first}: {problems}");
        let (of_http, of_streams) =
            (expected.iter().filter(|n| **n == 0), streams.iter().filter(|n| **n == 0));
        let told = |what: &str| problems.matches(what).count();
        assert_eq!(told("what leads there answers 503"), of_http.count(), "{problems}");
        assert_eq!(told("connections there end"), of_streams.count(), "{problems}");
    }
}

#[test]
fn endpoints_behind_hosts_that_are_passed_through_follow_though_routes_are_not_read_again() {
    let mut text = ROUTES.to_owned();
    text.push_str(
        "  - {name: tls, protocol: TLS, port: 8443, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}\n",
    );
    text.push_str(&route_at("TLSRoute", "a", "s", "tls"));
    text.push_str(&route_at("TCPRoute", "a", "ss", "one"));
    let pool = vec!["192.0.2.1/32".parse().expect("a network")];
    let options = Options { gateway_addresses: pool, ..Options::default() };
    let mut translator = Translator::new(options.clone());
    for (first, second) in [(1, 1), (2, 1), (2, 3), (0, 3), (4, 0)] {
        let all = [text.clone(), ports("a", "s", first), ports("a", "ss", second)].concat();
        let snapshot = of_gateways(&all);
        let found = translator.update(&snapshot);
        assert_eq!(found.configuration, translate(&snapshot, &options).configuration);
        assert_eq!(found.configuration.tls_routes.len(), 1);
        assert_eq!(count(&found.configuration, "gateway:a/s:80"), first);
        let stream = found.configuration.streams.values().next().expect("a port");
        assert_eq!(stream.shares[0].endpoints.ready.len(), second);
    }
}
