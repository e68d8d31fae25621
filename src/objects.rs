//! The objects that `check` and `explain` look at, once.

use crate::flags::{Classes, Source};
use crate::wire;
use anyhow::{Context, Result};
use kubernetes::Snapshot;
use kubernetes::objects::{IngressClass, Meta, ObjectKey};
use std::io;
use std::path::Path;
use std::sync::Arc;
use translate::Options;

/// The path that means standard input.
const STDIN: &str = "-";
/// Where ingress-nginx's manifests put its ConfigMap.
const USUAL_CONFIG_MAP: (&str, &str) = ("ingress-nginx", "ingress-nginx-controller");

/// The objects as they are now, and what the command line says about their meaning; what is assumed is said.
pub(crate) fn read(source: Source, classes: &Classes) -> Result<(Snapshot, Options)> {
    let mut options = wire::options(classes);
    let is_folder = !source.manifests.is_empty();
    let mut snapshot = match source.manifests.iter().any(|path| path == Path::new(STDIN)) {
        true => {
            let text = io::read_to_string(io::stdin()).context("cannot read standard input")?;
            kubernetes::snapshot_of([(Path::new("standard input"), text.as_str())])
        }
        false => wire::first_snapshot(source, &options)?,
    };
    if is_folder {
        assume_class(&mut snapshot, &options);
    }
    options.config_map = options.config_map.or_else(|| usual_config_map(&snapshot));
    Ok((snapshot, options))
}

/// The ConfigMap that ingress-nginx's own manifests have, unless a flag names another.
fn usual_config_map(snapshot: &Snapshot) -> Option<ObjectKey> {
    let key = ObjectKey::new(USUAL_CONFIG_MAP.0, USUAL_CONFIG_MAP.1);
    let found = snapshot.config_maps.contains_key(&key);
    if found {
        eprintln!("using ConfigMap {}/{} (--configmap names another)", key.namespace, key.name);
    }
    found.then_some(key)
}

/// Folders rarely hold the IngressClass: without any, the usual one is taken as ours.
fn assume_class(snapshot: &mut Snapshot, options: &Options) {
    if snapshot.classes.as_ref().is_some_and(|classes| !classes.is_empty()) {
        return;
    }
    let key = ObjectKey::new("", options.ingress_class.as_str());
    eprintln!("no IngressClass found: Ingresses of class {} count as ours", key.name);
    let meta = Meta { key: key.clone(), ..Meta::default() };
    let class = IngressClass { meta, controller: options.controller_class.clone() };
    snapshot.classes = Some(std::iter::once((key, Arc::new(class))).collect());
}
