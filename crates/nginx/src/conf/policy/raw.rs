//! Raw configuration (`*-snippet`) and ModSecurity: in the words of whoever may write them.

use super::super::location::At;
use super::super::templates::keep_groups_now;
use super::super::tree::{put, words};
use super::super::{Block, Owner, SERVER_SNIPPET, Scope, Word};
use model::policy::{ModSecurity, Raw, RawGlobal};
use model::{Configuration, Secret, Server};
use std::collections::BTreeSet;
use std::path::Path;

/// What Debian's module recommends, and where its core rules are.
const RECOMMENDED: &str = "/etc/nginx/modsecurity.conf";
const CORE_RULES: [&str; 4] = [
    "/etc/modsecurity/crs/crs-setup.conf",
    "/etc/modsecurity/crs/REQUEST-900-EXCLUSION-RULES-BEFORE-CRS.conf",
    "/usr/share/modsecurity-crs/rules/*.conf",
    "/etc/modsecurity/crs/RESPONSE-999-EXCLUSION-RULES-AFTER-CRS.conf",
];
/// Where the image of ingress-nginx had them: rules that people wrote include these.
const ITS_RECOMMENDED: &str = "/etc/nginx/modsecurity/modsecurity.conf";
const ITS_CORE_RULES: &str = "/etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf";
/// Logs of a container are its standard output, one line each; Debian's settings name a file that nobody rotates there.
const AUDIT_LOG: &str = "SecAuditLog /dev/stdout\nSecAuditLogFormat JSON\n";

/// Whether somebody's own configuration that counts at a location has a word.
pub(in crate::conf) fn has_word(at: &At<'_, '_>, word: &str) -> bool {
    let own = at.location.policy.raw.as_deref().and_then(|raw| raw.configuration.as_ref());
    let of_host = at.server.raw.iter().map(|raw| &raw.text);
    let of_all = at.scope.configuration.global.raw.as_deref().into_iter();
    let of_all = of_all.flat_map(|raw| [&raw.http, &raw.server, &raw.location]).flatten();
    of_all.chain(of_host).chain(own).any(|text| text.contains(word))
}

/// Whether somebody's own configuration of a location looks at an expression: what that matches is known to all that
/// stands behind it. Checks of origins match something, too, and would be taken for it.
fn has_matches(policy: Option<&Raw>, at: &At<'_, '_>) -> bool {
    let all = at.scope.configuration.global.raw.as_deref();
    let of_all = all.filter(|_| at.location.origin.is_some());
    let of_all = of_all.and_then(|raw| raw.location.as_ref());
    let own = policy.and_then(|raw| raw.configuration.as_ref());
    let looks = |text: &Secret<String>| text.contains('~') || text.contains("rewrite");
    own.into_iter().chain(of_all).any(looks)
}

/// What the ConfigMap says at one of its keys, as its own.
pub(in crate::conf) fn of_config_map(
    configuration: &Configuration,
    key: &'static str,
    text: fn(&RawGlobal) -> Option<&Secret<String>>,
    block: &mut Block,
) {
    if let Some(raw) = configuration.global.raw.as_deref()
        && let Some(text) = text(raw)
    {
        block.raw(key, text, owner(raw, key));
    }
}

fn owner(raw: &RawGlobal, key: &'static str) -> Option<Owner> {
    raw.origin.as_ref().map(|origin| Owner::of_key(origin, key))
}

/// Whether anything asks for ModSecurity, so that its module has to be there.
pub(in crate::conf) fn wants_modsecurity(configuration: &Configuration) -> bool {
    let global = configuration.global.raw.as_ref();
    let everywhere = global.is_some_and(|raw| raw.modsecurity.enabled == Some(true));
    let servers = configuration.servers.values();
    let mut locations = servers.flat_map(|server| server.locations.iter());
    // Nor may a text of the ConfigMap depend on an Ingress that asks for it, and may be gone tomorrow.
    let texts = global.into_iter().flat_map(|raw| [&raw.http, &raw.server, &raw.location]);
    everywhere
        || texts.flatten().any(|text| says_modsecurity(text))
        || locations.any(|location| {
            let raw = location.policy.raw.as_ref();
            raw.is_some_and(|raw| raw.modsecurity.enabled == Some(true))
        })
}

/// Whether a text has a directive of that module, and not a remark about it.
fn says_modsecurity(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.any(|line| line.contains("modsecurity"))
}

/// What the ConfigMap says for all of `http`.
pub(in crate::conf) fn of_http(scope: &mut Scope<'_>, http: &mut Block) {
    let configuration = scope.configuration;
    let Some(raw) = configuration.global.raw.as_deref() else { return };
    if raw.modsecurity.enabled == Some(true) {
        put!(http, "modsecurity", true);
        let file = scope.file("modsecurity", everybodys(&raw.modsecurity).into_bytes());
        http.put_for(owner(raw, "modsecurity-snippet"), "modsecurity_rules_file", words![file]);
    }
    of_config_map(configuration, "http-snippet", |raw| raw.http.as_ref(), http);
}

