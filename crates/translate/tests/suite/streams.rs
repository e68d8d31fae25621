//! What the ConfigMaps of TCP and UDP services mean, entry by entry, and which hosts are passed through.

use crate::builders::*;
use model::{ServerName, StreamPort, Transport};
use objects::{ServicePort, SlicePort, Snapshot};
use std::collections::BTreeSet;
use translate::{GatewayServices, Options, Translator, translate};

fn options() -> Options {
    Options {
        tcp_services: Some(key("demo", "tcp")),
        udp_services: Some(key("demo", "udp")),
        reserved_ports: BTreeSet::from([80]),
        ..Options::default()
    }
}

fn with(tcp: &[(&str, &str)], udp: &[(&str, &str)]) -> Snapshot {
    let mut snapshot = cluster();
    put_service(&mut snapshot, service("demo", "s", 80));
    put_slice(&mut snapshot, slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]));
    put_config_map(&mut snapshot, config_map("demo", "tcp", tcp));
    put_config_map(&mut snapshot, config_map("demo", "udp", udp));
    snapshot
}

fn ports(snapshot: &Snapshot) -> Vec<String> {
    translate(snapshot, &options()).configuration.streams.keys().map(ToString::to_string).collect()
}

#[test]
fn a_bad_entry_is_told_and_touches_no_other_one() {
    let bad = [
        ("0", "demo/s:80"),
        ("70000", "demo/s:80"),
        ("abc", "demo/s:80"),
        ("80", "demo/s:80"),
        ("9001", ""),
        ("9002", "s:80"),
        ("9003", "demo/s"),
        ("9004", "demo/s/t:80"),
        ("9005", "demo/nobody:80"),
        ("9006", "demo/s:81"),
        ("9007", "demo/s:nobody"),
        ("9008", "demo/s:"),
        ("09100", "demo/s:80"),
    ];
    for (name, value) in bad {
        let good = ("9100", "demo/s:80");
        let snapshot = with(&[(name, value), good], &[]);
        let found = translate(&snapshot, &options());
        assert_eq!(ports(&snapshot), ["9100/tcp"], "{name}: {value}");
        let told: Vec<_> = found.problems.iter().map(|problem| problem.to_string()).collect();
        let [told] = &told[..] else { panic!("{name}: {told:?}") };
        assert!(told.starts_with("ConfigMap demo/tcp: "), "{told}");
    }
}

#[test]
fn the_fields_after_the_port_are_about_the_proxy_protocol_of_tcp() {
    let cases = [
        ("demo/s:80", (false, false)),
        ("demo/s:80:", (false, false)),
        ("demo/s:80:proxy", (true, false)),
        ("demo/s:80::PROXY", (false, true)),
        ("demo/s:80:PROXY:PROXY", (true, true)),
        ("demo/s:80:PROXY:PROXY:", (true, false)),
    ];
    for (value, expected) in cases {
        let found = translate(&with(&[("9100", value)], &[]), &options()).configuration;
        let port = StreamPort { transport: Transport::Tcp, number: 9100, address: None };
        let stream = &found.streams[&port];
        assert_eq!((stream.takes_proxy, stream.gives_proxy), expected, "{value}");
        assert_eq!(&*stream.service, "demo/s:80");
    }
}

#[test]
fn udp_wants_a_port_of_its_own_protocol() {
    let mut snapshot = with(&[("9100", "demo/s:80")], &[("9100", "demo/s:http")]);
    assert_eq!(ports(&snapshot), ["9100/tcp"]);
    let mut both = service("demo", "s", 80);
    let udp = "UDP".to_owned();
    both.ports.push(ServicePort { protocol: udp.clone(), ..both.ports[0].clone() });
    put_service(&mut snapshot, both);
    let mut slice = slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]);
    slice.ports.push(SlicePort { port: Some(5300), protocol: udp, ..slice.ports[0].clone() });
    put_slice(&mut snapshot, slice);
    assert_eq!(ports(&snapshot), ["9100/tcp", "9100/udp"]);
    let found = translate(&snapshot, &options()).configuration;
    let endpoints = |transport| {
        let stream = &found.streams[&StreamPort { transport, number: 9100, address: None }];
        stream.endpoints.ready.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(endpoints(Transport::Tcp), ["10.0.0.1:8000"]);
    assert_eq!(endpoints(Transport::Udp), ["10.0.0.1:5300"]);
}

#[test]
fn a_port_closes_with_the_last_endpoint_and_opens_with_the_first() {
    let mut snapshot = with(&[("9100", "demo/s:80")], &[]);
    let mut translator = Translator::new(options());
    assert_eq!(translator.update(&snapshot).changes.streams.len(), 1);
    let slices = snapshot.slices.remove(&key("demo", "s")).expect("the fixture has endpoints");
    let without = translator.update(&snapshot);
    assert_eq!(without.changes.streams.len(), 1);
    assert!(without.configuration.streams.is_empty());
    snapshot.slices.insert(key("demo", "s"), slices);
    assert_eq!(translator.update(&snapshot).configuration.streams.len(), 1);
    put_config_map(&mut snapshot, config_map("demo", "tcp", &[]));
    assert!(translator.update(&snapshot).configuration.streams.is_empty());
}

