//! Leaving out what nginx does not take: the locations of an Ingress answer 503; of a key of the ConfigMap the text
//! before stays, or none; a host is closed or loses a setting; everything else goes on.

mod crowd;
mod fresh;
mod guards;
mod room;
mod verdicts;
mod without;

pub(crate) use crowd::crowded;
pub(crate) use fresh::{alone, fresh, other_texts};
pub(crate) use guards::{closed, is_everything_closed, mark};
pub(crate) use room::without_room;
pub(crate) use verdicts::Verdicts;
pub(crate) use without::without;

use crate::conf::{
    self, ALIASES, APP_ROOT, CIPHERS, CLIENT_CERTIFICATE, HOST, Had, Owner, SERVER_SNIPPET,
};
use model::policy::{ModSecurity, RawGlobal};
use model::{Configuration, Kind, Origin, Problem, Secret, Server, Severity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is left out, and why.
pub(crate) type LeftOut = BTreeMap<Owner, Fault>;

/// Why something is left out, and what is served in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What nginx said.
    pub reason: String,
    /// What takes its place.
    pub instead: Instead,
    /// Whether it was found to be wrong; else there was no time to find out.
    pub decided: bool,
}

/// What is served in place of what is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instead {
    /// What the ConfigMap said before.
    Before,
    /// The paths of an Ingress, closed.
    Closed,
    /// Whatever its paths could mean, closed: nginx does not take them as they are.
    Covered,
    /// Nothing.
    Nothing,
    /// Everything, closed: it may be what guards it.
    Everything,
}

/// The key of the ConfigMap that rules of ModSecurity are; its companions go and stay with it.
const RULES: &str = "modsecurity-snippet";
/// Everything of the ConfigMap that is no raw configuration; it goes as a whole, and last.
const SETTINGS: &str = "settings";
/// The keys of the ConfigMap that hold configuration; later ones, and Ingresses, may rely on earlier ones.
const KEYS: [&str; 6] = [
    "main-snippet",
    "http-snippet",
    RULES,
    "server-snippet",
    "location-snippet",
    "global-auth-snippet",
];

/// The text of a key.
fn text<'a>(raw: &'a mut RawGlobal, key: &str) -> &'a mut Option<Secret<String>> {
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
        // There were some, if only the usual ones.
        SETTINGS => true,
        key => text(&mut raw.clone(), key).is_some(),
    }
}

/// The Ingresses that have locations.
pub(crate) fn ingresses(configuration: &Configuration) -> BTreeSet<Origin> {
    let locations = configuration.servers.values().flat_map(|server| server.locations.iter());
    let origins = locations.filter_map(|location| location.origin.as_deref());
    origins.filter(|origin| origin.kind == Kind::Ingress).cloned().collect()
}

/// The keys of the ConfigMap that say something.
pub(crate) fn keys(configuration: &Configuration) -> Vec<Owner> {
    let Some(raw) = configuration.global.raw.as_deref() else { return Vec::new() };
    let Some(origin) = &raw.origin else { return Vec::new() };
    let keys = KEYS.into_iter().filter(|key| says(raw, key));
    keys.map(|key| Owner::of_key(origin, key)).collect()
}

/// What hosts have as a whole.
pub(crate) fn hosts(configuration: &Configuration) -> Vec<Owner> {
    configuration.servers.values().flat_map(|server| parts(server)).collect()
}

/// What a host has as a whole.
pub(crate) fn parts(server: &Server) -> Vec<Owner> {
    let there = [
        (ALIASES, !server.aliases.is_empty()),
        (CLIENT_CERTIFICATE, server.client_certificate.is_some()),
        (CIPHERS, server.ciphers.is_some()),
        (APP_ROOT, server.app_root.is_some()),
        (SERVER_SNIPPET, server.raw.is_some()),
    ];
    let there = there.into_iter().filter(|(_, is_there)| *is_there);
    there.filter_map(|(key, _)| Owner::of_host(server, key)).collect()
}

/// The settings of the ConfigMap.
pub(crate) fn settings(configuration: &Configuration) -> Owner {
    let raw = configuration.global.raw.as_deref();
    let origin = raw.and_then(|raw| raw.origin.clone());
    let somewhere = || Origin::new(Kind::ConfigMap, "", "of the controller");
    Owner::of_key(&origin.unwrap_or_else(somewhere), SETTINGS)
}

/// Whether that is who they are.
pub(crate) fn is_settings(owner: &Owner) -> bool {
    owner.host.is_none() && owner.key == Some(SETTINGS)
}

/// Whether somebody can be to blame for what goes away with Ingresses. Rules for all can not: what conflicts with them
/// is the Ingress.
pub(crate) fn reaches_locations(owner: &Owner) -> bool {
    owner.key.is_some_and(|key| key != RULES)
}

