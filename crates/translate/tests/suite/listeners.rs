//! Listeners of one Gateway that several people wrote: whose the hosts are.

use crate::builders::*;
use crate::cases::root;
use model::{Configuration, Others, RouteKey, ServerName};
use objects::{Snapshot, snapshot_of};
use std::fs;
use std::path::Path;
use translate::{Options, Translator, translate};

fn case(name: &str) -> String {
    fs::read_to_string(root().join("gateway").join(name).join("in.yaml")).expect("a case")
}

fn snapshot(text: &str) -> Snapshot {
    snapshot_of([(Path::new("in.yaml"), text)])
}

fn names(names: &[&str]) -> Others {
    names.iter().map(|name| ServerName::new(*name)).collect()
}

/// Of the rules of a host: their scheme, and the hosts below it that are somebody else's.
fn others(configuration: &Configuration, host: &str) -> Vec<(model::Scheme, Option<Others>)> {
    let key = RouteKey { listener: None, host: ServerName::new(host) };
    let rules = configuration.routes.get(&key).into_iter().flat_map(|host| &host.rules);
    let of = |rule: &model::Rule| {
        (rule.matches.scheme, rule.others.as_ref().map(|others| Others::clone(others)))
    };
    let mut found: Vec<_> = rules.map(of).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn what_a_more_special_listener_has_goes_to_no_wider_one_of_somebody_else() {
    use model::Scheme::{Http, Https};
    let text = case("what-a-more-special-listener-has-goes-to-no-wider-one-of-another");
    let made = translate(&snapshot(&text), &Options::default()).configuration;
    let over_tls = names(&["*.shop.example", "op.example", "passed.example"]);
    let in_clear = names(&["*.shop.example", "op.example", "s.bank.example"]);
    // Routes without host names, and routes of gRPC.
    assert_eq!(
        others(&made, "_"),
        [(Http, Some(in_clear.clone())), (Https, Some(over_tls.clone()))]
    );
    let all = &made.routes[&RouteKey { listener: None, host: ServerName::catch_all() }];
    assert_eq!(all.not_shown_to.as_deref(), Some(&over_tls), "nor handshakes");
    // The route names the wildcard at a listener for all hosts and at one of that name.
    assert_eq!(others(&made, "*.example"), [(Http, Some(in_clear)), (Https, Some(over_tls))]);
    // Of a name of one letter the wildcard above it is as long.
    assert_eq!(others(&made, "s.bank.example"), [(Https, None)]);
    assert_eq!(others(&made, "*.bank.example"), [(Http, Some(names(&["s.bank.example"])))]);
    assert_eq!(others(&made, "t.bank.example"), [(Http, None), (Https, None)]);
    assert_eq!(others(&made, "pay.shop.example"), [(Http, None)]);
    assert_eq!(others(&made, "passed.example"), [(Http, None)], "its owner's mistake");
}

/// Hosts of the listeners on a port, with their certificates.
fn doors(configuration: &Configuration, port: u16) -> Vec<(&str, Option<&str>)> {
    let all = configuration.listeners.values().filter(|one| one.id.address.port() == port);
    all.map(|one| (one.id.hosts.as_str(), one.certificate.as_ref().map(|id| id.as_str()))).collect()
}

#[test]
fn a_listener_that_is_not_served_stands_closed_beside_those_that_are() {
    let text = case("a-listener-that-cannot-be-served-keeps-its-hosts");
    let pool = vec!["192.0.2.0/30".parse().expect("addresses")];
    let options = Options { gateway_addresses: pool, ..Options::default() };
    let mut translator = Translator::new(options.clone());
    let whole = snapshot(&text);
    let all = Some("bank/tls");
    let closed =
        [("*.shop.example", None), ("_", all), ("asks.example", None), ("op.example", None)];
    let made = translator.update(&whole).configuration;
    assert_eq!(doors(&made, 443), closed);
    assert_eq!(doors(&made, 8443), [("*.tls.example", None), ("_", None)]);
    assert_eq!(doors(&made, 9443), [], "where nobody is served nothing is opened");
    let of_closed = |host: &RouteKey| {
        let listener = host.listener.as_ref().map(|id| id.hosts.as_str());
        listener.is_some_and(|hosts| hosts != "_")
    };
    assert!(!made.routes.keys().chain(made.tls_routes.keys()).any(of_closed));
    // The Secret comes, and goes while all is running.
    let mut mended = whole.clone();
    let (certificate, key) = certificate(&["shop.example"]);
    let data = [("tls.crt", certificate.as_str()), ("tls.key", key.as_str())];
    put_secret(&mut mended, secret("shop", "gone", &data));
    let own = Some("shop/gone");
    let served =
        [("*.shop.example", own), ("_", all), ("asks.example", None), ("op.example", None)];
    assert_eq!(doors(&translator.update(&mended).configuration, 443), served);
    let made = translator.update(&whole);
    assert_eq!(doors(&made.configuration, 443), closed);
    assert_eq!(made.configuration, translate(&whole, &options).configuration);
}

/// A Gateway with these listeners, a ListenerSet of another namespace, and a route at each of them.
fn with_set(listeners: &str, of_set: &str) -> Snapshot {
    let (certificate, tls_key) = certificate(&["s.test"]);
    let data = [("tls.crt", certificate.as_str()), ("tls.key", tls_key.as_str())];
    let mut snapshot = of_gateways(&format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: shop, name: web}}
spec: {{gatewayClassName: fairway, allowedListeners: {{namespaces: {{from: All}}}}, listeners: [{listeners}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{namespace: other, name: set}}
spec: {{parentRef: {{name: web, namespace: shop}}, listeners: [{of_set}]}}
"
    ));
    for namespace in ["shop", "other"] {
        put_secret(&mut snapshot, secret(namespace, "tls", &data));
    }
    snapshot
}

