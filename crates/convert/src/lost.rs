//! What cannot be said in the Gateway API: which Ingress, which key, why, and what to do.

use crate::gateway::host_name;
use crate::keys::{self, Fate};
use model::policy::{Policy, Satisfy};
use model::{Backend, Configuration, Kind, Origin, Server, Severity};
use objects::{Ingress, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use translate::{Options, Problems};

/// Something that is not said, or not in the same way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// The Ingress; none if it is the ConfigMap's.
    pub ingress: Option<ObjectKey>,
    /// The annotation, key of the ConfigMap or field.
    pub key: String,
    /// Why it cannot be said.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
    /// How much is lost.
    pub weight: Weight,
    /// Host and path, with how many more there are; empty where that is not said (notes).
    pub place: String,
}

/// How much is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A guard: the paths are closed, so that nothing is opened that was not open.
    Closed,
    /// A feature.
    Lost,
    /// What holds over HTTPS alone.
    LostOverTls,
    /// It is said, but answers are plainly others in form.
    Otherwise,
    /// A corner of what holds over HTTPS alone: the Ingress asks for no TLS.
    NoteOverTls,
    /// It is said, but a corner of it is otherwise.
    Note,
}

impl Weight {
    /// The word in front of a comment.
    pub fn word(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Lost | Self::LostOverTls => "LOST",
            Self::Otherwise => "OTHERWISE",
            Self::NoteOverTls | Self::Note => "NOTE",
        }
    }
}

/// Where losses are written down.
pub(crate) struct Ledger<'a> {
    snapshot: &'a Snapshot,
    prefix: &'a str,
    /// What is lost, with the hosts and paths where it is.
    losses: BTreeMap<Loss, Vec<String>>,
    at: Option<String>,
}

impl<'a> Ledger<'a> {
    /// The annotation by which an Ingress redirects every request.
    pub(crate) fn redirecting(&self, of: &ObjectKey) -> &'static str {
        let ingress = self.snapshot.ingresses.get(of);
        ingress.map_or("permanent-redirect", |ingress| translate::redirecting(ingress, self.prefix))
    }

    pub(crate) fn new(snapshot: &'a Snapshot, options: &'a Options) -> Self {
        let mut ledger = Self {
            snapshot,
            prefix: &options.annotations_prefix,
            losses: BTreeMap::new(),
            at: None,
        };
        let map = options.config_map.as_ref().and_then(|key| snapshot.config_maps.get(key));
        for (key, value) in map.into_iter().flat_map(|map| &map.data) {
            if let Some((reason, remedy)) = keys::of_config_map(key, value) {
                ledger.add(None, key, Weight::Lost, reason, remedy);
            }
        }
        ledger
    }

    /// Notes what holds for every route.
    pub(crate) fn for_all(&mut self) {
        let notes = [
            (
                "ssl-redirect",
                "the address keeps a slash at its end, and has one where it has no path",
                keys::NO_ACTION,
            ),
            (
                "proxy-body-size",
                "bodies of routes have no bound; those of Ingresses have one of 1m",
                "bound them in the application",
            ),
            (
                "proxy-buffer-size",
                "heads of answers have the bound that holds for all",
                keys::NO_ACTION,
            ),
            (
                "proxy-next-upstream",
                "a request is sent once, and not to another endpoint after a failure",
                "add retry to the rules where the experimental channel is installed",
            ),
            (
                "proxy-redirect-from",
                "Location fields of answers, and X-Accel-Redirect, stay as backends write them",
                "have backends write addresses that clients know",
            ),
        ];
        for (key, reason, remedy) in notes {
            self.add(None, key, Weight::Note, reason, remedy);
        }
    }

    /// Whether an Ingress has anything in `spec.tls`.
    pub(crate) fn asks_for_tls(&self, key: &ObjectKey) -> bool {
        self.snapshot.ingresses.get(key).is_some_and(|ingress| !ingress.tls.is_empty())
    }

    /// From now on losses are of this host and path; none: of all that their Ingress has.
    pub(crate) fn stand_at(&mut self, place: Option<(&Server, &str)>) {
        self.at = place.map(|(server, path)| place_of(host_name(server.name.as_str()), path));
    }

    /// Notes something.
    pub(crate) fn add(
        &mut self,
        ingress: Option<&ObjectKey>,
        key: &str,
        weight: Weight,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let loss = Loss {
            ingress: ingress.cloned(),
            key: key.to_owned(),
            reason: reason.into(),
            remedy: remedy.into(),
            weight,
            place: String::new(),
        };
        let places = self.losses.entry(loss).or_default();
        places.extend(self.at.clone().filter(|at| places.last() != Some(at)));
    }

    /// What is wrong with Ingresses before anything is converted: what is refused has nothing to convert. A Service
    /// that cannot be found closes nothing: the rules lead to it, as soon as it is there.
    pub(crate) fn refused(&mut self, problems: &Problems, configuration: &Configuration) {
        let locations = configuration.servers.values().flat_map(|server| &server.locations);
        let leading = locations.filter(|it| matches!(it.backend, Backend::Upstream(_)));
        let leading: BTreeSet<&Origin> =
            leading.filter_map(|location| location.origin.as_deref()).collect();
        for problem in problems.iter() {
            if problem.origin.kind != Kind::Ingress || problem.severity != Severity::Error {
                continue;
            }
            let key = ObjectKey::new(problem.origin.namespace.clone(), problem.origin.name.clone());
            let name = problem.key.clone().unwrap_or_else(|| "Ingress".to_owned());
            let is_open = name == "spec" && leading.contains(&problem.origin);
            let weight = if is_open { Weight::Lost } else { Weight::Closed };
            let remedy = "mend the Ingress, and convert again";
            self.add(Some(&key), &name, weight, &*problem.message, remedy);
        }
    }

    /// Notes the annotations of an Ingress that have no counterpart; whether its paths must be closed.
    pub(crate) fn annotations(&mut self, key: &ObjectKey) {
        let Some(ingress) = self.snapshot.ingresses.get(key) else { return };
        // Of a canary only those count that say which requests it gets.
        let is_canary = own(ingress, self.prefix)
            .any(|(name, value)| name == "canary" && keys::counts(name, value));
        for (name, value) in own(ingress, self.prefix) {
            let (weight, reason, remedy) = match keys::fate(name) {
                Fate::Guard(reason, remedy) if !is_canary => (Weight::Closed, reason, remedy),
                Fate::Lost(reason, remedy) if !is_canary => (Weight::Lost, reason, remedy),
                _ => continue,
            };
            if keys::counts(name, value) {
                self.add(Some(key), name, weight, reason, remedy);
            }
        }
    }

    /// Whether something guards the paths of an Ingress that no route can say: an annotation of its own, or a policy,
    /// whose key in the ConfigMap is noted then.
    pub(crate) fn guard(&mut self, key: &ObjectKey, policy: &Policy) -> bool {
        let ingress = self.snapshot.ingresses.get(key).cloned();
        let prefix = self.prefix;
        let all = ingress.iter().flat_map(|ingress| own(ingress, prefix));
        let all: Vec<(&str, &str)> = all.collect();
        let has_own = all.iter().any(|(name, value)| {
            matches!(keys::fate(name), Fate::Guard(..)) && keys::counts(name, value)
        });
        let Some((names, global)) = guard(policy) else { return has_own };
        match names.iter().find(|name| all.iter().any(|(own, _)| own == *name)) {
            None => {
                let reason = format!(
                    "the ConfigMap's {global} guards the paths of every Ingress, and no route"
                );
                self.add(Some(key), global, Weight::Closed, reason, keys::GUARD_REMEDY);
            }
            // `satisfy` is no guard by itself, so that nothing has been said of it.
            Some(name) if !has_own => {
                let reason = "no filter knows other guards of which one would do";
                self.add(Some(key), name, Weight::Closed, reason, keys::GUARD_REMEDY);
            }
            Some(_) => {}
        }
        true
    }

    pub(crate) fn all(self) -> Vec<Loss> {
        let Self { snapshot, losses, .. } = self;
        let told = |(loss, places): (Loss, Vec<String>)| {
            if loss.weight >= Weight::Otherwise {
                return loss;
            }
            let ingress = loss.ingress.as_ref().and_then(|key| snapshot.ingresses.get(key));
            let places = match ingress {
                Some(ingress) if places.is_empty() => places_of(ingress),
                _ => places,
            };
            let place = match places.as_slice() {
                [] => String::new(),
                [one] => one.clone(),
                [first, more @ ..] => format!("{first}, and {} more", more.len()),
            };
            Loss { place, ..loss }
        };
        losses.into_iter().map(told).collect()
    }
}

