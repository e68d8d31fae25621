//! The controller's ConfigMap, one file per area: settings of the process, and what annotations may be.

mod area;
mod authentication;
mod block;
mod compression;
mod connections;
mod geoip2;
mod headers;
mod listeners;
mod log_targets;
mod logging;
mod opentelemetry;
pub(crate) mod opentracing;
mod permissions;
mod real_ip;
mod redirects;
mod separators;
mod streams;
mod tls;
mod tuning;

pub(crate) use opentelemetry::{NO_SPANS, OPERATION_NAME};
pub(crate) use permissions::Permissions;
pub(crate) use tuning::read as tuning;

use crate::annotations::{FAMILIES, is_annotation, is_guard, is_raw_key, raw_global};
use crate::settings::{AnyKey, CONFIG_MAP, Name, NameFate, Settings, meant_key, nearest};
use crate::snippets::{STREAM, is_key as is_snippet};
use area::Area;
use model::{Global, Severity};

/// All areas, in the order of documentation.
pub(crate) const AREAS: &[Area] = &[
    connections::AREA,
    real_ip::AREA,
    headers::AREA,
    redirects::AREA,
    tls::AREA,
    compression::AREA,
    logging::AREA,
    opentelemetry::AREA,
    opentracing::AREA,
    geoip2::AREA,
    log_targets::AREA,
    listeners::AREA,
    streams::AREA,
    block::AREA,
    permissions::AREA,
    authentication::AREA,
];

/// The settings of the process; what is wrong with values stays in `settings`.
pub(crate) fn global(settings: &mut Settings<'_>) -> Global {
    let mut global = Global::default();
    for area in AREAS {
        (area.apply)(settings, &mut global);
    }
    global.raw = raw_global(settings);
    global
}

/// What annotations may be, and what reaches beyond one location.
pub(crate) fn permissions(settings: &mut Settings<'_>) -> Permissions {
    permissions::read(settings)
}

/// Every key that is read from the ConfigMap, with the name of its area or family.
pub(crate) fn keys() -> impl Iterator<Item = (&'static str, &'static dyn AnyKey)> {
    let areas = AREAS.iter().map(|area| (area.name, area.keys));
    let families = FAMILIES.iter().map(|family| (family.name, family.keys));
    let all =
        areas.chain(families).flat_map(|(name, keys)| keys.iter().map(move |key| (name, *key)));
    all.filter(|(_, key)| key.about().in_config_map().is_some())
}

/// Whether a key of the ConfigMap is called so.
pub(crate) fn is_key(name: &str) -> bool {
    keys().any(|(_, key)| key.about().in_config_map() == Some(name))
        || CONFIG_MAP.get(name).is_some()
}

const SNIPPET: &str = "raw configuration is for the nginx engine only: what it guards is open, remove it or guard otherwise";

/// Notes every key that has no effect.
pub(crate) fn check(settings: &mut Settings<'_>) {
    let Some((_, data)) = settings.scope().config_map else { return };
    separators::check(settings, keys().map(|(_, key)| key.about()));
    for name in data.keys() {
        let is_read = keys().any(|(_, key)| key.about().in_config_map() == Some(name));
        let is_snippet = name == STREAM || !settings.scope().raw && is_snippet(name);
        if is_read || is_raw_key(settings, name) || is_guard(name) || is_snippet {
            continue;
        }
        let (severity, message) = match CONFIG_MAP.get(name) {
            // Nobody can tell whether the text holds a guard.
            Some(known) if known.fate == NameFate::Nginx && name.ends_with("-snippet") => {
                (Severity::Error, SNIPPET.to_owned())
            }
            Some(known) => (Severity::Notice, without_key(known)),
            None => (Severity::Warning, misspelt(name)),
        };
        settings.note(name, severity, message);
    }
}

fn without_key(known: &Name) -> String {
    match known.fate {
        NameFate::Later => "not supported yet".to_owned(),
        NameFate::Nginx | NameFate::Snippet => {
            "has no effect: only the nginx engine can do this".to_owned()
        }
        NameFate::NoEffect | NameFate::Tuning => format!("has no effect here: {}", known.reason),
        NameFate::Removed => "has no effect: ingress-nginx removed it, too".to_owned(),
    }
}

fn misspelt(name: &str) -> String {
    if is_annotation(name) {
        return "is an annotation and has no effect here: write it at Ingresses".to_owned();
    }
    let read = keys().filter_map(|(_, key)| key.about().in_config_map());
    let known = read.chain(CONFIG_MAP.iter().map(|row| row.name));
    match meant_key(name).or_else(|| nearest(name, known)) {
        Some(meant) => format!("unknown key, it has no effect; did you mean {meant}?"),
        None => "unknown key, it has no effect; docs/configmap.md lists the known ones".to_owned(),
    }
}