/// Of a Gateway and its set: whether the Gateway is accepted and why, then of each listener the reason of `Accepted`,
/// and that of `Conflicted` where it holds.
fn told(listeners: &[&str], of_set: &[&str], options: &Options) -> String {
    let made = translate(&with_set(&listeners.join(", "), &of_set.join(", ")), options);
    let (gateway, set) = (&made.statuses.gateways[&key("shop", "web")], key("other", "set"));
    let of_gateway = gateway.conditions.iter().find(|one| one.kind == "Accepted").expect("told");
    let all = gateway.listeners.iter().chain(&made.statuses.sets[&set].listeners);
    let of_listeners = all.map(|listener| {
        let of = |kind| listener.conditions.iter().find(|one| one.kind == kind).expect("told");
        let conflict = Some(of("Conflicted")).filter(|one| one.holds);
        let conflict = conflict.map_or(String::new(), |one| format!(" {}", one.reason));
        format!("{} {}{conflict}", listener.name, of("Accepted").reason)
    });
    let of_gateway = format!("{} {}", of_gateway.holds, of_gateway.reason);
    [of_gateway].into_iter().chain(of_listeners).collect::<Vec<_>>().join(", ")
}

const HTTP: &str = "{name: http, protocol: HTTP, port: 80}";
const HTTPS: &str = "{name: https, protocol: HTTPS, port: 443, hostname: s.test, tls: {certificateRefs: [{name: tls}]}}";
const TCP: &str = "{name: tcp, protocol: TCP, port: 80}";
const PASSED: &str =
    "{name: passed, protocol: TLS, port: 443, hostname: p.test, tls: {mode: Passthrough}}";

/// Options with which each Gateway has an address of its own.
fn apart() -> Options {
    let gateway_addresses = vec!["192.0.2.0/30".parse().expect("addresses")];
    Options { gateway_addresses, ..Options::default() }
}

#[test]
fn what_cannot_be_served_anyway_takes_its_port_from_nobody() {
    const UNKNOWN: &str = "{name: foo, protocol: example.com/foo, port: 80}";
    const ELSEWHERE: &str = "{name: port, protocol: HTTP, port: 443}";
    let unknown = "true ListenersNotValid, http Accepted, foo UnsupportedProtocol, https Accepted";
    assert_eq!(told(&[HTTP, UNKNOWN], &[HTTPS], &apart()), unknown);
    let shared = Options::default();
    for (listeners, of_set, wanted) in [
        (&[HTTP, UNKNOWN][..], &[HTTPS][..], unknown),
        (
            &[HTTP, TCP],
            &[HTTPS],
            "true ListenersNotValid, http Accepted, tcp PortUnavailable, https Accepted",
        ),
        (
            &[HTTPS, PASSED],
            &[HTTP],
            "true ListenersNotValid, https Accepted, passed PortUnavailable, http Accepted",
        ),
        (
            &[HTTPS, ELSEWHERE],
            &[HTTP],
            "true ListenersNotValid, https Accepted, port PortUnavailable, http Accepted",
        ),
        // What a Gateway could not have is no set's loss, nor the other way round.
        (
            &[HTTP, PASSED],
            &[HTTPS],
            "true ListenersNotValid, http Accepted, passed PortUnavailable, https Accepted",
        ),
        (
            &[HTTP],
            &[HTTPS, PASSED],
            "true Accepted, http Accepted, https Accepted, passed PortUnavailable",
        ),
        (&[HTTP], &[TCP], "true Accepted, http Accepted, tcp PortUnavailable"),
    ] {
        assert_eq!(told(listeners, of_set, &shared), wanted, "{listeners:?} and {of_set:?}");
    }
}

#[test]
fn listeners_that_could_each_be_served_are_in_one_anothers_way() {
    let both = "false ListenersNotValid, http ProtocolConflict ProtocolConflict, \
                tcp ProtocolConflict ProtocolConflict, https Accepted";
    assert_eq!(told(&[HTTP, TCP], &[HTTPS], &apart()), both);
    let later =
        "true Accepted, http Accepted, passed Accepted, https ProtocolConflict ProtocolConflict";
    assert_eq!(told(&[HTTP, PASSED], &[HTTPS], &apart()), later);
    // Two of one name are not told apart by a port that cannot be had.
    let twice = ["a", "b"].map(|name| format!("{{name: {name}, protocol: HTTP, port: 81}}"));
    let names = "false ListenersNotValid, a PortUnavailable HostnameConflict, \
                 b PortUnavailable HostnameConflict, http Accepted";
    assert_eq!(told(&twice.each_ref().map(String::as_str), &[HTTP], &Options::default()), names);
}
