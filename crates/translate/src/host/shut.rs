//! Paths that are not served: what those with a guard would have had must not be that of a location behind them that
//! lets others in.

use super::Host;
use crate::ingress::{Age, Draft, Drafts, Waits};
use model::policy::Policy;
use model::{Backend, Location, Origin, PathKind, Severity, Why, fixed_start};
use objects::ObjectKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Guarded paths of a namespace on a host that are told apart (docs/limits.md). Where there are more, all that comes
/// behind the first of them and has other guards is closed.
const MOST: usize = 32;

/// Who says something at a host; nobody says what the host is by itself.
type Namespace = Option<Arc<str>>;

/// A path that is left out, and why.
#[derive(Debug)]
pub(super) struct Shut {
    location: Arc<Location>,
    reason: String,
    /// What every path begins with that it matches; in lower case, unless it is meant as it is written.
    start: String,
    /// Whether what is behind it is asked after: it is guarded, and one location cannot stand in for all of it.
    closes: bool,
    /// Whom its guards let in, of the kinds of its namespace; none where nobody knows, or nobody asked.
    kind: Option<usize>,
    /// Paths that are shorter get no requests of it: something stands before them that begins as it does.
    shield: usize,
}

/// A path that an older Ingress of another namespace has.
#[derive(Debug)]
pub(super) struct Waived {
    pub(super) location: Arc<Location>,
    /// Whether its own Ingress asks for regular expressions.
    pub(super) regex: bool,
    /// The older Ingress.
    pub(super) first: ObjectKey,
}

impl Shut {
    /// A location that answers 503 at a path.
    fn at(&self, path: String) -> Arc<Location> {
        let backend = Backend::Denied(self.reason.clone());
        let kind = PathKind::Prefix;
        let canary = None;
        Arc::new(Location { path, kind, backend, canary, ..Location::clone(&self.location) })
    }

    /// Whether a location may get requests of it.
    fn leads_to(&self, location: &Location, of_patterns: bool) -> bool {
        let path = &location.path;
        if of_patterns {
            return may_agree(&self.start, fixed_start(path));
        }
        let path = path.to_ascii_lowercase();
        let above = || self.start.strip_prefix(bare(&path));
        path.starts_with(&self.start)
            || location.kind == PathKind::Prefix
                && above().is_some_and(|rest| rest.starts_with('/'))
    }
}

/// What is left out of a namespace, for locations of it: the guarded ones, in the order in which they were tried.
struct OfNamespace {
    shut: Vec<Shut>,
    /// Whether they are too many to be told apart.
    all: bool,
    guards: Guards,
}

impl OfNamespace {
    fn of(mut shut: Vec<Shut>, all: bool) -> Self {
        let mut guards = Guards::default();
        if all {
            // The first of all and the first with other guards say as much.
            guards.learn(&mut shut[0]);
            let is_other = |other: &Shut| guards.of(&other.location).is_none();
            let second = shut.iter().skip(1).position(is_other).map(|at| at + 1);
            let mut at = 0..;
            shut.retain(|_| at.next().is_some_and(|at| at == 0 || Some(at) == second));
        } else {
            shut.iter_mut().for_each(|shut| guards.learn(shut));
        }
        Self { shut, all, guards }
    }

    /// Why a location is closed, if it may get requests now whom it would not have let in.
    fn closes(&mut self, location: &Location, of_patterns: bool) -> Option<&Shut> {
        if matches!(location.backend, Backend::Denied(_)) {
            return None;
        }
        self.shut.iter().find(|shut| {
            order(&shut.location) < order(location)
                && (self.all
                    || location.path.len() >= shut.shield && shut.leads_to(location, of_patterns))
                && (shut.kind.is_none() || shut.kind != self.guards.of(location))
        })
    }
}

/// Whom the paths of a namespace let in. Each Ingress is compared once, however long its lists are and however many
/// paths it has.
#[derive(Default)]
struct Guards {
    /// The different ones of paths that are left out.
    kinds: Vec<Arc<Policy>>,
    /// Which of these an Ingress has: its paths have the same but for those that nobody has to authenticate for.
    known: HashMap<Guarded, Option<usize>>,
}

