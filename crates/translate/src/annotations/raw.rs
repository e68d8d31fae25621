//! Raw configuration and ModSecurity, for the engine that understands them (`--engine=nginx`). For any other they are a
//! matter of `known` and `guards`, which deny.

use super::{Limits, idle};
use crate::config_map;
use crate::settings::{CONFIG_MAP, Key, Lines, NameFate, Settings, on_off, parse, size};
use model::policy::{ModSecurity, Raw, RawGlobal};
use model::snippet::Scope;
use model::{Kind, Origin, Secret, Severity};

/// Annotations that are read here and nowhere else.
const ANNOTATIONS: [&str; 10] = [
    "configuration-snippet",
    "server-snippet",
    "auth-snippet",
    "stream-snippet",
    "modsecurity-snippet",
    "enable-modsecurity",
    "enable-owasp-core-rules",
    "modsecurity-transaction-id",
    "proxy-busy-buffers-size",
    "proxy-max-temp-file-size",
];
/// Keys of the ConfigMap that are read here and nowhere else.
const KEYS: [&str; 8] = [
    "main-snippet",
    "http-snippet",
    "server-snippet",
    "location-snippet",
    "global-auth-snippet",
    "modsecurity-snippet",
    "enable-modsecurity",
    "enable-owasp-modsecurity-crs",
];
static BUSY_BUFFERS: Key<usize> = Key::both("proxy-busy-buffers-size", parse::buffer);
static TEMPORARY_FILE: Key<u64> = Key::both("proxy-max-temp-file-size", parse::size);

/// Texts of snippets, whoever reads them.
static LOCATION: Key<String> = Key::annotation("configuration-snippet", parse::text).secret();
static SERVER: Key<String> = Key::annotation("server-snippet", parse::text).secret();
static LOCATION_OF_ALL: Key<String> = Key::config_map("location-snippet", parse::text).secret();
static RULES: Key<String> = Key::annotation("modsecurity-snippet", parse::text).secret();
static TRANSACTION: Key<String> =
    Key::annotation("modsecurity-transaction-id", parse::text).secret();
static MODSECURITY: Key<bool> = Key::annotation("enable-modsecurity", parse::boolean);
static CORE_RULES: Key<bool> = Key::annotation("enable-owasp-core-rules", parse::boolean);
/// Those of the location that asks an authenticator.
pub(super) static AUTH: Key<String> = Key::annotation("auth-snippet", parse::text).secret();
pub(super) static AUTH_OF_ALL: Key<String> =
    Key::config_map("global-auth-snippet", parse::text).secret();

/// What stands for a snippet that counts.
pub(super) const COUNTS: &str = "in force: Explain tells what it does";

/// What is in force of snippets and of what nginx alone understands.
pub(super) fn show(snippet: Option<&Scope>, raw: Option<&Raw>, lines: &mut Lines) {
    if snippet.is_some() {
        lines.add("snippet", COUNTS).by(&[&LOCATION, &LOCATION_OF_ALL]).by(&[&LOCATION_OF_ALL]);
    }
    let Some(Raw { configuration, server, auth, modsecurity, busy_buffers, temporary_file }) = raw
    else {
        return;
    };
    let ModSecurity { enabled, core_rules, rules, transaction_id } = modsecurity;
    lines.add("raw.configuration", configuration).by(&[&LOCATION]);
    lines.add("raw.server", server).by(&[&SERVER]);
    lines.add("raw.auth", auth).by(&[&AUTH]);
    lines.add("raw.modsecurity.enabled", enabled).by(&[&MODSECURITY]);
    lines.add("raw.modsecurity.core_rules", on_off(*core_rules)).by(&[&CORE_RULES]);
    lines.add("raw.modsecurity.rules", rules).by(&[&RULES]);
    lines.add("raw.modsecurity.transaction_id", transaction_id).by(&[&TRANSACTION]);
    let buffers = busy_buffers.map(|bytes| size(bytes as u64));
    lines.add("raw.busy_buffers", buffers).by(&[&BUSY_BUFFERS]);
    lines.add("raw.temporary_file", temporary_file.map(size)).by(&[&TEMPORARY_FILE]);
}