#[test]
fn a_host_is_passed_through_to_the_service_of_its_root() {
    let passed = |host: &str, path: &str, passthrough: bool| {
        let mut snapshot = cluster();
        let mut shop = simple("demo", "shop", host, path, "s");
        annotate(&mut shop, "ssl-passthrough", "true");
        put_ingress(&mut snapshot, shop);
        put_service(&mut snapshot, service("demo", "s", 80));
        let found = translate(&snapshot, &Options { passthrough, ..Options::default() });
        let server = &found.configuration.servers[&ServerName::new(host)];
        let told = found.problems.to_string().contains("ssl-passthrough: has no effect");
        assert_eq!(told, server.passthrough.is_none(), "{host} {path}: {}", found.problems);
        server.passthrough.is_some()
    };
    assert!(passed("shop.test", "/", true));
    assert!(!passed("shop.test", "/", false));
    assert!(!passed("shop.test", "/x", true));
    assert!(!passed("*.shop.test", "/", true));
}

#[test]
fn a_stream_snippet_of_the_config_map_opens_ports() {
    let read = |text: &str| {
        let mut snapshot = cluster();
        put_service(&mut snapshot, service("demo", "db", 5432));
        put_slice(&mut snapshot, slice("demo", "db-1", "db", vec![endpoint("10.0.0.1")]));
        put_config_map(&mut snapshot, config_map("x", "settings", &[("stream-snippet", text)]));
        let options = Options { config_map: Some(key("x", "settings")), ..Options::default() };
        let found = translate(&snapshot, &options);
        let ports = found.configuration.streams.values();
        (
            ports.map(|stream| stream.service.to_string()).collect::<Vec<_>>(),
            found.problems.to_string(),
        )
    };
    let (ports, problems) = read(
        "log_format a '$status';\nserver { listen 7000; listen 7001 proxy_protocol; proxy_timeout 1h;\n  \
         proxy_pass db.demo.svc.cluster.local:5432; }",
    );
    assert_eq!(ports, ["demo/db:5432", "demo/db:5432"], "{problems}");
    assert!(problems.contains("line 2, column 51: proxy_timeout has no effect"), "{problems}");
    for (text, words) in [
        ("server { listen 7000;\n  proxy_pass 10.0.0.1:5432; }", "line 2, column 14"),
        ("\nupstream db { server 10.0.0.1:1; }", "line 2, column 1: upstream"),
        ("server { listen 7000; }", "has \"listen\" and \"proxy_pass\""),
    ] {
        let (ports, problems) = read(text);
        assert!(ports.is_empty() && problems.contains(words), "{text}: {problems}");
    }
}

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: evil, name: g}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: health, protocol: TCP, port: 10254}
  - {name: webhook, protocol: HTTP, port: 8443}
  - {name: tcp, protocol: HTTP, port: 9000}
  - {name: tcp-as-udp, protocol: UDP, port: 9000}
  - {name: udp, protocol: UDP, port: 53}
  - {name: http, protocol: HTTP, port: 80}
  - {name: raw, protocol: TCP, port: 443}
  - {name: free, protocol: HTTP, port: 8080}
";

#[test]
fn gateways_keep_clear_of_ports_that_are_open_at_all_addresses_and_get_them_when_they_are_free() {
    let own = Options {
        process_ports: BTreeSet::from([8443, 10254]),
        reserved_ports: BTreeSet::from([80, 443, 8443, 10254]),
        gateway_addresses: vec!["192.0.2.0/30".parse().expect("addresses")],
        ..options()
    };
    let taken = |options: &Options, translator: &mut Translator, snapshot: &Snapshot| {
        let found = translator.update(snapshot);
        let anew = translate(snapshot, options);
        assert_eq!(found.statuses, anew.statuses);
        assert_eq!(found.configuration, anew.configuration);
        let listeners = found.statuses.gateways[&key("evil", "g")].listeners.iter();
        let refused = listeners.filter(|listener| {
            listener.conditions.iter().any(|one| one.reason == "PortUnavailable" && !one.holds)
        });
        refused.map(|listener| listener.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let mut all = of_gateways(GATEWAY);
    let mut translator = Translator::new(own.clone());
    let mut of_own = |all: &Snapshot| taken(&own, &mut translator, all);
    assert_eq!(of_own(&all), "health webhook");
    // Whether an endpoint is ready does not matter: it may be at any time.
    put_config_map(&mut all, config_map("demo", "tcp", &[("9000", "demo/s:80")]));
    assert_eq!(of_own(&all), "health webhook tcp");
    put_config_map(&mut all, config_map("demo", "udp", &[("53", "demo/dns:53")]));
    assert_eq!(of_own(&all), "health webhook tcp udp");
    put_config_map(&mut all, config_map("demo", "tcp", &[]));
    assert_eq!(of_own(&all), "health webhook udp");
    // Ports of a Service lead to others.
    let behind = Options {
        gateway_addresses: Vec::new(),
        gateway_services: GatewayServices::LoadBalancer,
        ..own.clone()
    };
    assert_eq!(taken(&behind, &mut Translator::new(behind.clone()), &all), "");
}
