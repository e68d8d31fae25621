//! Raw configuration (`*-snippet`) and ModSecurity: in the words of whoever may write them.

use super::super::location::At;
use super::super::tree::put;
use super::super::{Block, Scope, Word};
use model::policy::{ModSecurity, Raw, RawGlobal};
use model::{Configuration, Origin, Server};
use std::path::Path;

/// What Debian's module recommends, and where its core rules are.
const RECOMMENDED: &str = "/etc/nginx/modsecurity.conf";
const CORE_RULES: [&str; 4] = [
    "/etc/modsecurity/crs/crs-setup.conf",
    "/etc/modsecurity/crs/REQUEST-900-EXCLUSION-RULES-BEFORE-CRS.conf",
    "/usr/share/modsecurity-crs/rules/*.conf",
    "/etc/modsecurity/crs/RESPONSE-999-EXCLUSION-RULES-AFTER-CRS.conf",
];

/// Whether anything asks for ModSecurity, so that its module has to be there.
pub(in crate::conf) fn wants_modsecurity(configuration: &Configuration) -> bool {
    let global = configuration.global.raw.as_ref();
    let everywhere = global.is_some_and(|raw| raw.modsecurity.enabled == Some(true));
    let servers = configuration.servers.values();
    let mut locations = servers.flat_map(|server| server.locations.iter());
    everywhere
        || locations.any(|location| {
            let raw = location.policy.raw.as_ref();
            raw.is_some_and(|raw| raw.modsecurity.enabled == Some(true))
        })
}

/// What the ConfigMap says for all of `http`.
pub(in crate::conf) fn of_http(scope: &mut Scope<'_>, http: &mut Block) {
    let Some(raw) = scope.configuration.global.raw.clone() else { return };
    let RawGlobal { main: _, http: snippet, server: _, location: _, auth: _, modsecurity } = *raw;
    if modsecurity.enabled == Some(true) {
        put!(http, "modsecurity", true);
        let mut text = modsecurity.rules.unwrap_or_else(recommended);
        if modsecurity.core_rules {
            text.push_str(&core_rules());
        }
        let file = scope.file("modsecurity", text.into_bytes());
        put!(http, "modsecurity_rules_file", file);
    }
    if let Some(text) = snippet {
        http.raw("http-snippet", &text, None);
    }
}

/// What the first Ingress of a host says for the host, and the ConfigMap for all hosts.
pub(in crate::conf) fn of_server(scope: &Scope<'_>, server: &Server, block: &mut Block) {
    let mut locations = server.locations.iter();
    let own = locations.find_map(|location| {
        let text = location.policy.raw.as_ref()?.server.as_ref()?;
        Some((text, location.origin.as_ref()))
    });
    if let Some((text, origin)) = own {
        block.raw("server-snippet", text, origin);
    }
    if let Some(text) = scope.configuration.global.raw.as_ref().and_then(|raw| raw.server.as_ref())
    {
        block.raw("server-snippet of the ConfigMap", text, None);
    }
}

pub(in crate::conf) fn write(policy: Option<&Raw>, at: &mut At<'_, '_>) {
    let global = at.scope.configuration.global.raw.as_ref();
    if let Some(text) = global.and_then(|raw| raw.location.as_ref())
        && at.location.origin.is_some()
    {
        at.block.raw("location-snippet of the ConfigMap", text, None);
    }
    let Some(Raw { configuration, server: _, auth: _, modsecurity }) = policy else { return };
    let everywhere = global.is_some_and(|raw| raw.modsecurity.enabled == Some(true));
    guard(modsecurity, everywhere, at);
    if let Some(text) = configuration {
        at.block.raw("configuration-snippet", text, at.location.origin.as_ref());
    }
}

/// ModSecurity at a location, as ingress-nginx puts its rules together.
fn guard(policy: &ModSecurity, everywhere: bool, at: &mut At<'_, '_>) {
    let ModSecurity { enabled, core_rules: core, rules, transaction_id } = policy;
    match enabled {
        Some(false) => return put!(at.block, "modsecurity", false),
        Some(true) if !everywhere => put!(at.block, "modsecurity", true),
        None if !everywhere => return,
        Some(true) | None => {}
    }
    let mut text = rules.clone().unwrap_or_default();
    if !everywhere {
        if rules.is_none() {
            text.push_str(&recommended());
        }
        if *core {
            text.push_str(&core_rules());
        }
    }
    if !text.is_empty() {
        let file = at.scope.file("modsecurity", text.into_bytes());
        put!(at.block, "modsecurity_rules_file", file);
    }
    if let Some(id) = transaction_id {
        // Variables count, and it is nginx that knows them.
        put!(at.block, "modsecurity_transaction_id", Word::plain(id));
    }
}

fn recommended() -> String {
    format!("Include {RECOMMENDED}\n")
}

fn core_rules() -> String {
    let there = |path: &&&str| path.contains('*') || Path::new(path).exists();
    CORE_RULES.iter().filter(there).map(|path| format!("Include {path}\n")).collect()
}

/// `auth-snippet`, or `global-auth-snippet` where the authenticator is that of everybody.
pub(in crate::conf) fn of_auth(at: &At<'_, '_>, block: &mut Block) {
    let own = at.location.policy.raw.as_ref().and_then(|raw| raw.auth.as_ref());
    let global = at.scope.configuration.global.raw.as_ref().and_then(|raw| raw.auth.as_ref());
    match (own, global) {
        (Some(text), _) => block.raw("auth-snippet", text, origin(at)),
        (None, Some(text)) => block.raw("global-auth-snippet", text, None),
        (None, None) => {}
    }
}

fn origin<'b>(at: &At<'_, 'b>) -> Option<&'b Origin> {
    at.location.origin.as_ref()
}
