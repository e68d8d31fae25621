//! What is in force at a location, in the words of those who write it, and who asks for each of it.

use crate::annotations::{self, lines, lines_of_canary};
use crate::config_map;
use crate::secret_files::SecretFiles;
use crate::settings::{Group, Line, Scope, Settings, Written};
use crate::{Options, gateway};
use imbl::OrdMap;
use model::policy::Policy;
use model::{Kind, Location, Origin, Server, hide_in_sentence, hide_in_url};
use objects::{Ingress, ObjectKey, Snapshot};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Ingresses of a host that are looked at for what one of them asks for all.
const NEIGHBOURS: usize = 100;

/// What stands for a text that is not shown.
const HIDDEN: &str = "…";

/// A setting that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What a user calls it: its annotation without prefix, its key, or its field of a route.
    pub name: String,
    /// The field of the policy, as `/configuration` names it.
    pub field: &'static str,
    /// Its value, as a user writes it. What opens a door is hidden.
    pub value: String,
    /// Who asks for it; nobody for a default.
    pub asked: Vec<Asked>,
}

/// Who asks for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The object.
    pub by: Origin,
    /// The annotation with its prefix, the key of the ConfigMap, or the field of the route.
    pub key: String,
    /// What is written there; none for fields. What opens a door is hidden.
    pub written: Option<String>,
}

/// The objects that ask.
#[derive(Clone, Copy, Debug)]
pub struct InForce<'a> {
    /// All of them.
    pub snapshot: &'a Snapshot,
    /// What the command line says.
    pub options: &'a Options,
    /// Ingresses that are served in an earlier version.
    pub kept: &'a OrdMap<ObjectKey, Arc<Ingress>>,
}

/// The annotation, without prefix, by which an Ingress redirects every request.
pub fn redirecting(ingress: &Ingress, prefix: &str) -> &'static str {
    let first = annotations::redirecting(Some("http://"));
    let key = format!("{prefix}/{first}");
    annotations::redirecting(ingress.meta.annotations.get(&key).map(|text| text.trim()))
}

/// An object with what it asks for.
struct Asker<'a> {
    settings: Settings<'a>,
    /// What it alone would have in force, by field.
    alone: BTreeMap<&'static str, String>,
}

impl InForce<'_> {
    /// The version of an Ingress that is served.
    pub fn ingress(&self, origin: &Origin) -> Option<&Arc<Ingress>> {
        if origin.kind != Kind::Ingress {
            return None;
        }
        let key = ObjectKey::new(Arc::clone(&origin.namespace), Arc::clone(&origin.name));
        self.kept.get(&key).or_else(|| self.snapshot.ingresses.get(&key))
    }

    /// The settings at a location that are not the defaults of what it belongs to, or are so because an annotation
    /// takes back what the ConfigMap says. A location of an Ingress has its host beside it.
    pub fn at(&self, location: &Location, server: Option<&Server>) -> Vec<Setting> {
        let Some(server) = server else { return of_route(location) };
        let files = SecretFiles::default();
        let scope = Scope::new(self.options, self.snapshot, &files);
        let permissions = config_map::permissions(&mut Settings::of_config_map(scope));
        let scope = permissions.within(scope);
        let own = self.asker(scope, location.origin.as_deref());
        let neighbours = LazyCell::new(|| self.neighbours(scope, server));
        let usual = by_field(lines(&Policy::default()));
        let mut all = Vec::new();
        for line in lines(&with_host(location, server)) {
            let mut asked = own.asks_for(&line);
            let is_own = own.alone.get(line.field).map_or(!line.of_host, |own| *own == line.value);
            if asked.is_empty() && line.of_host && !is_own {
                let mut others = neighbours.iter().map(|other| other.asks_for(&line));
                asked = others.find(|asked| !asked.is_empty()).unwrap_or_default();
            }
            let is_usual = usual.get(line.field) == Some(&line.value);
            // What nobody asks for and is so all the same is a default.
            let is_default = if asked.is_empty() { is_own || is_usual } else { is_usual };
            if !is_default || asked.iter().any(|one| one.instead) {
                all.push(setting(&line, asked));
            }
        }
        if let Some(canary) = &location.canary {
            let asker = self.asker(scope, Some(&canary.origin));
            let lines = lines_of_canary(canary);
            let told = lines.iter().map(|line| setting(line, asker.asks_for(line)));
            all.extend(told.filter(|one| !one.asked.is_empty()));
        }
        all
    }

    fn asker<'s>(&'s self, scope: Scope<'s>, origin: Option<&Origin>) -> Asker<'s> {
        let ingress = origin.and_then(|origin| Some((origin, self.ingress(origin)?)));
        let of = || match ingress {
            Some((origin, ingress)) => {
                Settings::of_ingress(scope, origin.clone(), &ingress.meta.annotations)
            }
            None => Settings::of_config_map(scope),
        };
        // What is wrong with it was told when it was translated.
        let alone = by_field(lines(&annotations::policy(&mut of())));
        Asker { settings: of(), alone }
    }

    fn neighbours<'s>(&'s self, scope: Scope<'s>, server: &Server) -> Vec<Asker<'s>> {
        let origins = server.locations.iter().filter_map(|location| location.origin.as_deref());
        let origins: BTreeSet<&Origin> = origins.collect();
        origins.into_iter().take(NEIGHBOURS).map(|one| self.asker(scope, Some(one))).collect()
    }
}

