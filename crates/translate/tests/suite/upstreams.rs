//! Services and EndpointSlices: who is behind a backend.

use crate::builders::*;
use model::{Upstream, UpstreamId};
use objects::{PortRef, Service, ServicePort, SlicePort, Snapshot};
use std::sync::Arc;
use translate::{Options, Translator, translate};

fn shop() -> Snapshot {
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/", "s"));
    put_service(&mut snapshot, service("demo", "s", 80));
    snapshot
}

fn behind(snapshot: &Snapshot) -> Arc<Upstream> {
    translate(snapshot, &Options::default()).configuration.upstreams[&UpstreamId::new("demo-s-80")]
        .clone()
}

fn ready(snapshot: &Snapshot) -> Vec<String> {
    behind(snapshot).endpoints.ready.iter().map(ToString::to_string).collect()
}

#[test]
fn all_slices_of_a_service_count_each_address_once_in_both_families() {
    let mut snapshot = shop();
    put_slice(
        &mut snapshot,
        slice("demo", "s-1", "s", vec![endpoint("10.0.0.2"), endpoint("10.0.0.1")]),
    );
    put_slice(
        &mut snapshot,
        slice("demo", "s-2", "s", vec![endpoint("2001:db8::1"), endpoint("10.0.0.1")]),
    );
    let mut names = slice("demo", "s-3", "s", vec![endpoint("10.0.0.9")]);
    names.fqdn = true;
    put_slice(&mut snapshot, names);
    assert_eq!(ready(&snapshot), ["10.0.0.2:8000", "10.0.0.1:8000", "[2001:db8::1]:8000"]);
}

#[test]
fn endpoints_that_end_but_serve_are_kept_apart_and_others_left_out() {
    let mut snapshot = shop();
    let mut ending = endpoint("10.0.0.1");
    (ending.ready, ending.terminating) = (false, true);
    let mut starting = endpoint("10.0.0.2");
    (starting.ready, starting.serving) = (false, false);
    let mut twice = endpoint("10.0.0.3");
    (twice.ready, twice.terminating) = (false, true);
    put_slice(
        &mut snapshot,
        slice("demo", "s-1", "s", vec![ending, starting, twice, endpoint("10.0.0.3")]),
    );
    let endpoints = &behind(&snapshot).endpoints;
    assert_eq!(endpoints.ready, ["10.0.0.3:8000".parse().expect("an address")]);
    assert_eq!(endpoints.draining, ["10.0.0.1:8000".parse().expect("an address")]);
}

#[test]
fn a_port_is_found_by_number_by_name_and_by_its_target() {
    let named = |name: &str| Some(PortRef::Name(name.to_owned()));
    let cases = [
        (Some(PortRef::Number(80)), true),
        (Some(PortRef::Number(8000)), true),
        (Some(PortRef::Number(81)), false),
        (named("http"), true),
        (named("https"), false),
        (None, false),
    ];
    for (port, found) in cases {
        let mut snapshot = shop();
        put_slice(&mut snapshot, slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]));
        let mut shop = simple("demo", "shop", "shop.test", "/", "s");
        shop.default_backend = Some(Box::new(backend("s", port.clone())));
        shop.rules.clear();
        put_ingress(&mut snapshot, shop);
        let translation = translate(&snapshot, &Options::default());
        let (_, upstream) = translation.configuration.upstreams.get_min().expect("one upstream");
        assert_eq!(!upstream.endpoints.ready.is_empty(), found, "{port:?}");
        assert_eq!(translation.problems.is_empty(), found, "{port:?}: {}", translation.problems);
    }
}