/// Whose guards they are, and whether they ask who somebody is.
type Guarded = (Option<*const Origin>, bool, bool);

impl Guards {
    /// Notes whom a path that is left out would have let in. Nobody knows that of one that is closed before it has
    /// guards.
    fn learn(&mut self, shut: &mut Shut) {
        let policy = &shut.location.policy;
        if !policy.is_guarded() {
            return;
        }
        shut.kind = self.of(&shut.location).or_else(|| {
            let new = Some(self.kinds.len());
            self.kinds.push(Arc::clone(policy));
            self.known.insert(guarded(&shut.location), new);
            new
        });
    }

    /// Which of these a location has, if any.
    fn of(&mut self, location: &Location) -> Option<usize> {
        let is_own = |kind: &Arc<Policy>| kind.is_guarded_as(&location.policy);
        let found = || self.kinds.iter().position(is_own);
        *self.known.entry(guarded(location)).or_insert_with(found)
    }
}

fn guarded(location: &Location) -> Guarded {
    let Policy { auth_basic, auth_external, .. } = &*location.policy;
    let origin = location.origin.as_ref().map(Arc::as_ptr);
    (origin, auth_basic.is_some(), auth_external.is_some())
}

/// Since when something is there; none of what no Ingress wrote.
type Since = Option<Age>;

/// Whose the texts of paths are: of each the namespace that has had it for longest, and of all others the first.
#[derive(Default)]
struct Texts(HashMap<String, Vec<(Namespace, Since)>>);

impl Texts {
    fn note(&mut self, text: String, whose: Namespace, since: Since) {
        let first = self.0.entry(text).or_default();
        first.push((whose, since));
        first.sort_by(|(_, one), (_, other)| one.cmp(other));
        // The first one, and the first that is foreign to it.
        let mut all = std::mem::take(first).into_iter();
        let oldest = all.next();
        let second = all.find(|(whose, _)| oldest.as_ref().is_some_and(|(own, _)| own != whose));
        *first = oldest.into_iter().chain(second).collect();
    }

    fn has(&self, text: &str) -> bool {
        self.0.contains_key(text)
    }

    /// Since when a text is that of another namespace.
    fn foreign(&self, text: &str, own: &Namespace) -> Option<&Since> {
        let mut all = self.0.get(text)?.iter();
        all.find(|(whose, _)| whose != own).map(|(_, since)| since)
    }

    /// Whether a text is that of another namespace, and was before.
    fn is_older(&self, text: &str, own: &Namespace, since: &Since) -> bool {
        self.foreign(text, own).is_some_and(|other| other < since)
    }
}

