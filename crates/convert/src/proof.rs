//! The new objects, read as Fairway will read them: what their statuses will say is a loss.

use crate::lost::{Ledger, Weight};
use crate::made::Made;
use objects::gateway::GatewayClass;
use objects::{Meta, ObjectKey, Snapshot};
use std::path::Path;
use std::sync::Arc;
use translate::{Options, translate};

/// Notes what is wrong with objects that were made, for Gateways of this class.
pub(crate) fn check(
    all: &[Made],
    (snapshot, class): (&Snapshot, &str),
    options: &Options,
    ledger: &mut Ledger<'_>,
) {
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
    // Where nothing is known of the class, the objects are read as if it were ours.
    classes.entry(ObjectKey::new("", class)).or_insert_with(|| {
        let meta = Meta { key: ObjectKey::new("", class), ..Meta::default() };
        let controller = options.gateway_controller.clone();
        Arc::new(GatewayClass { meta, controller, has_parameters: false })
    });
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