#[test]
fn a_slice_says_which_port_a_name_means_and_a_number_stands_in_for_it() {
    let mut snapshot = shop();
    let two = |ports: &[(Option<&str>, u16)]| {
        let mut made = slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]);
        let port = |(name, port): &(Option<&str>, u16)| SlicePort {
            name: name.map(str::to_owned),
            port: Some(*port),
            protocol: "TCP".to_owned(),
        };
        made.ports = ports.iter().map(port).collect();
        made
    };
    put_slice(&mut snapshot, two(&[(Some("http"), 8001), (Some("alt"), 8002)]));
    assert_eq!(ready(&snapshot), ["10.0.0.1:8001"]);
    put_slice(&mut snapshot, two(&[(Some("alt"), 8002)]));
    assert_eq!(ready(&snapshot), ["10.0.0.1:8000"], "targetPort of the Service");
    put_slice(&mut snapshot, two(&[]));
    assert_eq!(ready(&snapshot), ["10.0.0.1:8000"], "targetPort of the Service");
    let mut unnamed = service("demo", "s", 80);
    unnamed.ports = vec![ServicePort {
        name: None,
        port: 80,
        target: None,
        protocol: "TCP".to_owned(),
        http2: false,
        tls: false,
    }];
    put_service(&mut snapshot, unnamed);
    put_slice(&mut snapshot, two(&[(None, 8001), (Some("alt"), 8002)]));
    assert_eq!(ready(&snapshot), ["10.0.0.1:8001", "10.0.0.1:8002"]);
}

fn external(name: &str) -> Service {
    Service {
        kind: "ExternalName".to_owned(),
        external_name: Some(name.to_owned()),
        ..service("demo", "s", 80)
    }
}

#[test]
fn an_external_name_is_resolved_later_an_address_is_itself_and_this_machine_is_refused() {
    let mut snapshot = shop();
    put_service(&mut snapshot, external("DB.example"));
    assert_eq!(behind(&snapshot).external, Some(("db.example".to_owned(), 8000)));
    put_service(&mut snapshot, external("db.Example."));
    assert_eq!(behind(&snapshot).external, Some(("db.example.".to_owned(), 8000)));
    put_service(&mut snapshot, external("192.0.2.1"));
    assert_eq!(ready(&snapshot), ["192.0.2.1:8000"]);
    for refused in ["localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "bad_name", ""]
    {
        put_service(&mut snapshot, external(refused));
        let found = translate(&snapshot, &Options::default());
        let upstream = &found.configuration.upstreams[&UpstreamId::new("demo-s-80")];
        assert!(upstream.external.is_none() && upstream.endpoints.ready.is_empty(), "{refused}");
        assert!(
            found.problems.to_string().contains("externalName"),
            "{refused}: {}",
            found.problems
        );
    }
    put_service(&mut snapshot, external("db.example"));
    let off = translate(&snapshot, &Options { disable_external_names: true, ..Options::default() });
    assert!(off.problems.to_string().contains("--disable-svc-external-name"));
}

#[test]
fn the_default_backend_counts_while_it_has_endpoints() {
    let options = Options { default_backend_service: Some(key("demo", "s")), ..Options::default() };
    let mut translator = Translator::new(options);
    let mut snapshot = shop();
    let root = |snapshot: &Snapshot, translator: &mut Translator| {
        upstream(&translator.update(snapshot).configuration, "_", "/")
    };
    assert_eq!(root(&snapshot, &mut translator), None);
    put_slice(&mut snapshot, slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]));
    assert_eq!(root(&snapshot, &mut translator).as_deref(), Some("upstream-default-backend"));
    put_slice(&mut snapshot, slice("demo", "s-1", "s", Vec::new()));
    assert_eq!(root(&snapshot, &mut translator), None);
}

#[test]
fn a_change_of_endpoints_touches_its_upstream_and_nothing_else() {
    let mut snapshot = shop();
    put_ingress(&mut snapshot, simple("demo", "other", "other.test", "/", "other"));
    let mut translator = Translator::new(Options::default());
    translator.update(&snapshot);
    put_slice(&mut snapshot, slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]));
    let changes = translator.update(&snapshot).changes;
    assert_eq!(changes.upstreams, [UpstreamId::new("demo-s-80")]);
    assert!(changes.servers.is_empty() && changes.certificates.is_empty() && !changes.global);
}

