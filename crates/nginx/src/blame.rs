//! Leaving out what nginx does not take: the locations of an Ingress answer 503; of a key of the ConfigMap the text
//! before stays, or none; everything else goes on.

use crate::conf::Owner;
use model::policy::{ModSecurity, Policy, RawGlobal};
use model::{Backend, Configuration, Global, Kind, Location, Origin, Problem, Server, Severity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is left out, and why.
pub type LeftOut = BTreeMap<Owner, Fault>;

/// Why something is left out, and what is served in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What nginx said.
    pub reason: String,
    /// Whether what it said before stays; else nothing takes its place.
    pub keeps: bool,
}

/// The key of the ConfigMap that rules of ModSecurity are; its companions go and stay with it.
const RULES: &str = "modsecurity-snippet";
/// The keys of the ConfigMap that hold configuration; later ones, and Ingresses, may rely on earlier ones.
const KEYS: [&str; 6] = [
    "main-snippet",
    "http-snippet",
    RULES,
    "server-snippet",
    "location-snippet",
    "global-auth-snippet",
];

/// A Configuration in which nothing of what is left out gets into nginx.conf but that its locations answer 503, or that
/// its text is the one of `before`.
pub fn without(
    configuration: &Configuration,
    before: &Configuration,
    left_out: &LeftOut,
) -> Configuration {
    let mut next = configuration.clone();
    if left_out.is_empty() {
        return next;
    }
    let mut unguarded = None;
    if let Some(raw) = &configuration.global.raw {
        let mut raw = raw.clone();
        for (owner, fault) in left_out {
            let before = before.global.raw.as_ref().filter(|_| fault.keeps);
            match owner.key {
                Some(RULES) => {
                    raw.modsecurity = before.map(|raw| raw.modsecurity.clone()).unwrap_or_default();
                    unguarded = before.is_none().then_some(&*fault.reason);
                }
                Some(key) => {
                    *text(&mut raw, key) = before.and_then(|it| text(&mut it.clone(), key).take())
                }
                None => {}
            }
        }
        next.global = Arc::new(Global { raw: Some(raw), ..Global::clone(&configuration.global) });
    }
    for (name, server) in &configuration.servers {
        if let Some(server) = server_without(server, left_out, unguarded) {
            next.servers.insert(name.clone(), Arc::new(server));
        }
    }
    next
}

/// The text of a key.
fn text<'a>(raw: &'a mut RawGlobal, key: &str) -> &'a mut Option<String> {
    match key {
        "main-snippet" => &mut raw.main,
        "http-snippet" => &mut raw.http,
        "server-snippet" => &mut raw.server,
        "location-snippet" => &mut raw.location,
        _ => &mut raw.auth,
    }
}

/// Whether a key says anything.
fn says(raw: &RawGlobal, key: &str) -> bool {
    match key {
        RULES => raw.modsecurity != ModSecurity::default(),
        key => text(&mut raw.clone(), key).is_some(),
    }
}

/// A server without what is left out; none if that is nothing. `unguarded`: why rules for all are missing. Whoever is
/// not exempt from them is closed.
fn server_without(server: &Server, left_out: &LeftOut, unguarded: Option<&str>) -> Option<Server> {
    let own = |location: &Location| {
        let origin = location.origin.as_ref()?;
        left_out.get(&Owner::from(origin)).map(|fault| fault.reason.as_str())
    };
    let exempt = |location: &Location| {
        let raw = location.policy.raw.as_ref();
        raw.is_some_and(|raw| raw.modsecurity.enabled == Some(false))
    };
    let reason =
        |location: &Location| own(location).or_else(|| unguarded.filter(|_| !exempt(location)));
    if !server.locations.iter().any(|location| reason(location).is_some()) {
        return None;
    }
    let locations = server.locations.iter().map(|location| match reason(location) {
        None => location.clone(),
        Some(reason) => Arc::new(Location {
            backend: Backend::Denied(reason.to_owned()),
            canary: None,
            policy: Arc::new(Policy::default()),
            ..Location::clone(location)
        }),
    });
    let locations = locations.collect();
    if !server.locations.iter().any(|location| own(location).is_some()) {
        return Some(Server { locations, ..server.clone() });
    }
    // Nobody knows whose they are: what is beside the locations and guards nothing goes, too.
    Some(Server { locations, aliases: Vec::new(), app_root: None, ciphers: None, ..server.clone() })
}

/// The Ingresses that have locations.
pub fn ingresses(configuration: &Configuration) -> BTreeSet<Origin> {
    let locations = configuration.servers.values().flat_map(|server| server.locations.iter());
    let origins = locations.filter_map(|location| location.origin.clone());
    origins.filter(|origin| origin.kind == Kind::Ingress).collect()
}

/// The keys of the ConfigMap that say something.
pub fn keys(configuration: &Configuration) -> Vec<Owner> {
    let Some(raw) = configuration.global.raw.as_deref() else { return Vec::new() };
    let Some(origin) = &raw.origin else { return Vec::new() };
    let keys = KEYS.into_iter().filter(|key| says(raw, key));
    keys.map(|key| Owner { origin: origin.clone(), key: Some(key) }).collect()
}

/// Whether somebody can be to blame for what goes away with Ingresses. Rules for all can not: what conflicts with them
/// is the Ingress.
pub fn reaches_locations(owner: &Owner) -> bool {
    owner.key.is_some_and(|key| key != RULES)
}

/// Leaves something out; false if that was done before. A text of the ConfigMap makes room for the one of `before`
/// first, and if that does not help for none; whoever may rely on it gets another chance.
pub fn leave_out(
    left_out: &mut LeftOut,
    owner: Owner,
    reason: String,
    before: &Configuration,
) -> bool {
    let before = before.global.raw.as_deref().zip(owner.key);
    let has_before = before.is_some_and(|(raw, key)| says(raw, key));
    let keeps = match left_out.get(&owner) {
        None => has_before,
        Some(Fault { keeps: true, .. }) => false,
        Some(Fault { keeps: false, .. }) => return false,
    };
    let rank = |owner: &Owner| KEYS.iter().position(|key| owner.key == Some(key));
    if let Some(own) = rank(&owner) {
        left_out.retain(|other, _| rank(other).is_some_and(|other| other <= own));
    }
    left_out.insert(owner, Fault { reason, keeps });
    true
}

/// What the owners of what is left out are told.
pub fn problems(left_out: &LeftOut) -> Vec<Problem> {
    let told = left_out.iter().map(|(Owner { origin, key }, Fault { reason, keeps })| {
        let instead = match key {
            None => "its paths answer 503",
            Some(_) if *keeps => "the one before stays",
            Some(RULES) => "the paths that it would guard answer 503",
            Some(_) => "it is left out, and what it guards is open",
        };
        Problem {
            origin: origin.clone(),
            key: key.map(str::to_owned),
            severity: Severity::Error,
            message: format!(
                "nginx does not take what it asks for ({reason}): {instead} until it is changed"
            ),
        }
    });
    told.collect()
}
