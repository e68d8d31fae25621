//! `fairway check`: what becomes of each Ingress that moves from ingress-nginx.

mod markdown;
mod table;

use crate::flags::{Check as Flags, FailOn, Format};
use crate::wire;
use anyhow::Result;
use kubernetes::Snapshot;
use kubernetes::objects::{IngressClass, Meta, ObjectKey};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use translate::{Check, Finding, Options, Standing};

/// Where ingress-nginx's manifests put its ConfigMap.
const USUAL_CONFIG_MAP: (&str, &str) = ("ingress-nginx", "ingress-nginx-controller");

/// Checks, prints, and says by the exit code what was found.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let Flags { paths, format, fail_on, all, mut source, classes } = flags;
    source.manifests.extend(paths);
    let started = Instant::now();
    eprintln!("reading the objects …");
    let mut options = wire::options(&classes);
    let is_folder = !source.manifests.is_empty();
    let mut snapshot = wire::first_snapshot(source, &options)?;
    if is_folder {
        assume_class(&mut snapshot, &options);
    }
    eprintln!(
        "{} Ingresses and {} Services read in {:.1} s",
        snapshot.ingresses.len(),
        snapshot.services.len(),
        started.elapsed().as_secs_f64()
    );
    for malformed in snapshot.malformed.values() {
        eprintln!(
            "not read: {} {}/{}: {}",
            malformed.kind, malformed.key.namespace, malformed.key.name, malformed.message
        );
    }
    options.config_map = options.config_map.or_else(|| usual_config_map(&snapshot));
    let check = translate::check(&snapshot, &options);
    eprintln!("checked in {:.1} s", started.elapsed().as_secs_f64());
    match format {
        Format::Table => print!("{}", table::page(&check, all)),
        Format::Markdown => print!("{}", markdown::page(&check, all)),
        Format::Json => println!("{}", serde_json::to_string_pretty(&check)?),
    }
    Ok(if fails(&check, fail_on) { ExitCode::from(2) } else { ExitCode::SUCCESS })
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

fn fails(check: &Check, fail_on: FailOn) -> bool {
    let least = match fail_on {
        FailOn::Never => return false,
        FailOn::Refused => Standing::Refused,
        FailOn::NeedsNginx => Standing::NeedsNginx,
        FailOn::Differs => Standing::Differs,
    };
    check.ingresses.iter().any(|finding| finding.standing >= least)
}

/// The order of pages: the worst first.
const ORDER: [Standing; 4] =
    [Standing::Refused, Standing::NeedsNginx, Standing::Differs, Standing::Identical];

/// A standing in words.
fn words(standing: Standing) -> &'static str {
    match standing {
        Standing::Identical => "served identically",
        Standing::Differs => "differs on purpose",
        Standing::NeedsNginx => "needs the nginx engine",
        Standing::Refused => "refused",
    }
}

fn of(check: &Check, standing: Standing) -> impl Iterator<Item = &Finding> {
    check.ingresses.iter().filter(move |finding| finding.standing == standing)
}

/// Whether a page has something to say of an Ingress.
fn is_worth_a_line(finding: &Finding, all: bool) -> bool {
    all || finding.standing != Standing::Identical || !finding.notes.is_empty()
}