fn place_of(host: Option<&str>, path: &str) -> String {
    format!("{}{path}", host.unwrap_or("any host"))
}

/// All hosts and paths of an Ingress.
fn places_of(ingress: &Ingress) -> Vec<String> {
    let of_rule = |rule: &objects::IngressRule| -> Vec<String> {
        let host = rule.host.as_deref().filter(|host| !host.is_empty());
        let paths = rule.paths.iter().flatten();
        paths.map(|path| place_of(host, &path.path)).collect()
    };
    let rest = ingress.default_backend.iter().map(|_| place_of(None, ""));
    ingress.rules.iter().flat_map(of_rule).chain(rest).collect()
}

/// Annotations of ours, without prefix.
fn own<'i>(ingress: &'i Ingress, prefix: &'i str) -> impl Iterator<Item = (&'i str, &'i str)> {
    let named = move |(key, value): (&'i String, &'i String)| {
        let name = key.strip_prefix(prefix)?.strip_prefix('/')?;
        Some((name, value.as_str()))
    };
    ingress.meta.annotations.iter().filter_map(named)
}

/// The guards of a policy: annotations that set them, and the key of the ConfigMap that does.
pub(crate) fn guard(policy: &Policy) -> Option<(&'static [&'static str], &'static str)> {
    let access = &policy.access;
    Some(match () {
        () if policy.auth_external.is_some() => (&["auth-url"], "global-auth-url"),
        () if policy.auth_basic.is_some() => (&["auth-type", "auth-secret"], "auth-type"),
        // As cert-manager writes it into the Ingresses of its challenges.
        () if access.allow.as_ref().is_some_and(|allow| !allow.have_all()) => {
            (&["allowlist-source-range", "whitelist-source-range"], "whitelist-source-range")
        }
        () if access.satisfy == Some(Satisfy::Any) || access.deny != Default::default() => {
            (&["denylist-source-range", "satisfy"], "denylist-source-range")
        }
        () if policy.client_certificate.is_some() => (&["auth-tls-secret"], "auth-tls-secret"),
        () if policy.snippet.is_some() => (&["configuration-snippet"], "location-snippet"),
        () if policy.raw.is_some() => {
            (&["enable-modsecurity", "modsecurity-snippet"], "enable-modsecurity")
        }
        () => return None,
    })
}
