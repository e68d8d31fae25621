//! Listeners of Gateways have a part of the process's sockets, and those of one namespace half of it.

use crate::builders::of_gateways;
use objects::{ObjectKey, Snapshot};
use translate::gateway::ListenerStatus;
use translate::{Options, Sockets, Translation, Translator, translate};

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: op, name: web, creationTimestamp: 2026-01-02T00:00:00Z}
spec:
  gatewayClassName: fairway
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: http, protocol: HTTP, port: 80}
";

/// A ListenerSet of a namespace with listeners at these ports.
fn set(namespace: &str, protocol: &str, ports: impl IntoIterator<Item = u16>) -> String {
    let listeners = ports
        .into_iter()
        .map(|port| format!("  - {{name: p{port}, protocol: {protocol}, port: {port}}}\n"));
    let listeners: String = listeners.collect();
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{namespace: {namespace}, name: more, creationTimestamp: 2026-01-01T00:00:00Z}}
spec:
  parentRef: {{name: web, namespace: op}}
  listeners:
{listeners}"
    )
}

fn snapshot(sets: &[String]) -> Snapshot {
    of_gateways(&format!("{GATEWAY}{}", sets.concat()))
}

/// So many sockets, where each of two threads has one for each port of HTTP.
fn options(most: u64) -> Options {
    Options {
        gateway_addresses: vec!["192.0.2.0/30".parse().expect("addresses")],
        sockets: Some(Sockets { most, threads: 2, fixed_threads: true, addresses: 0 }),
        ..Options::default()
    }
}

fn refused(listeners: &[ListenerStatus]) -> Vec<&str> {
    let refused = listeners.iter().filter(|listener| {
        let mut all = listener.conditions.iter();
        all.any(|one| one.kind == "Accepted" && !one.holds && one.reason == "PortUnavailable")
    });
    refused.map(|listener| listener.name.as_str()).collect()
}

/// The listeners of a ListenerSet that wait.
fn of_set<'a>(made: &'a Translation, namespace: &str) -> Vec<&'a str> {
    refused(&made.statuses.sets[&ObjectKey::new(namespace, "more")].listeners)
}

fn open(made: &Translation) -> Vec<u16> {
    let http = made.configuration.listeners.keys().map(|id| id.address.port());
    http.chain(made.configuration.streams.keys().map(|port| port.number)).collect()
}

#[test]
fn a_tenant_with_many_ports_leaves_half_of_the_sockets_to_others_and_is_told() {
    let options = options(16);
    let mut translator = Translator::new(options.clone());
    let all = snapshot(&[set("bad", "HTTP", 9000..9064)]);
    let made = translator.update(&all);
    assert_eq!(open(&made), [80, 9000, 9001, 9002, 9003], "two sockets each");
    assert_eq!(of_set(&made, "bad").len(), 60);
    let gateway = &made.statuses.gateways[&ObjectKey::new("op", "web")];
    assert!(refused(&gateway.listeners).is_empty(), "though it is younger");
    let told = made.problems.iter().find(|problem| problem.message.contains("listener p9004"));
    let told = told.expect("it is told").to_string();
    assert!(told.contains("bad/more") && told.contains("raise the limit of open files"), "{told}");
    let anew = translate(&all, &options);
    assert_eq!((&made.statuses, &made.configuration), (&anew.statuses, &anew.configuration));
    // What goes leaves its sockets to others.
    let made = translator.update(&snapshot(&[set("bad", "HTTP", 9003..9007)]));
    assert_eq!(open(&made), [80, 9003, 9004, 9005, 9006]);
}

#[test]
fn where_all_sockets_are_taken_those_who_hold_most_give_way() {
    let mut translator = Translator::new(options(8));
    let two = [set("a", "HTTP", 9000..9010), set("b", "HTTP", 9100..9110)];
    let made = translator.update(&snapshot(&two));
    assert_eq!(open(&made), [80, 9000, 9001, 9100]);
    let three = [&two[..], &[set("c", "HTTP", [9200])]].concat();
    let made = translator.update(&snapshot(&three));
    assert_eq!(open(&made), [80, 9000, 9100, 9200]);
    assert!(of_set(&made, "c").is_empty());
}

#[test]
fn a_port_of_tcp_is_one_socket_however_many_threads_there_are() {
    let made = translate(&snapshot(&[set("a", "TCP", 9000..9010)]), &options(8));
    assert_eq!(of_set(&made, "a").len(), 6);
    let unbounded = Options { sockets: None, ..options(8) };
    let made = translate(&snapshot(&[set("a", "TCP", 9000..9010)]), &unbounded);
    assert!(of_set(&made, "a").is_empty());
}