#[test]
fn an_external_name_that_names_a_service_of_the_cluster_follows_its_endpoints() {
    let mut snapshot = shop();
    put_service(&mut snapshot, external("real.other.svc.cluster.local"));
    put_service(&mut snapshot, service("other", "real", 8000));
    let mut translator = Translator::new(Options::default());
    let mut addresses = |snapshot: &Snapshot| {
        let configuration = translator.update(snapshot).configuration;
        let upstream = &configuration.upstreams[&UpstreamId::new("demo-s-80")];
        assert_eq!(upstream.external, None);
        upstream.endpoints.ready.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(addresses(&snapshot), [""; 0]);
    put_slice(&mut snapshot, slice("other", "real-1", "real", vec![endpoint("10.0.0.1")]));
    assert_eq!(addresses(&snapshot), ["10.0.0.1:8000"]);
}

#[test]
fn the_address_of_the_service_is_used_on_demand_and_only_where_it_has_one() {
    let mut snapshot = shop();
    put_slice(&mut snapshot, slice("demo", "s-1", "s", vec![endpoint("10.0.0.1")]));
    let mut by_address = simple("demo", "shop", "shop.test", "/", "s");
    annotate(&mut by_address, "service-upstream", "true");
    put_ingress(&mut snapshot, by_address);
    assert_eq!(ready(&snapshot), ["10.0.0.1:8000"], "it has no address");
    let mut with_address = service("demo", "s", 80);
    with_address.cluster_ip = Some("10.96.0.1".to_owned());
    put_service(&mut snapshot, with_address);
    assert_eq!(ready(&snapshot), ["10.96.0.1:80"]);
    // Another Ingress of the same Service is not concerned.
    put_ingress(&mut snapshot, simple("demo", "plain", "plain.test", "/", "s"));
    let upstreams = translate(&snapshot, &Options::default()).configuration.upstreams;
    let found: Vec<String> = upstreams
        .values()
        .map(|upstream| format!("{} {:?}", upstream.id, upstream.endpoints.ready))
        .collect();
    assert_eq!(found, ["cluster-ip:demo/s:80 [10.96.0.1:80]", "demo-s-80 [10.0.0.1:8000]"]);
}

#[test]
fn a_zone_has_its_own_endpoints_where_the_service_asks_for_it() {
    let hinted = |address: &str, zones: &[&str]| {
        let mut endpoint = endpoint(address);
        endpoint.zones = Some(zones.iter().map(|zone| (*zone).to_owned()).collect());
        endpoint
    };
    let here = ["10.0.0.1:8000"];
    let all = ["10.0.0.1:8000", "10.0.0.2:8000"];
    let cases = [
        // annotation, trafficDistribution, zone of this process, hints of the second endpoint: who is behind
        (Some("Auto"), None, "a", Some(["b"]), &here[..]),
        (Some("Auto"), None, "c", Some(["b"]), &[][..]),
        (Some("Auto"), None, "a", None, &all[..]),
        (Some("Disabled"), None, "a", Some(["b"]), &all[..]),
        (None, Some("PreferClose"), "a", Some(["b"]), &here[..]),
        (None, Some("PreferClose"), "c", Some(["b"]), &all[..]),
        (None, None, "a", Some(["b"]), &all[..]),
    ];
    for (mode, distribution, zone, hints, wanted) in cases {
        let mut snapshot = shop();
        let mut service = service("demo", "s", 80);
        service.traffic_distribution = distribution.map(str::to_owned);
        if let Some(mode) = mode {
            let name = "service.kubernetes.io/topology-mode".to_owned();
            service.meta.annotations.insert(name, mode.to_owned());
        }
        put_service(&mut snapshot, service);
        let second = match hints {
            Some(zones) => hinted("10.0.0.2", &zones),
            None => endpoint("10.0.0.2"),
        };
        let endpoints = vec![hinted("10.0.0.1", &["a"]), second];
        put_slice(&mut snapshot, slice("demo", "s-1", "s", endpoints));
        let options = Options { zone: Some(zone.to_owned()), ..Options::default() };
        let id = UpstreamId::new("demo-s-80");
        let found = translate(&snapshot, &options).configuration.upstreams[&id].clone();
        let found: Vec<String> = found.endpoints.ready.iter().map(ToString::to_string).collect();
        assert_eq!(found, wanted, "{mode:?} {distribution:?} {zone} {hints:?}");
        let nowhere =
            translate(&snapshot, &Options::default()).configuration.upstreams[&id].clone();
        assert_eq!(nowhere.endpoints.ready.len(), 2, "no zone, no difference");
    }
}