impl Host<'_> {
    /// Notes that a path is left out, if it is guarded. `regex`: whether its Ingress asks for regular expressions.
    pub(super) fn shut(&mut self, location: &Arc<Location>, regex: bool, reason: &str) {
        if location.policy.is_guarded() || matches!(location.backend, Backend::Denied(_)) {
            let whose = location.origin.as_ref().map(|origin| format!(" of {origin}"));
            let (path, whose) = (&location.path, whose.unwrap_or_default());
            let reason = format!(
                "path {path}{whose} is guarded, and cannot be served ({reason}), so nobody else gets its requests; \
                 write it in another way"
            );
            self.note_shut(location, regex, reason, true);
        }
    }

    /// Closes what was left to an older Ingress of another namespace that is left out itself there: nobody serves it,
    /// so that its guard would count for nothing, as if it were not written.
    pub(super) fn of_nobody(&mut self) {
        let waived = std::mem::take(&mut self.waived);
        if waived.is_empty() {
            return;
        }
        let served: HashSet<(PathKind, &str)> =
            self.locations.iter().map(|location| (location.kind, &*location.path)).collect();
        let is_left = |one: &Waived| !served.contains(&(one.location.kind, &*one.location.path));
        let left: Vec<Waived> = waived.into_iter().filter(is_left).collect();
        for Waived { location, regex, first: ObjectKey { namespace, name } } in left {
            let reason = format!("Ingress {namespace}/{name}, which is older, asks for it in vain");
            let message = format!(
                "path {} ({:?}) of host {} is served to nobody: {reason}; write another path",
                location.path, location.kind, self.name
            );
            self.path_problem(&location, Severity::Error, Why::OtherNamespace.says(message));
            self.shut(&location, regex, &reason);
        }
    }

    /// Notes that a path is too large an expression: what begins like it is closed, guarded or not.
    pub(super) fn shut_start(&mut self, location: &Arc<Location>, reason: String) {
        let before = self.shut.len();
        self.shut(location, true, &reason);
        if self.shut.len() == before {
            self.note_shut(location, true, reason, false);
        }
    }

    /// Closes what expressions of Ingresses that wait for room begin with: they are not compiled.
    pub(super) fn shut_waiting(&mut self, drafts: &Drafts) {
        let waiting = drafts.values().filter_map(|draft| Some((&*draft.origin, draft.waits?)));
        let waiting: HashMap<&Origin, Waits> = waiting.collect();
        if waiting.is_empty() {
            return;
        }
        for location in std::mem::take(&mut self.locations) {
            let origin = location.origin.as_deref();
            let waits = origin.and_then(|origin| waiting.get(origin));
            let is_pattern = || fixed_start(&location.path) != location.path;
            let Some(Waits { guards, .. }) = waits.filter(|_| is_pattern()) else {
                self.locations.push(location);
                continue;
            };
            let whose = origin.map(ToString::to_string).unwrap_or_default();
            let reason = format!(
                "path {} of {whose}, which waits for room in the budget of its namespace, begins so",
                location.path
            );
            self.note_shut(&location, true, reason, *guards);
        }
    }

    fn note_shut(
        &mut self,
        location: &Arc<Location>,
        regex: bool,
        reason: String,
        is_guarded: bool,
    ) {
        let start = fixed_start(&location.path);
        let is_pattern = self.regex || regex && start.len() < location.path.len();
        let start = if is_pattern { start.to_ascii_lowercase() } else { location.path.clone() };
        if is_guarded && !is_pattern && !start.ends_with('/') {
            let (backend, kind) = (Backend::Denied(reason.clone()), PathKind::Exact);
            let exact = Location { backend, kind, canary: None, ..Location::clone(location) };
            self.bare.push(Arc::new(exact));
        }
        let (location, closes) = (Arc::clone(location), is_guarded && is_pattern);
        self.shut.push(Shut { location, reason, start, closes, kind: None, shield: 0 });
    }

    /// Closes what may get requests of guarded paths that are left out. It is their namespace's: what others have is
    /// theirs to guard.
    pub(super) fn close(&mut self, drafts: &Drafts) {
        let mut all: BTreeMap<Namespace, Vec<Shut>> = BTreeMap::new();
        for shut in std::mem::take(&mut self.shut) {
            all.entry(namespace(&shut.location)).or_default().push(shut);
        }
        if all.is_empty() {
            return;
        }
        let ages: HashMap<&Origin, &Arc<Draft>> =
            drafts.values().map(|draft| (&*draft.origin, draft)).collect();
        let since = |location: &Location| {
            location.origin.as_deref().and_then(|origin| ages.get(origin)).map(|draft| draft.age())
        };
        let (mut texts, mut of) = (self.texts(since), HashMap::new());
        for (namespace, mut shut) in all {
            shut.sort_by(|one, other| order(&one.location).cmp(&order(&other.location)));
            let too_many = shut.iter().filter(|shut| shut.closes).count() > MOST;
            for shut in shut.iter_mut().filter(|shut| !(too_many && shut.closes)) {
                let since = since(&shut.location);
                shut.shield = self.shield(shut, (&namespace, since), &mut texts);
            }
            shut.retain(|shut| shut.closes);
            of.insert(namespace, OfNamespace::of(shut, too_many));
        }
        for location in &mut self.locations {
            let shut = of.get_mut(&namespace(location));
            if let Some(shut) = shut.and_then(|shut| shut.closes(location, self.regex)) {
                Arc::make_mut(location).backend = Backend::Denied(shut.reason.clone());
            }
        }
    }

    /// Puts a location that answers 503 where a path begins, unless something has that text: of others the same but
    /// for a final slash is enough, whose requests it would take. Whoever came later has none of them. Gives back how
    /// long the path is that stands there.
    fn shield(
        &mut self,
        shut: &Shut,
        (own, since): (&Namespace, Since),
        texts: &mut Texts,
    ) -> usize {
        let start = &shut.start;
        if !self.regex {
            let text = bare(start);
            let is_free = !text.is_empty() && !texts.has(text);
            // Nothing on a host of plain paths has all that an expression has, whatever the case of letters.
            if !shut.closes && shut.location.kind == PathKind::Prefix && is_free {
                texts.note(text.to_owned(), own.clone(), None);
                self.locations.push(shut.at(format!("{text}/")));
            }
            return 0;
        }
        if start.len() < 2 {
            return 0;
        }
        let is_older = |text: &str| texts.is_older(text, own, &since);
        if let Some(bare) = start.strip_suffix('/').filter(|bare| is_older(bare)) {
            return bare.len();
        }
        let written = fixed_start(&shut.location.path);
        if !texts.has(start) {
            // It does for what others have closed there, too.
            texts.note(start.clone(), own.clone(), None);
            self.locations.push(shut.at(written.to_owned()));
        } else if !is_older(start) && texts.foreign(start, own).is_some() {
            // Once or more often is the same at the end, and is tried before what is as long as the start. Of what is
            // as long as this hardly anything comes behind it.
            let behind = (b' '..b'+').map(|byte| format!("{start}{}", char::from(byte)));
            if !behind.into_iter().any(|text| is_older(&text)) {
                let first = format!("{start}+");
                if !texts.has(&first) {
                    texts.note(first, own.clone(), None);
                    self.locations.push(shut.at(format!("{written}+")));
                }
            }
        }
        start.len()
    }

    /// The paths of the host that one which stands in for another must not have.
    fn texts(&self, since: impl Fn(&Location) -> Since) -> Texts {
        let mut texts = Texts::default();
        for location in &self.locations {
            let text = match self.regex {
                true => location.path.to_ascii_lowercase(),
                false if location.kind == PathKind::Exact => continue,
                false => bare(&location.path).to_owned(),
            };
            texts.note(text, namespace(location), since(location));
        }
        texts
    }

    /// Closes a guarded path without a final slash that is not served, where whoever has it with one answers 503: else
    /// that redirects to itself.
    pub(super) fn close_bare(&mut self) {
        let bare = std::mem::take(&mut self.bare);
        if self.regex || bare.is_empty() {
            return;
        }
        let mut taken = HashSet::new();
        for location in &self.locations {
            let is_closed = matches!(location.backend, Backend::Denied(_));
            match location.path.strip_suffix('/') {
                Some(_) if is_closed => {}
                Some(bare) => drop(taken.insert(bare.to_owned())),
                None => drop(taken.insert(location.path.clone())),
            }
        }
        for exact in bare {
            if taken.insert(exact.path.clone()) {
                self.locations.push(exact);
            }
        }
    }
}

fn namespace(location: &Location) -> Namespace {
    location.origin.as_ref().map(|origin| Arc::clone(&origin.namespace))
}

fn bare(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// The order in which paths of a host of regular expressions are tried.
fn order(location: &Location) -> (Reverse<usize>, Reverse<&str>) {
    (Reverse(location.path.len()), Reverse(&location.path))
}

/// Whether a path may begin with both.
fn may_agree(one: &str, other: &str) -> bool {
    let both = one.bytes().zip(other.bytes());
    both.into_iter().all(|(one, other)| one.eq_ignore_ascii_case(&other))
}