impl Asker<'_> {
    /// The keys that ask for a setting; none if what they make is another value.
    fn asks_for(&self, line: &Line) -> Vec<Written<'_>> {
        if self.alone.get(line.field).is_some_and(|alone| *alone != line.value) {
            return Vec::new();
        }
        let is_there = |group: &&Group| {
            let written = self.settings.written_at(group.needs);
            written.is_some_and(|written| (group.counts)(&written.text))
        };
        let group = line.groups.iter().find(is_there);
        let keys = group.into_iter().flat_map(|group| &group.keys);
        keys.filter_map(|key| self.settings.written_at(*key)).collect()
    }
}

/// The policy of a location with what counts for its whole host.
fn with_host(location: &Location, server: &Server) -> Policy {
    let policy = &*location.policy;
    let of_host = server.client_certificate.clone();
    Policy {
        ciphers: server.ciphers.clone(),
        client_certificate: of_host.or_else(|| policy.client_certificate.clone()),
        ..policy.clone()
    }
}

/// What a route of the Gateway API asks for.
fn of_route(location: &Location) -> Vec<Setting> {
    let usual = by_field(lines(&gateway::usual()));
    let differs = |line: &Line| usual.get(line.field) != Some(&line.value);
    let told = |line: Line| {
        let by = location.origin.as_deref().cloned().filter(|_| !line.of_route.is_empty());
        let asked = by.map(|by| Asked { by, key: line.of_route.to_owned(), written: None });
        let (name, asked) = (line.field.to_owned(), asked.into_iter().collect());
        Setting { name, field: line.field, value: line.value, asked }
    };
    lines(&location.policy).into_iter().filter(differs).map(told).collect()
}

fn by_field(lines: Vec<Line>) -> BTreeMap<&'static str, String> {
    lines.into_iter().map(|line| (line.field, line.value)).collect()
}

fn setting(line: &Line, asked: Vec<Written<'_>>) -> Setting {
    let bare = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let usual = || line.groups.first().map(|group| group.keys[0].about().name.to_owned());
    let name = asked.first().map(|one| bare(&one.key)).or_else(usual);
    let asked = asked.into_iter().map(|one| Asked {
        written: Some(if one.is_secret { HIDDEN.to_owned() } else { safe(&one.text) }),
        by: one.by,
        key: one.key,
    });
    Setting {
        name: name.unwrap_or_else(|| line.field.to_owned()),
        field: line.field,
        value: line.value.clone(),
        asked: asked.collect(),
    }
}

/// A text that may be a URL, or hold some.
fn safe(text: &str) -> String {
    hide_in_sentence(&hide_in_url(text))
}
