//! Changes that need no reload, and those that do not concern nginx at all.

use super::walk::{Step, World};
use model::policy::{
    Affinity, AffinityMode, Algorithm, Balance, Canary, CanaryHeader, CanaryRules, CanaryTest,
};
use model::{
    CertificateId, Endpoints, Kind, Origin, Stream, StreamPort, StreamSettings, Template, Transport,
};
use std::num::NonZeroU32;
use std::sync::Arc;

pub(super) const KINDS: &[Step] = &[
    ("endpoints", endpoints),
    ("an endpoint more", endpoint_more),
    ("an endpoint less", endpoint_less),
    ("an endpoint drains", endpoint_drains),
    ("no endpoints", no_endpoints),
    ("a canary", canary),
    ("a weight", weight),
    ("rules of a canary", rules),
    ("sessions", sessions),
    ("an algorithm", algorithm),
    ("a certificate", certificate),
    ("another content of a certificate", content),
    ("a certificate goes", certificate_goes),
    ("whose certificate", whose_certificate),
    ("the default certificate", default_certificate),
    ("layer 4", layer_4),
];

fn endpoints(world: &mut World) {
    let id = world.any_upstream();
    world.set_endpoints(&id, |endpoints, all, rng| {
        let mut ready = all.to_vec();
        rng.shuffle(&mut ready);
        ready.truncate(rng.usize(1..=all.len()));
        *endpoints = Endpoints { ready, draining: Vec::new() };
    });
}

fn endpoint_more(world: &mut World) {
    let id = world.any_upstream();
    world.set_endpoints(&id, |endpoints, all, rng| {
        let one = all[rng.usize(..all.len())];
        endpoints.draining.retain(|address| *address != one);
        if !endpoints.ready.contains(&one) {
            endpoints.ready.push(one);
        }
    });
}

fn endpoint_less(world: &mut World) {
    let id = world.any_upstream();
    world.set_endpoints(&id, |endpoints, _, _| {
        if endpoints.ready.len() > 1 {
            endpoints.ready.remove(0);
        }
    });
}

fn endpoint_drains(world: &mut World) {
    let id = world.any_upstream();
    world.set_endpoints(&id, |endpoints, _, rng| {
        if !endpoints.ready.is_empty() {
            let one = endpoints.ready.remove(rng.usize(..endpoints.ready.len()));
            endpoints.draining.push(one);
        }
    });
}

/// Nobody is left behind some upstream, so the answer is 503 unless somebody stands in; or somebody comes back.
fn no_endpoints(world: &mut World) {
    let upstreams = world.configuration.upstreams.values();
    let empty = upstreams.filter(|upstream| upstream.endpoints.usable().is_empty());
    let empty: Vec<_> = empty.map(|upstream| upstream.id.clone()).collect();
    if empty.len() < 2 {
        let id = world.any_upstream();
        return world.set_endpoints(&id, |endpoints, _, _| *endpoints = Endpoints::default());
    }
    for id in empty {
        world.set_endpoints(&id, |endpoints, all, _| endpoints.ready = all[1..].to_vec());
    }
}

fn canary(world: &mut World) {
    let upstream = world.any_upstream();
    let rules = CanaryRules { weight: 30, ..CanaryRules::default() }.into();
    world.edit_location(|location, _| {
        location.canary = match location.canary.take() {
            Some(_) => None,
            None => Some(Box::new(Canary {
                upstream,
                origin: Origin::new(Kind::Ingress, "demo", "canary"),
                rules,
                balance: Balance::default(),
            })),
        };
    });
}

fn weight(world: &mut World) {
    world.edit_location(|location, world| {
        if let Some(canary) = &mut location.canary {
            Arc::make_mut(&mut canary.rules).weight = world.any(&[0, 1, 50, 100]);
        }
    });
}

fn rules(world: &mut World) {
    world.edit_location(|location, world| {
        let Some(canary) = &mut location.canary else { return };
        let tests =
            [None, Some(CanaryTest::Word), Some(CanaryTest::Value("yes".to_owned().into()))];
        let test = world.any(&tests);
        let rules = Arc::make_mut(&mut canary.rules);
        rules.header = test.map(|test| CanaryHeader { name: "x_canary".to_owned(), test });
        rules.cookie = world.rng.bool().then(|| "canary".to_owned());
    });
}

fn sessions(world: &mut World) {
    world.edit_policy(|policy, world| {
        policy.balance.affinity = match policy.balance.affinity {
            Some(_) => None,
            None => Some(
                Affinity {
                    mode: world.any(&[AffinityMode::Balanced, AffinityMode::Persistent]),
                    name: "INGRESSCOOKIE".to_owned(),
                    secure: false,
                    expires: None,
                    max_age: Some(60),
                    path: None,
                    domain: None,
                    same_site: None,
                    conditional_same_site_none: false,
                    change_on_failure: world.rng.bool(),
                    of_rule: None,
                }
                .into(),
            ),
        };
    });
}

fn algorithm(world: &mut World) {
    let key = Template::parse("$request_uri").expect("a variable");
    let two = NonZeroU32::new(2).expect("not zero");
    world.edit_policy(|policy, world| {
        policy.balance.algorithm = world.any(&[
            Algorithm::RoundRobin,
            Algorithm::Ewma,
            Algorithm::Random,
            Algorithm::Hash(key.clone()),
            Algorithm::HashSubset(key, two),
        ]);
    });
}

fn some_id(world: &mut World) -> CertificateId {
    CertificateId::new(format!("demo/tls-{}", world.rng.usize(..4)))
}

/// A new certificate for a host that has none.
fn certificate(world: &mut World) {
    let id = CertificateId::new(format!("demo/tls-new-{}", world.rng.usize(..8)));
    world.hold(&id);
    world.edit_server(|server, _| server.certificate = Some(id));
}

fn content(world: &mut World) {
    let id = some_id(world);
    world.hold(&id);
}

/// Hosts that still name it get the default one.
fn certificate_goes(world: &mut World) {
    let ids: Vec<_> = world.configuration.certificates.keys().cloned().collect();
    if !ids.is_empty() {
        let id = world.any(&ids);
        world.configuration.certificates.remove(&id);
    }
}

fn whose_certificate(world: &mut World) {
    let id = some_id(world);
    world.edit_server(|server, world| server.certificate = world.rng.bool().then_some(id));
}

fn default_certificate(world: &mut World) {
    let id = some_id(world);
    let is_none = world.configuration.default_certificate.is_none();
    world.configuration.default_certificate = (is_none || world.rng.bool()).then_some(id);
}

/// TCP and UDP services are served by Fairway itself.
fn layer_4(world: &mut World) {
    let tries = world.fresh();
    if world.rng.bool() {
        let streams = StreamSettings { tries, ..StreamSettings::default() };
        return world.edit_global(|global, _| global.streams = streams);
    }
    let transport = world.any(&[Transport::Tcp, Transport::Udp]);
    let stream = Stream {
        service: format!("demo/echo:{tries}").into(),
        namespace: "demo".into(),
        endpoints: Arc::default(),
        external: None,
        takes_proxy: false,
        gives_proxy: false,
        shares: Vec::new(),
    };
    let port = StreamPort { transport, number: 9000, address: None };
    world.configuration.streams.insert(port, Arc::new(stream));
}
