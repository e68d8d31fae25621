//! A Configuration without what is left out.

use super::{Instead, LeftOut, RULES, SETTINGS, text};
use crate::conf::{
    ALIASES, APP_ROOT, CIPHERS, CLIENT_CERTIFICATE, HOST, Owner, SERVER_SNIPPET,
    has_location_of_all,
};
use model::policy::{ClientCertificate, Policy, guard, guard_of_host};
use model::{Backend, Configuration, Global, Location, Server};
use std::sync::Arc;

/// A Configuration in which nothing of what is left out gets into nginx.conf but that its locations answer 503, or that
/// its text is the one of `before`.
pub(crate) fn without(
    configuration: &Configuration,
    before: &Configuration,
    left_out: &LeftOut,
) -> Configuration {
    let mut next = configuration.clone();
    if left_out.is_empty() {
        return next;
    }
    if left_out.keys().any(|owner| owner.key == Some(SETTINGS)) {
        let raw = configuration.global.raw.clone();
        next.global = Arc::new(Global { raw, ..Global::clone(&before.global) });
    }
    let mut unguarded = None;
    if let Some(raw) = &next.global.raw {
        let mut raw = raw.clone();
        for (owner, fault) in left_out {
            let stays = fault.instead == Instead::Before;
            let before = before.global.raw.as_ref().filter(|_| stays);
            match owner.key {
                _ if owner.host.is_some() => {}
                Some(RULES) => {
                    raw.modsecurity = before.map(|raw| raw.modsecurity.clone()).unwrap_or_default();
                    unguarded = before.is_none().then_some(&*fault.reason);
                }
                // How nginx is set up.
                Some(SETTINGS) => {
                    let before = before.map(|raw| raw.tuning.clone());
                    raw.tuning = before.unwrap_or_default();
                }
                Some(key) => {
                    *text(&mut raw, key) = before.and_then(|it| text(&mut it.clone(), key).take())
                }
                None => {}
            }
        }
        next.global = Arc::new(Global { raw: Some(raw), ..Global::clone(&next.global) });
    }
    for (name, server) in &configuration.servers {
        if Owner::of_host(server, HOST).is_some_and(|host| left_out.contains_key(&host)) {
            next.servers.remove(name);
        } else if let Some(server) = server_without(configuration, server, left_out, unguarded) {
            next.servers.insert(name.clone(), Arc::new(server));
        }
    }
    next
}

/// A server without what is left out; none if that is nothing. `unguarded`: why rules for all are missing. Whoever is
/// not exempt from them is closed.
fn server_without(
    configuration: &Configuration,
    server: &Server,
    left_out: &LeftOut,
    unguarded: Option<&str>,
) -> Option<Server> {
    let whole = whole_without(server, left_out);
    let lost = Owner::of_host(server, SERVER_SNIPPET).and_then(|owner| left_out.get(&owner));
    let raw = server.raw.as_deref();
    // What the host loses may have kept people out of all of it.
    let guards = raw.is_some_and(|raw| guard(SERVER_SNIPPET, &raw.text).is_some());
    // What it led away was out of reach in its own namespace. A mistake in it is its author's; a location that the
    // ConfigMap has now, too, is none.
    let leads = raw.filter(|raw| {
        lost.is_some()
            && guard_of_host(&raw.text).is_some()
            && has_location_of_all(configuration, server)
    });
    let namespace = leads.map(|raw| &raw.origin.namespace);
    let loses = |location: &Location| {
        let whose = location.origin.as_ref();
        guards
            || raw.is_some_and(|raw| whose == Some(&raw.origin))
            || whose.is_some_and(|whose| Some(&whose.namespace) == namespace)
    };
    let exempt = |location: &Location| {
        let raw = location.policy.raw.as_ref();
        raw.is_some_and(|raw| raw.modsecurity.enabled == Some(false))
    };
    let reason = |location: &Location| {
        let fault = location.origin.as_deref().and_then(|it| left_out.get(&Owner::from(it)));
        let own = fault.or(lost.filter(|_| loses(location))).map(|fault| fault.reason.as_str());
        own.or_else(|| unguarded.filter(|_| !exempt(location)))
    };
    let loses_canary = |location: &Location| {
        let canary = location.canary.as_ref();
        canary.is_some_and(|canary| left_out.contains_key(&Owner::from(&canary.origin)))
    };
    let is_touched = |location: &Location| reason(location).is_some() || loses_canary(location);
    if whole.is_none() && !server.locations.iter().any(|location| is_touched(location)) {
        return None;
    }
    let locations = server.locations.iter().map(|location| match reason(location) {
        None if loses_canary(location) => {
            Arc::new(Location { canary: None, ..Location::clone(location) })
        }
        None => location.clone(),
        Some(reason) => Arc::new(Location {
            backend: Backend::Denied(reason.to_owned()),
            canary: None,
            policy: Arc::new(Policy::default()),
            ..Location::clone(location)
        }),
    });
    let locations = locations.collect();
    Some(Server { locations, ..whole.unwrap_or_else(|| server.clone()) })
}

/// A server without what it has as a whole and is left out; none if that is nothing.
fn whole_without(server: &Server, left_out: &LeftOut) -> Option<Server> {
    let mut without = None;
    for key in [ALIASES, CLIENT_CERTIFICATE, CIPHERS, APP_ROOT, SERVER_SNIPPET] {
        let owner = Owner::of_host(server, key);
        let Some(fault) = owner.and_then(|owner| left_out.get(&owner)) else { continue };
        let server = without.get_or_insert_with(|| server.clone());
        match key {
            ALIASES => server.aliases.clear(),
            CIPHERS => server.ciphers = None,
            APP_ROOT => server.app_root = None,
            SERVER_SNIPPET => server.raw = None,
            // Nobody gets in whose certificate cannot be judged.
            _ => {
                let closed = ClientCertificate::Closed(fault.reason.clone());
                server.client_certificate = server.client_certificate.take().map(|_| closed);
            }
        }
    }
    without
}
