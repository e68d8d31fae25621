//! The snippets of one Ingress.

use super::databases::without_databases;
use super::early;
use super::for_all::ForAll;
use super::names::{ANNOTATIONS, place};
use super::position::Lines;
use super::renamed::{Renamed, rename};
use super::targets::{self, Named, Whose};
use super::{meaning, parse, said, vain};
use crate::Options;
use crate::ingress::annotation_of;
use crate::pattern_budget::{PatternBudget, Refused};
use crate::settings::Settings;
use crate::tenancy::Item;
use model::policy::{Policy, guard_of_host};
use model::snippet::{LocationKind, Position, Scope};
use model::{Message, Pattern, Severity, UpstreamId, Why};
use objects::Ingress;
use snippet::{Meaning, Mistake, Names, Need, Needed, Note, Snippet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the snippets of an Ingress mean beyond its own policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfIngress {
    /// Whether it says something for its hosts, right or wrong.
    pub(crate) has_server: bool,
    /// What it says for its hosts.
    pub(crate) server: Option<Arc<Scope>>,
    /// Why nobody knows what it says for its hosts, where that may be a guard.
    pub(crate) unguarded: Option<Message>,
    /// The locations that each of its paths has within, and where they are written.
    pub(crate) within: Box<[Need]>,
}

/// Reads the snippets that count, into the policy where they are about paths.
pub(crate) fn read(
    settings: &mut Settings<'_>,
    counts: impl Fn(&Settings<'_>, &str) -> bool,
    policy: &mut Policy,
) -> OfIngress {
    let Some(for_all) = settings.scope().snippets else { return OfIngress::default() };
    policy.snippet.clone_from(&for_all.location);
    let names = for_all.names.of_tenant(settings.namespace());
    let has_passwords = policy.auth_basic.is_some();
    let budget = PatternBudget::of_ingress();
    let mut reader = Reader {
        settings,
        for_all,
        has_passwords,
        names,
        budget,
        has_server: false,
        within: Vec::new(),
    };
    let mut parsed = BTreeMap::new();
    for name in ANNOTATIONS {
        let text = reader.settings.raw(name).filter(|_| counts(reader.settings, name));
        reader.has_server |= name == "server-snippet" && text.is_some();
        if let Some(snippet) = text.and_then(|text| reader.parse(name, &text)) {
            let lacks = !reader.settings.scope().has_databases;
            if let Some(message) = without_databases(&snippet).filter(|_| lacks) {
                reader.settings.note(name, Severity::Warning, message);
            }
            snippet.declare(&mut reader.names);
            parsed.insert(name, snippet);
        }
    }
    let mut understood = |name| reader.understood(name, parsed.get(name)?);
    let mut own = understood("configuration-snippet");
    let mut server = understood("server-snippet");
    let auth = understood("auth-snippet");
    // Where namespaces trust each other, all of it is everybody's, as in nginx.
    let owner = Arc::clone(reader.settings.namespace());
    if !reader.settings.scope().cross_namespace.allows(Item::ServerSnippet) {
        own.iter_mut().chain(&mut server).for_each(|scope| scope.belong_to(&owner));
    }
    if let (Some(first), Some(own)) = (&for_all.location, &own) {
        for message in early::asked(&first.program, &own.program) {
            reader.settings.note("configuration-snippet", Severity::Warning, message);
        }
    }
    if let Some(own) = own {
        policy.snippet = Some(joined(policy.snippet.as_ref(), own));
    }
    if let (Some(asked), Some(auth)) = (&mut policy.auth_external, auth) {
        Arc::make_mut(asked).snippet = Some(Arc::new(auth));
    }
    let unguarded = if server.is_none() { reader.unguarded() } else { None };
    let Reader { has_server, within, .. } = reader;
    OfIngress { has_server, server: server.map(Arc::new), unguarded, within: within.into() }
}

/// An upstream that a snippet sets and that is none of its namespace's.
struct Stranger {
    at: Position,
    /// What it is called, and what nobody is.
    pair: (UpstreamId, UpstreamId),
    /// What is wrong, and how to mend it.
    why: String,
}

/// A scope behind that of everybody.
fn joined(first: Option<&Arc<Scope>>, mut own: Scope) -> Arc<Scope> {
    let Some(first) = first else { return Arc::new(own) };
    own.has_locations_behind(first);
    let mut all = Scope::clone(first);
    all.join(&own);
    // Of header sections the operator has the last word, as in nginx, where its text stands behind the other one.
    let (headers, of_all) = (&mut all.settings.headers, &first.settings.headers);
    headers.more.0.rotate_left(of_all.more.0.len());
    headers.input.0.rotate_left(of_all.input.0.len());
    Arc::new(all)
}

/// What the snippets of an Ingress take.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    /// The lengths of their regular expressions.
    pub(crate) expressions: Vec<usize>,
    /// The bytes of their texts.
    pub(crate) bytes: usize,
    /// What they say, at each place where they do, in words.
    pub(crate) settings: u64,
}

/// What the snippets of an Ingress with so many hosts and paths take.
pub(crate) fn weight(ingress: &Ingress, options: &Options, hosts: u64, paths: u64) -> Weight {
    let texts = ANNOTATIONS.map(|name| Some((name, annotation_of(ingress, name, options)?)));
    let Weight { mut expressions, mut bytes, mut settings } = Weight::default();
    for (name, text) in texts.into_iter().flatten() {
        bytes += text.len();
        // Who is refused for it takes nothing more.
        if let Ok(snippet) = parse(place(name), &text) {
            expressions.extend(snippet.expressions().map(str::len));
            let places = if name == "server-snippet" { hosts } else { paths };
            settings = settings.saturating_add(snippet.said(places.max(1)));
        }
    }
    Weight { expressions, bytes, settings }
}

struct Reader<'s, 'a> {
    settings: &'s mut Settings<'a>,
    for_all: &'a ForAll,
    has_passwords: bool,
    names: Names,
    budget: PatternBudget,
    has_server: bool,
    within: Vec<Need>,
}

impl Reader<'_, '_> {
    fn parse(&mut self, name: &'static str, text: &str) -> Option<Snippet> {
        parse(place(name), text).map_err(|mistakes| self.wrong(name, mistakes)).ok()
    }

    fn understood(&mut self, name: &'static str, snippet: &Snippet) -> Option<Scope> {
        let Self { settings, for_all, has_passwords, names, within, .. } = self;
        let has_passwords = *has_passwords && name == "configuration-snippet";
        let first = within.len();
        let mut strangers = Vec::new();
        let met = |need: &Need| {
            if let Needed::Upstream(id) = &need.what {
                return lead_to(id, need.at, settings, &mut strangers);
            }
            met(need, settings, for_all, has_passwords, name, within)
        };
        let meant = meaning(snippet, names, met);
        let lines = Lines::of(settings.written(name).unwrap_or_default());
        within[first..].iter_mut().for_each(|need| need.at = lines.as_written(need.at));
        match meant {
            Ok(Meaning { mut scope, notes, patterns, .. }) => {
                self.strangers(name, strangers, &mut scope)?;
                self.note(name, &notes);
                self.patterns(name, &patterns);
                Some(scope)
            }
            Err(mistakes) => {
                self.wrong(name, mistakes);
                None
            }
        }
    }

    /// The paths answer 503, with every mistake where its author sees it.
    fn wrong(&mut self, name: &str, mistakes: Vec<Mistake>) {
        let lines = Lines::of(self.settings.written(name).unwrap_or_default());
        for mut mistake in mistakes {
            mistake.at = lines.as_written(mistake.at);
            self.settings.deny_by_snippet(name, said(&mistake));
        }
    }

    /// Why a text for hosts that may guard them is not understood.
    fn unguarded(&self) -> Option<Message> {
        let name = "server-snippet";
        let text = self.settings.raw(name).filter(|_| self.has_server)?;
        guard_of_host(&text)?;
        let wrong = &self.settings.verdict.snippets;
        let (_, reason) = wrong.iter().find(|(of, _)| of == name)?;
        Some(reason.clone())
    }

    fn note(&mut self, name: &str, notes: &[Note]) {
        let lines = Lines::of(self.settings.written(name).unwrap_or_default());
        for note in notes {
            let message = vain(note, lines.as_written(note.at));
            self.settings.note(name, Severity::Notice, message);
        }
    }

    /// Upstreams that are none of the namespace's lead nowhere: whoever comes to such a `set` is answered with 503, as
    /// where ingress-nginx has none of that name, and nobody else. One that everybody comes to is a mistake.
    fn strangers(&mut self, name: &str, strangers: Vec<Stranger>, scope: &mut Scope) -> Option<()> {
        let (all, some): (Vec<_>, Vec<_>) = strangers
            .into_iter()
            .partition(|it| scope.program.steps.iter().any(|step| step.at == it.at));
        let lines = Lines::of(self.settings.written(name).unwrap_or_default());
        for Stranger { at, why, .. } in &some {
            let at = lines.as_written(*at);
            let message =
                format!("{at}: {why}; until then requests fail that are passed on from here");
            self.settings.note(name, Severity::Warning, Why::TookIt.says(message));
        }
        for Stranger { at, why, .. } in &all {
            self.settings.deny_by_snippet(name, format!("{}: {why}", lines.as_written(*at)));
        }
        let nobody: Renamed = some.into_iter().map(|it| it.pair).collect();
        rename(scope, &nobody);
        all.is_empty().then_some(())
    }

    /// Compiled expressions count with those of the paths.
    fn patterns(&mut self, name: &str, patterns: &[Pattern]) {
        let refused = patterns.iter().find_map(|pattern| self.budget.take(pattern).err());
        match refused {
            Some(Refused::TooLarge(why)) => self.settings.deny_by_snippet(name, &why),
            Some(Refused::Invalid(why)) => self.settings.deny_by_snippet(name, &why.reason),
            None => {}
        }
    }
}

/// Makes sure of an upstream that a snippet sets.
fn lead_to(
    id: &str,
    at: Position,
    settings: &mut Settings<'_>,
    strangers: &mut Vec<Stranger>,
) -> Result<(), String> {
    let namespace = Arc::clone(settings.namespace());
    let whose = Whose::Namespace(&namespace, settings.scope().cross_namespace);
    match targets::upstream(id, whose)? {
        Named::Nobody => {}
        Named::Backend(target) => settings.lead_to(Some(target)),
        Named::Stranger(nobody, why) => {
            strangers.push(Stranger { at, pair: (UpstreamId::new(id), nobody), why });
        }
    }
    Ok(())
}

/// Makes sure of what else a snippet of an Ingress needs; the error says what to do.
fn met(
    need: &Need,
    settings: &mut Settings<'_>,
    for_all: &ForAll,
    has_passwords: bool,
    name: &str,
    within: &mut Vec<Need>,
) -> Result<(), String> {
    let allowed = settings.scope().cross_namespace;
    let namespace = Arc::clone(settings.namespace());
    let whose = Whose::Namespace(&namespace, allowed);
    match &need.what {
        Needed::RequestZone(_) | Needed::ConnectionZone(_) => for_all.has_zone(&need.what),
        Needed::Service(target) => {
            targets::service(target, whose).map(|target| settings.lead_to(target))
        }
        Needed::Passwords if has_passwords => Ok(()),
        Needed::Passwords => Err(
            "auth_basic without passwords: name a Secret with the annotation auth-secret, which \
                 asks for a password by itself"
                .to_owned(),
        ),
        // Ports stand at http level only, upstreams are seen to before.
        Needed::Port(_) | Needed::DefaultOf(_) | Needed::Upstream(_) => Ok(()),
        // The authenticator's location is an exact one.
        Needed::Around(kind) if name == "auth-snippet" => {
            let around = LocationKind::Exact(String::new());
            kind.misplaced_in(&around).map_or(Ok(()), |why| Err(why.to_owned()))
        }
        Needed::Around(_) => {
            within.push(need.clone());
            Ok(())
        }
    }
}
