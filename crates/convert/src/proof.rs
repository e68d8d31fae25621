//! The new objects, read as Fairway will read them: what their statuses will say is a loss.

use crate::lost::{Ledger, Weight};
use crate::made::Made;
use objects::{ObjectKey, Snapshot};
use std::path::Path;
use translate::{Options, translate};

/// Notes what is wrong with objects that were made.
pub(crate) fn check(all: &[Made], snapshot: &Snapshot, options: &Options, ledger: &mut Ledger<'_>) {
    let texts: Vec<(String, String)> = all
        .iter()
        .enumerate()
        .map(|(number, made)| (format!("{number}.json"), made.value.to_string()))
        .collect();
    let texts = texts.iter().map(|(path, text)| (Path::new(path.as_str()), text.as_str()));
    let made = objects::snapshot_of(texts);
    let remedy = "mend what the Ingress refers to, and convert again";
    for malformed in made.malformed.values() {
        let name = format!("{}/{}", malformed.key.namespace, malformed.key.name);
        ledger.add(None, &name, Weight::Lost, malformed.message.clone(), remedy);
    }
    let mut classes = made.gateway_classes.clone();
    classes.extend(snapshot.gateway_classes.iter().map(|(key, one)| (key.clone(), one.clone())));
    let mut maps = snapshot.config_maps.clone();
    maps.extend(made.config_maps.iter().map(|(key, one)| (key.clone(), one.clone())));
    let together = Snapshot {
        services: snapshot.services.clone(),
        slices: snapshot.slices.clone(),
        secrets: snapshot.secrets.clone(),
        namespaces: snapshot.namespaces.clone(),
        config_maps: maps,
        gateway_classes: classes,
        ..made
    };
    let told = translate(&together, options).statuses;
    let of = |kind: &str, key: &ObjectKey| {
        let is_it = |made: &&Made| {
            let meta = &made.value["metadata"];
            made.value["kind"] == kind
                && meta["name"] == *key.name
                && meta["namespace"] == *key.namespace
        };
        all.iter().find(is_it).and_then(|made| made.of.clone())
    };
    for ((kind, key), status) in told.routes.iter().chain(told.stream_routes.iter()) {
        for condition in status.parents.iter().flat_map(|(_, conditions)| conditions) {
            if condition.holds != (condition.kind == "PartiallyInvalid") {
                continue;
            }
            let name = format!("{} {}/{}", kind.name(), key.namespace, key.name);
            let reason = format!("its status will say {}: {}", condition.reason, condition.message);
            let ingress = of(kind.name(), key);
            ledger.add(ingress.as_ref(), &name, Weight::Lost, reason, remedy);
        }
    }
}
