//! The snippets of the ConfigMap, which are for everybody: a text that cannot be understood leaves the last good one
//! in force.

use super::databases::without_databases;
use super::names::{KEYS, context};
use super::targets::{self, Whose};
use super::{meaning, parse, said, vain};
use crate::ingress::Target;
use crate::problems::ALL_CLOSED;
use crate::settings::Settings;
use model::policy::guard;
use model::snippet::{GlobalScope, OwnServer, Scope};
use model::{Message, Origin, Severity, Why};
use snippet::{Meaning, Mistake, Names, Need, Needed, Note, Snippet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The ports that servers of the text meet.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// Those that none may have.
    pub(crate) closed: BTreeSet<u16>,
    /// Those of the hosts of Ingresses.
    pub(crate) of_hosts: [u16; 2],
}

type Texts = BTreeMap<&'static str, String>;

/// What the snippets of the ConfigMap mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ForAll {
    /// As the ConfigMap has them.
    written: Texts,
    /// Those that are in force.
    texts: Texts,
    /// The variables that they declare.
    pub(super) names: Names,
    /// `http-snippet`
    pub(crate) http: Option<Arc<GlobalScope>>,
    /// `server-snippet`
    pub(crate) server: Option<Arc<Scope>>,
    /// `location-snippet`
    pub(crate) location: Option<Arc<Scope>>,
    /// `global-auth-snippet`
    pub(crate) auth: Option<Arc<Scope>>,
    /// Why every location is closed: what a text guards is not known, and there is none from before.
    pub(crate) denied: Option<String>,
    targets: BTreeSet<Target>,
    problems: Vec<(&'static str, Severity, Message)>,
}

/// Whether a key of the ConfigMap is one of these.
pub(crate) fn is_key(name: &str) -> bool {
    KEYS.iter().any(|(known, _)| *known == name)
}

impl ForAll {
    /// Reads the ConfigMap; what was good before in the same object counts where it is good no more.
    pub(crate) fn read(settings: &mut Settings<'_>, ports: &Ports, before: Option<&Self>) -> Self {
        let data = settings.scope().config_map.filter(|_| !settings.scope().raw);
        let text =
            |name: &str| Some(data?.1.get(name)?.clone()).filter(|text| !text.trim().is_empty());
        let written: Texts =
            KEYS.iter().filter_map(|(name, _)| Some((*name, text(name)?))).collect();
        let now = match before {
            Some(before) if before.written == written => before.clone(),
            before => Self::of(written, ports, before),
        };
        let now = now.said_by(settings.own_origin());
        for (name, severity, message) in &now.problems {
            settings.note(name, *severity, message.clone());
        }
        for target in &now.targets {
            settings.lead_to(Some(target.clone()));
        }
        now
    }

    /// Notes what of it hangs on databases, where nobody has switched those on.
    pub(crate) fn lacks_databases(&self, settings: &mut Settings<'_>) {
        for (name, text) in &self.texts {
            let snippet = context(name).and_then(|context| parse(context, text).ok());
            if let Some(message) = snippet.as_ref().and_then(without_databases) {
                settings.note(name, Severity::Warning, message);
            }
        }
    }

    /// The same, known to be of an object.
    fn said_by(mut self, origin: &Origin) -> Self {
        if let Some(http) = &mut self.http
            && http.origin.as_ref() != Some(origin)
        {
            Arc::make_mut(http).origin = Some(origin.clone());
        }
        self
    }

    /// Whether a text of it is not understood.
    pub(crate) fn is_wrong(&self) -> bool {
        self.texts != self.written
    }

    /// Understands texts, each with what all of them declare; one that is wrong is replaced by the one before. Where
    /// there was none there is none, as in ingress-nginx, which takes no such change; where nothing is known from
    /// before, at a start, one that may guard something closes everything.
    fn of(written: Texts, ports: &Ports, before: Option<&Self>) -> Self {
        let mut problems = Vec::new();
        let mut denied = None;
        let mut texts = written.clone();
        loop {
            let (name, mistakes) = match Self::understood(&texts, ports) {
                Ok(mut all) => {
                    problems.append(&mut all.problems);
                    return Self { written, texts, denied, problems, ..all };
                }
                Err(wrong) => wrong,
            };
            let wrong = texts.remove(name).unwrap_or_default();
            let good = before.and_then(|before| before.texts.get(name));
            let was_none = good.is_none() && before.is_some_and(|before| before.denied.is_none());
            // The one before may need what others had before: then there is none.
            let good = good.filter(|good| **good != wrong && written.get(name) == Some(&wrong));
            let guard = guard(name, &wrong).filter(|_| good.is_none());
            let then = match (good, guard) {
                (Some(_), _) => "the text before stays in force until it is mended".to_owned(),
                (None, Some(_)) if was_none => {
                    "there was none before, so it has no effect until it is mended; a Pod that starts meanwhile does not \
                     know that, and answers 503"
                        .to_owned()
                }
                (None, Some(_)) => {
                    format!("it may guard something, so {ALL_CLOSED} until it is mended")
                }
                (None, None) => "it has no effect until it is mended".to_owned(),
            };
            let guard = guard.filter(|_| !was_none);
            if let Some(guard) = guard {
                let first = mistakes.first().map(|first| format!(": {}", &*said(first)));
                denied.get_or_insert(format!(
                    "{name} of the ConfigMap has {guard} and is not understood{}",
                    first.unwrap_or_default()
                ));
            }
            let closes = guard.map(|_| Why::AllClosed);
            let said = |mistake| {
                let said = said(mistake);
                let message = Message::from(format!("{said}; {then}"));
                (name, Severity::Error, message.because(said.why().or(closes)))
            };
            problems.extend(mistakes.iter().map(said));
            texts.extend(good.map(|good| (name, good.clone())));
        }
    }

