//! Leaving out what nginx does not take: the locations of an Ingress answer 503, everything else goes on.

use model::policy::Policy;
use model::{Backend, Configuration, Kind, Location, Origin, Problem, Server, Severity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects that are left out, and what nginx said of each.
pub type LeftOut = BTreeMap<Origin, String>;

/// A Configuration in which nothing of some objects gets into nginx.conf but that they answer 503.
pub fn without(configuration: &Configuration, left_out: &LeftOut) -> Configuration {
    if left_out.is_empty() {
        return configuration.clone();
    }
    let mut next = configuration.clone();
    for (name, server) in &configuration.servers {
        if let Some(server) = server_without(server, left_out) {
            next.servers.insert(name.clone(), Arc::new(server));
        }
    }
    next
}

fn server_without(server: &Server, left_out: &LeftOut) -> Option<Server> {
    let reason = |location: &Location| left_out.get(location.origin.as_ref()?);
    if !server.locations.iter().any(|location| reason(location).is_some()) {
        return None;
    }
    let locations = server.locations.iter().map(|location| match reason(location) {
        None => location.clone(),
        Some(reason) => Arc::new(Location {
            backend: Backend::Denied(reason.clone()),
            canary: None,
            policy: Arc::new(Policy::default()),
            ..Location::clone(location)
        }),
    });
    let locations = locations.collect();
    // Nobody knows whose they are: what is beside the locations and guards nothing goes, too.
    Some(Server { locations, aliases: Vec::new(), app_root: None, ciphers: None, ..server.clone() })
}

/// The Ingresses that have locations.
pub fn ingresses(configuration: &Configuration) -> BTreeSet<Origin> {
    let locations = configuration.servers.values().flat_map(|server| server.locations.iter());
    let origins = locations.filter_map(|location| location.origin.clone());
    origins.filter(|origin| origin.kind == Kind::Ingress).collect()
}

/// What the owners of what is left out are told.
pub fn problems(left_out: &LeftOut) -> Vec<Problem> {
    let told = left_out.iter().map(|(origin, reason)| Problem {
        origin: origin.clone(),
        key: None,
        severity: Severity::Error,
        message: format!(
            "nginx does not take what it asks for ({reason}): its paths answer 503 until it is changed"
        ),
    });
    told.collect()
}