/// Whether an annotation is read here.
pub(super) fn is_annotation(settings: &Settings<'_>, name: &str) -> bool {
    settings.scope().raw && ANNOTATIONS.contains(&name)
}

/// Whether a key of the ConfigMap is read here.
pub(crate) fn is_key(settings: &Settings<'_>, name: &str) -> bool {
    let tunes = || CONFIG_MAP.get(name).is_some_and(|known| known.fate == NameFate::Tuning);
    settings.scope().raw && (KEYS.contains(&name) || tunes())
}

/// What an Ingress says; none for an engine that does not understand it.
pub(super) fn read(settings: &mut Settings<'_>, limits: &Limits) -> Option<Box<Raw>> {
    if !settings.scope().raw {
        return None;
    }
    let raw = Raw {
        configuration: snippet(settings, "configuration-snippet", limits).map(Secret::from),
        server: snippet(settings, "server-snippet", limits).map(Secret::from),
        auth: snippet(settings, "auth-snippet", limits).map(Secret::from),
        modsecurity: ModSecurity {
            enabled: boolean(settings, "enable-modsecurity"),
            core_rules: boolean(settings, "enable-owasp-core-rules").unwrap_or(false),
            rules: snippet(settings, "modsecurity-snippet", limits).map(Secret::from),
            transaction_id: text(settings, "modsecurity-transaction-id").map(Secret::from),
        },
        busy_buffers: settings.get(&BUSY_BUFFERS),
        temporary_file: settings.get(&TEMPORARY_FILE),
    };
    if text(settings, "stream-snippet").is_some() {
        settings.note("stream-snippet", Severity::Warning, idle::NO_STREAM.to_owned());
    }
    (!raw.is_empty()).then(|| Box::new(raw))
}

/// What the ConfigMap says; none for an engine that does not understand it.
pub(crate) fn global(settings: &mut Settings<'_>) -> Option<Box<RawGlobal>> {
    let scope = settings.scope();
    let (name, data) = scope.config_map.filter(|_| scope.raw)?;
    let origin = Origin::new(Kind::ConfigMap, name.namespace.clone(), name.name.clone());
    let text = |name: &str| data.get(name).filter(|text| !text.trim().is_empty()).cloned();
    let boolean = |name: &str| text(name).and_then(|text| parse::boolean(text.trim()).ok());
    let global = RawGlobal {
        origin: Some(origin),
        main: text("main-snippet").map(Secret::from),
        http: text("http-snippet").map(Secret::from),
        server: text("server-snippet").map(Secret::from),
        location: text("location-snippet").map(Secret::from),
        auth: text("global-auth-snippet").map(Secret::from),
        modsecurity: ModSecurity {
            enabled: boolean("enable-modsecurity"),
            core_rules: boolean("enable-owasp-modsecurity-crs").unwrap_or(false),
            rules: text("modsecurity-snippet").map(Secret::from),
            transaction_id: None,
        },
        tuning: config_map::tuning(settings),
    };
    Some(Box::new(global))
}

/// A snippet, if the ConfigMap allows them. What it may hold is judged by nginx.
fn snippet(settings: &mut Settings<'_>, name: &str, limits: &Limits) -> Option<String> {
    let text = text(settings, name)?;
    if limits.snippets {
        return Some(text);
    }
    if let Some((severity, why)) = idle::ignored(settings, name, limits) {
        settings.note(name, severity, why);
    }
    None
}

fn text(settings: &Settings<'_>, name: &str) -> Option<String> {
    let text = settings.raw(name)?.into_owned();
    (!text.trim().is_empty()).then_some(text)
}

/// A switch. One that nobody can read could be a guard that is not there, so the Ingress is not taken.
fn boolean(settings: &mut Settings<'_>, name: &str) -> Option<bool> {
    let text = text(settings, name)?;
    match parse::boolean(&text) {
        Ok(on) => Some(on),
        Err(_) => {
            settings.reject(name, "is neither true nor false: write one of the two");
            None
        }
    }
}