/// Leaves something out; false if that was done before, and no more of it can be. A text of the ConfigMap makes room
/// for the one of `before` first, and if that does not help for none; whoever may rely on it gets another chance. The
/// paths of an Ingress stay, unless they are what nginx does not take.
pub(crate) fn leave_out(
    left_out: &mut LeftOut,
    owner: Owner,
    reason: String,
    before: &Configuration,
    is_path: bool,
) -> bool {
    let of_config_map = |key| before.global.raw.as_deref().is_some_and(|raw| says(raw, key));
    let had = left_out.get(&owner).map(|fault| fault.instead);
    let instead = match (&owner, had) {
        (_, Some(Instead::Covered | Instead::Nothing | Instead::Everything)) => return false,
        (Owner { host: Some(_), .. }, _) => Instead::Nothing,
        (Owner { key: Some(key), .. }, None) if of_config_map(key) => Instead::Before,
        (Owner { key: Some(_), .. }, _) => Instead::Nothing,
        (Owner { key: None, .. }, None) if !is_path => Instead::Closed,
        (Owner { key: None, .. }, _) => Instead::Covered,
    };
    let rank = |owner: &Owner| KEYS.iter().position(|key| owner.key == Some(key));
    if let Some(own) = rank(&owner) {
        left_out.retain(|other, _| rank(other).is_some_and(|other| other <= own));
    }
    left_out.insert(owner, Fault { reason, instead, decided: true });
    true
}

/// Whether there was no time for somebody of whose namespace nobody was found to be wrong: he waits for others.
pub(crate) fn is_unfinished(left_out: &LeftOut) -> bool {
    let found = namespaces_found(left_out);
    let mut undecided = left_out.iter().filter(|(_, fault)| !fault.decided);
    undecided.any(|(owner, _)| !found.contains(&owner.origin.namespace))
}

/// The namespaces of which somebody was found to be wrong.
fn namespaces_found(left_out: &LeftOut) -> BTreeSet<Arc<str>> {
    let found = left_out.iter().filter(|(_, fault)| fault.decided);
    found.map(|(owner, _)| owner.origin.namespace.clone()).collect()
}

/// The Ingresses whose paths nginx does not take as they are.
pub(crate) fn covered(left_out: &LeftOut) -> BTreeSet<Origin> {
    let covered = left_out.iter().filter(|(_, fault)| fault.instead == Instead::Covered);
    covered.map(|(owner, _)| owner.origin.clone()).collect()
}

/// What the Ingresses are told whose paths a `server-snippet` has.
pub(crate) fn had_by_texts(configuration: &Configuration) -> Vec<Problem> {
    let had = conf::had_by_texts(configuration).into_iter();
    let told = had.map(|(origin, Had { path, host, by, more })| {
        let more = if more > 0 { format!(", and {more} more of its paths,") } else { String::new() };
        let message = format!(
            "path {path:?} of host {host}{more} is a location of the {SERVER_SNIPPET} of {by}, too, which answers; \
             ask for another path, or have that location removed"
        );
        Problem { origin, key: None, severity: Severity::Error, message: message.into() }
    });
    told.collect()
}

/// What the owners of what is left out are told.
pub(crate) fn problems(left_out: &LeftOut) -> Vec<Problem> {
    let found = namespaces_found(left_out);
    let told = left_out.iter().map(|(Owner { origin, key, host }, fault)| {
        let Fault { reason, instead, decided } = fault;
        let environment = host.as_ref().map(|host| format!(" for host {host}")).unwrap_or_default();
        let instead = match (*key, instead) {
            (_, Instead::Before) => "the one before stays",
            // A canary has no paths of its own.
            (None, Instead::Nothing) => "it is left out",
            (None, _) => "its paths answer 503",
            (Some(RULES), _) => "the paths that it would guard answer 503",
            (Some(CLIENT_CERTIFICATE), _) => "every path of the host answers 403",
            (Some(SERVER_SNIPPET), _) if host.is_some() => {
                "the paths of its Ingress there answer 503, and where it may guard the host, all of them do"
            }
            (Some(_), _) if host.is_some() => "it is left out",
            (Some(SETTINGS), _) => "those before stay, at a start those of nobody",
            (Some(_), Instead::Everything) => "it may guard something, so every path answers 503",
            (Some(_), _) => "it is left out",
        };
        let until = match (decided, found.contains(&origin.namespace)) {
            (true, _) => "it is changed",
            (false, true) => "the next change",
            (false, false) => "the next try, within a minute",
        };
        Problem {
            origin: origin.clone(),
            key: key.filter(|key| *key != HOST).map(str::to_owned),
            severity: Severity::Error,
            message: format!(
                "nginx does not take what it asks for{environment} ({reason}): {instead} until {until}"
            )
            .into(),
        }
    });
    told.collect()
}
