//! Clusters of hostile objects, one after the other, through translation and both engines: nothing is refused as a
//! whole, and the honest neighbour is served. `FAIRWAY_HOSTILE` says which seeds: `FROM..TO`.

use crate::nginx::engine_bed::{PATIENCE, backend, folder, free_port, get, start};
use crate::nginx::written::translated;
use engine::Engine;
use model::{Changes, Configuration, Outside};
use proxy::{Listen, Native, Options};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use testkit::hostile::{HONEST, Keys, objects};

/// Seeds, unless `FAIRWAY_HOSTILE` says otherwise.
const SEEDS: Range<u64> = 0..24;
/// The native engine starts nothing for each of them.
const NATIVE_SEEDS: Range<u64> = 0..200;

fn seeds(otherwise: Range<u64>) -> Range<u64> {
    let asked = std::env::var("FAIRWAY_HOSTILE").ok();
    let both = asked.as_deref().and_then(|text| text.split_once(".."));
    both.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?)).unwrap_or(otherwise)
}

/// What translation makes of the cluster of a seed, `with_settings` or with a ConfigMap as it ought to be: what the
/// operator asks for, such as the PROXY protocol or a list that nobody can read, counts for the neighbour, too.
fn cluster(seed: u64, backend: SocketAddr, with_settings: bool) -> Configuration {
    let (annotations, settings) = (translate::annotation_rows(), translate::config_map_rows());
    let annotations: Vec<_> = annotations.iter().map(|row| row.name).collect();
    let settings: Vec<_> = settings.iter().map(|row| row.name).collect();
    let settings = if with_settings { &settings[..] } else { &[] };
    let keys = Keys { annotations: &annotations, settings };
    translated(&objects(seed, &keys, backend)).configuration
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_tenants_write_the_native_engine_takes_it_and_their_neighbour_is_served() {
    let listen = Listen {
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        http_port: 0,
        https_port: 0,
        health_path: "/healthz".to_owned(),
        trace_secret: None,
        outside: Outside::default(),
    };
    let engine = Arc::new(Native::start(Options::new(listen)).expect("ports chosen by the system"));
    let (backend, port) = (backend("honest"), engine.listening().http_port);
    let (mut before, mut wrong) = (Configuration::default(), Vec::new());
    for seed in seeds(NATIVE_SEEDS) {
        for with_settings in [true, false] {
            let next = cluster(seed, backend, with_settings);
            match engine.apply(&next, &Changes::between(&before, &next)).await {
                Err(rejected) => wrong.push(format!("seed {seed}: {rejected:?}")),
                Ok(_) if with_settings => {}
                Ok(_) if get(port, HONEST) == Some((200, "honest".to_owned())) => {}
                Ok(applied) => {
                    wrong.push(format!("seed {seed}: {:?} {applied:?}", get(port, HONEST)));
                }
            }
            before = next;
        }
    }
    engine.drain(Duration::from_secs(5)).await;
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_tenants_write_nginx_takes_it_and_their_neighbour_is_served() {
    let (folder, port, backend) = (folder(), free_port(), backend("honest"));
    let engine = start(&folder, port);
    let mut wrong = Vec::new();
    for seed in seeds(SEEDS) {
        let (next, changes) = (cluster(seed, backend, true), Changes::default());
        let applied = engine.apply(&next, &changes);
        match tokio::time::timeout(PATIENCE, applied).await.expect("in time") {
            Err(rejected) => wrong.push(format!("seed {seed}: {rejected:?}")),
            Ok(_) if get(port, HONEST) == Some((200, "honest".to_owned())) => {}
            Ok(applied) => wrong.push(format!("seed {seed}: {:?} {applied:?}", get(port, HONEST))),
        }
    }
    engine.drain(Duration::from_secs(5)).await;
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