/// What an Ingress says for its host, and the ConfigMap for all hosts.
pub(in crate::conf) fn of_server(scope: &Scope<'_>, server: &Server, block: &mut Block) {
    if let Some(raw) = server.raw.as_deref() {
        block.raw(SERVER_SNIPPET, &raw.text, Owner::of_host(server, SERVER_SNIPPET));
    }
    of_config_map(scope.configuration, SERVER_SNIPPET, |raw| raw.server.as_ref(), block);
}

pub(in crate::conf) fn write(policy: Option<&Raw>, at: &mut At<'_, '_>) {
    texts(policy, at);
    let of = &at.location.policy;
    if of.cors.is_none() && has_matches(policy, at) {
        at.block.append(keep_groups_now(of));
    }
}

fn texts(policy: Option<&Raw>, at: &mut At<'_, '_>) {
    let all = at.scope.configuration;
    if at.location.origin.is_some() {
        of_config_map(all, "location-snippet", |raw| raw.location.as_ref(), &mut at.block);
    }
    let Some(Raw {
        configuration,
        server: _,
        auth: _,
        modsecurity,
        // Beside the other buffers.
        busy_buffers: _,
        temporary_file: _,
    }) = policy
    else {
        return;
    };
    guard(modsecurity, at);
    if let Some(text) = configuration {
        at.block.raw("configuration-snippet", text, origin(at));
    }
}

/// ModSecurity at a location, as ingress-nginx puts its rules together.
fn guard(policy: &ModSecurity, at: &mut At<'_, '_>) {
    let ModSecurity { enabled, core_rules: core, rules: own, transaction_id } = policy;
    let global = at.scope.configuration.global.raw.as_ref().map(|raw| &raw.modsecurity);
    let everywhere = global.is_some_and(|global| global.enabled == Some(true));
    match enabled {
        Some(false) if everywhere => return put!(at.block, "modsecurity", false),
        Some(true) if !everywhere => put!(at.block, "modsecurity", true),
        // Without anybody who asks for it nginx does not know the word.
        Some(false) | None if !everywhere => return,
        Some(_) | None => {}
    }
    let mut text = match (own, everywhere) {
        (None, true) => String::new(),
        (own, _) => rules(own.as_ref().map(|own| own.as_str())),
    };
    if *core {
        text.push_str(&core_rules());
    }
    if let Some(global) = global.filter(|_| everywhere) {
        // What is loaded for everybody would be there twice, which ModSecurity does not take.
        let there = everybodys(global);
        let there: BTreeSet<&str> =
            there.lines().filter(|line| line.starts_with("Include ")).collect();
        let own = text.lines().filter(|line| !there.contains(line));
        text = own.map(|line| format!("{line}\n")).collect();
    }
    if !text.is_empty() {
        let file = at.scope.file("modsecurity", text.into_bytes());
        put!(at.block, "modsecurity_rules_file", file);
    }
    if let Some(id) = transaction_id {
        // Variables count, and it is nginx that knows them.
        put!(at.block, "modsecurity_transaction_id", Word::plain(id.as_str()));
    }
}

/// What the ConfigMap loads for everybody.
fn everybodys(policy: &ModSecurity) -> String {
    let core = if policy.core_rules { core_rules() } else { String::new() };
    rules(policy.rules.as_ref().map(|own| own.as_str())) + &core
}

/// Somebody's rules, or the recommended ones.
fn rules(own: Option<&str>) -> String {
    let Some(own) = own else { return format!("Include {RECOMMENDED}\n{AUDIT_LOG}") };
    let included = |line: &str| {
        let (word, path) = line.trim().split_once(char::is_whitespace)?;
        let path = path.trim().trim_matches('"');
        match word.eq_ignore_ascii_case("include").then_some(path)? {
            ITS_RECOMMENDED => Some(format!("Include {RECOMMENDED}")),
            ITS_CORE_RULES => Some(core_rules().trim_end().to_owned()),
            _ => None,
        }
    };
    own.lines().map(|line| included(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn core_rules() -> String {
    let there = |path: &&&str| path.contains('*') || Path::new(path).exists();
    CORE_RULES.iter().filter(there).map(|path| format!("Include {path}\n")).collect()
}

/// `auth-snippet`, or `global-auth-snippet` where the authenticator is that of everybody.
pub(in crate::conf) fn of_auth(at: &At<'_, '_>, block: &mut Block) {
    let own = at.location.policy.raw.as_ref().and_then(|raw| raw.auth.as_ref());
    match own {
        Some(text) => block.raw("auth-snippet", text, origin(at)),
        None => {
            let all = at.scope.configuration;
            of_config_map(all, "global-auth-snippet", |raw| raw.auth.as_ref(), block);
        }
    }
}

fn origin(at: &At<'_, '_>) -> Option<Owner> {
    at.location.origin.as_deref().map(Owner::from)
}
