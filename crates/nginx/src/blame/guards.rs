//! A text of the ConfigMap that may guard something: where it is missing, nobody is served, unless it is known that
//! none was there before.

use super::{Instead, KEYS, LeftOut, RULES, text};
use model::policy::{Policy, guard};
use model::{Backend, Configuration, Location, Server};
use std::sync::Arc;

/// Of what is left out of a Configuration such texts close everything. `knows`: whether those of `before` are all that
/// there were.
pub(crate) fn mark(
    next: &Configuration,
    before: &Configuration,
    knows: bool,
    left_out: &mut LeftOut,
) {
    for (owner, fault) in left_out {
        let key = owner.key.filter(|_| owner.host.is_none());
        let (true, Some(key)) = (fault.instead == Instead::Nothing, key) else { continue };
        // What is in force never goes while nginx runs without it.
        if may_guard(before, key) || !knows && may_guard(next, key) {
            fault.instead = Instead::Everything;
        }
    }
}

fn may_guard(configuration: &Configuration, key: &str) -> bool {
    // Rules have their own way to close what they guard.
    let raw = configuration.global.raw.as_deref().filter(|_| KEYS.contains(&key) && key != RULES);
    let text = raw.and_then(|raw| text(&mut raw.clone(), key).take());
    text.is_some_and(|text| guard(key, &text).is_some())
}

/// Whether such a text is missing.
pub(crate) fn is_everything_closed(left_out: &LeftOut) -> bool {
    left_out.values().any(|fault| fault.instead == Instead::Everything)
}

/// A Configuration in which nobody is served if such a text is missing.
pub(crate) fn closed(configuration: Configuration, left_out: &LeftOut) -> Configuration {
    let mut faults = left_out.values();
    let missing = faults.find(|fault| fault.instead == Instead::Everything);
    let Some(reason) = missing.map(|fault| &fault.reason) else { return configuration };
    let close = |location: &Arc<Location>| {
        Arc::new(Location {
            backend: Backend::Denied(reason.clone()),
            canary: None,
            policy: Arc::new(Policy::default()),
            ..Location::clone(location)
        })
    };
    let servers = configuration.servers.iter().map(|(name, server)| {
        let locations = server.locations.iter().map(close).collect();
        // Nor do locations of a snippet answer.
        (name.clone(), Arc::new(Server { locations, raw: None, ..Server::clone(server) }))
    });
    let servers = servers.collect();
    let mut closed = Configuration { servers, ..configuration };
    // Nor those of the text for all servers.
    if closed.global.raw.as_ref().is_some_and(|raw| raw.server.is_some()) {
        let global = Arc::make_mut(&mut closed.global);
        global.raw.iter_mut().for_each(|raw| raw.server = None);
    }
    closed
}