    /// What texts mean, or the first that is wrong.
    fn understood(texts: &Texts, ports: &Ports) -> Result<Self, (&'static str, Vec<Mistake>)> {
        let mut all = Self::default();
        let mut snippets: Vec<(&'static str, Snippet)> = Vec::new();
        for (name, place) in KEYS {
            let Some(text) = texts.get(name) else { continue };
            let snippet = parse(place, text).map_err(|mistakes| (name, mistakes))?;
            snippet.declare(&mut all.names);
            snippets.push((name, snippet));
        }
        for (name, snippet) in snippets {
            let mut wanted = BTreeSet::new();
            let found =
                meaning(&snippet, &all.names, |need| all.met(need, name, ports, &mut wanted));
            let Meaning { scope, http, notes, needs, .. } =
                found.map_err(|mistakes| (name, mistakes))?;
            all.targets.append(&mut wanted);
            let ports = needs.iter().filter(|need| matches!(need.what, Needed::Port(_)));
            too_many_ports(ports).map_err(|mistake| (name, vec![mistake]))?;
            match name {
                "http-snippet" => all.http = Some(Arc::new(http)),
                "server-snippet" => all.server = Some(Arc::new(scope)),
                "location-snippet" => all.location = Some(Arc::new(scope)),
                "global-auth-snippet" => all.auth = Some(Arc::new(scope)),
                _ => {}
            }
            let said = |note: Note| (name, Severity::Notice, vain(&note, note.at));
            all.problems.extend(notes.into_iter().map(said));
        }
        Ok(all)
    }

    fn met(
        &self,
        need: &Need,
        name: &str,
        ports: &Ports,
        wanted: &mut BTreeSet<Target>,
    ) -> Result<(), String> {
        match &need.what {
            // A zone may be declared further down in the same text.
            Needed::RequestZone(_) | Needed::ConnectionZone(_) if name == "http-snippet" => Ok(()),
            Needed::RequestZone(_) | Needed::ConnectionZone(_) => self.has_zone(&need.what),
            Needed::Service(target) => {
                wanted.extend(targets::service(target, Whose::Everybody)?);
                Ok(())
            }
            Needed::Upstream(id) => targets::upstream(id, Whose::Everybody).map(drop),
            Needed::Passwords => Err("auth_basic without passwords: name a Secret with the \
                                      annotation auth-secret of each Ingress"
                .to_owned()),
            Needed::Port(port) if ports.closed.contains(port) => {
                Err(format!("port {port} is one of Fairway's own: choose another one"))
            }
            Needed::DefaultOf(port) if ports.of_hosts.contains(port) => Err(format!(
                "what no host has on port {port} is for Fairway's default backend: leave \
                 default_server out"
            )),
            Needed::Port(_) | Needed::DefaultOf(_) => Ok(()),
            // nginx takes it only where every location has room for it; here it is in each of them, exact ones too, so
            // that what it guards is guarded whatever paths there are.
            Needed::Around(_) => Ok(()),
        }
    }

    /// Makes sure that a zone is declared.
    pub(super) fn has_zone(&self, zone: &Needed) -> Result<(), String> {
        let (mut requests, mut connections) = (false, false);
        let (name, directive) = match zone {
            Needed::RequestZone(name) => (name, "limit_req_zone"),
            Needed::ConnectionZone(name) => (name, "limit_conn_zone"),
            _ => return Ok(()),
        };
        if let Some(http) = self.http.as_deref() {
            requests = http.request_zones.iter().any(|zone| zone.name == *name);
            connections = http.connection_zones.iter().any(|zone| zone.name == *name);
        }
        let is_there = if directive == "limit_req_zone" { requests } else { connections };
        is_there.then_some(()).ok_or_else(|| {
            format!(
                "zone \"{name}\" is unknown: declare it by {directive} in http-snippet of the ConfigMap"
            )
        })
    }
}

/// Refuses more ports than snippets may open.
fn too_many_ports<'n>(needs: impl Iterator<Item = &'n Need>) -> Result<(), Mistake> {
    let mut ports = BTreeSet::new();
    for need in needs {
        let Needed::Port(port) = need.what else { continue };
        ports.insert(port);
        if ports.len() > OwnServer::MOST_PORTS {
            return Err(need.unmet(format!(
                "snippets open {} ports at most: give servers names in place of ports",
                OwnServer::MOST_PORTS
            )));
        }
    }
    Ok(())
}
