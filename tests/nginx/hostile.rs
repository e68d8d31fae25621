//! Clusters of hostile objects, one after the other, through translation and a real nginx: nothing is refused as a
//! whole, and the honest neighbour is served. `FAIRWAY_HOSTILE` says which seeds: `FROM..TO`.

use crate::engine_bed::{PATIENCE, backend, folder, free_port, get, start};
use crate::written::translated;
use engine::Engine;
use model::Changes;
use std::time::Duration;
use testkit::hostile::{HONEST, Keys, objects};

/// Seeds, unless `FAIRWAY_HOSTILE` says otherwise.
const SEEDS: (u64, u64) = (0, 24);

fn seeds() -> (u64, u64) {
    let asked = std::env::var("FAIRWAY_HOSTILE").ok();
    let both = asked.as_deref().and_then(|text| text.split_once(".."));
    both.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?))).unwrap_or(SEEDS)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_tenants_write_nginx_takes_it_and_their_neighbour_is_served() {
    let (annotations, settings) = (translate::annotation_rows(), translate::config_map_rows());
    let annotations: Vec<_> = annotations.iter().map(|row| row.name).collect();
    let settings: Vec<_> = settings.iter().map(|row| row.name).collect();
    let keys = Keys { annotations: &annotations, settings: &settings };
    let (folder, port, backend) = (folder(), free_port(), backend("honest"));
    let engine = start(&folder, port);
    let (from, to) = seeds();
    let mut wrong = Vec::new();
    for seed in from..to {
        let translation = translated(&objects(seed, &keys, backend));
        let changes = Changes::default();
        let applied = engine.apply(&translation.configuration, &changes);
        match tokio::time::timeout(PATIENCE, applied).await.expect("in time") {
            Err(rejected) => wrong.push(format!("seed {seed}: {rejected:?}")),
            Ok(_) if get(port, HONEST) == Some((200, "honest".to_owned())) => {}
            Ok(applied) => wrong.push(format!("seed {seed}: {:?} {applied:?}", get(port, HONEST))),
        }
    }
    engine.drain(Duration::from_secs(5)).await;
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), to - from, wrong.join("\n"));
}
