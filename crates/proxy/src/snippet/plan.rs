//! From a server with snippets to its spots: its locations, itself, the locations that snippets have, and `if` blocks.

use super::level::Within;
use super::lower::{Said, at_own_location, lowered, said_by_the_controller};
use super::{Level, OfSite, upstream_tls};
use model::policy::{Access, Limits, Policy, TlsRedirect};
use model::snippet::{Inherit, LocationKind, OwnLocation, Pieces, Regex, Scope, Settings};
use model::{Backend, Location, Nowhere, PathKind, Pattern, Server};
use route::Own;
use snippet::run::{Asks, Tables};
use std::collections::HashMap;
use std::sync::Arc;

/// The spots of a server with snippets; those of its locations come first, in their order.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Their locations, with policies in which the settings in force count.
    pub locations: Vec<Arc<Location>>,
    /// What snippets say there; none where they say nothing: such a location is as those of hosts without snippets.
    pub levels: Vec<Option<Arc<Level>>>,
    /// The locations that snippets have, for matching.
    pub own: Vec<Own>,
    /// What they say of the host.
    pub of_site: OfSite,
}

impl Plan {
    /// Whether any snippet counts for a server.
    pub(crate) fn counts(server: &Server, http: Option<&Settings>) -> bool {
        http.is_some_and(|settings| *settings != Settings::default())
            || server.snippet.is_some()
            || server.locations.iter().any(|location| location.policy.snippet.is_some())
    }

    /// The plan of a server within what the http level says; none where no snippet counts for it. `nowhere` is what the
    /// ConfigMap says there of what has no Ingress.
    pub(crate) fn of(
        server: &Server,
        http: Option<&Settings>,
        nowhere: &Nowhere,
        tables: &Tables,
    ) -> Option<Self> {
        if !Self::counts(server, http) {
            return None;
        }
        let scope = server.snippet.clone().unwrap_or_default();
        let mut around = scope.settings.clone();
        if let Some(http) = http {
            around.inherit(http);
        }
        let around = Arc::new(around);
        let silent = server.snippet.is_none() && *around == Settings::default();
        let (locations, regex) = (server.locations.clone(), server.regex);
        let bare = bare(server, nowhere);
        let mut planner = Planner::new(locations, regex, tables);
        planner.has_pages = has_pages(&scope.settings);
        planner.levels.resize_with(server.locations.len(), Level::default);
        for (index, location) in server.locations.iter().enumerate() {
            planner.of_ingress(index, location, &around);
        }
        let host = server;
        let server = planner.server(&scope, &bare, &around);
        let says = |index: usize| {
            let of_ingress = host.locations.get(index);
            !silent || of_ingress.map_or(index != server, |own| own.policy.snippet.is_some())
        };
        let mut named = HashMap::new();
        for own in &scope.locations {
            let index = planner.own(own, None, &bare, &around);
            if let LocationKind::Named(name) = &own.kind {
                named.insert(name.clone(), index);
            }
        }
        for (location, level) in planner.locations.iter_mut().zip(&planner.levels) {
            upstream_tls::lower(location, &level.settings, host);
        }
        Some(Self {
            locations: planner.locations,
            levels: planner
                .levels
                .into_iter()
                .enumerate()
                .map(|(index, level)| says(index).then(|| Arc::new(level)))
                .collect(),
            own: planner.own,
            of_site: OfSite { server, named, names: Vec::new() },
        })
    }
}

#[derive(Debug)]
struct Planner<'t> {
    locations: Vec<Arc<Location>>,
    levels: Vec<Level>,
    own: Vec<Own>,
    /// Expressions that name what they match, of the snippets' locations that are being gone through.
    named: Vec<Regex>,
    /// Whether paths of Ingresses are expressions.
    regex: bool,
    /// Whether the server itself has error pages: they stand in place of those of the ConfigMap.
    has_pages: bool,
    /// The tables that texts may lead to.
    tables: &'t Tables,
    /// What locations of Ingresses without a snippet say.
    nothing: Arc<Scope>,
    /// What stands around locations of Ingresses, by what the controller says there.
    around: HashMap<Said, Arc<Settings>>,
    /// What scopes come to within settings, by where both are: paths of one Ingress have one and the same.
    inherited: HashMap<(*const Scope, *const Settings), Inherited>,
}

/// What a scope comes to within the settings around it.
#[derive(Clone, Debug)]
struct Inherited {
    scope: Arc<Scope>,
    settings: Arc<Settings>,
    /// What their texts ask for, with those of the program and its blocks.
    asks: Asks,
    /// Those of its `if` blocks, and what their texts ask for.
    branches: Vec<(Arc<Settings>, Asks)>,
    /// What locations within have from it: whom requests are passed to is not inherited.
    handed_on: Arc<Settings>,
    /// Kept, so that nothing else is where it is.
    _around: Arc<Settings>,
}

impl<'t> Planner<'t> {
    fn new(locations: Vec<Arc<Location>>, regex: bool, tables: &'t Tables) -> Self {
        let (levels, own, named) = (Vec::new(), Vec::new(), Vec::new());
        let (nothing, around, inherited) = (Arc::default(), HashMap::new(), HashMap::new());
        let has_pages = false;
        Self { locations, levels, own, named, regex, has_pages, tables, nothing, around, inherited }
    }

    fn push(&mut self, location: Location, level: Level) -> usize {
        self.locations.push(Arc::new(location));
        self.levels.push(level);
        self.levels.len() - 1
    }

    /// A location of an Ingress.
    fn of_ingress(&mut self, index: usize, location: &Location, around: &Settings) {
        let policy = &location.policy;
        let scope = policy.snippet.clone().unwrap_or_else(|| Arc::clone(&self.nothing));
        let outer = self.around.entry(Said::of(policy)).or_insert_with(|| {
            let mut outer = around.clone();
            said_by_the_controller(&mut outer, Said::of(policy));
            Arc::new(outer)
        });
        let outer = Arc::clone(outer);
        let inherited = self.inherited(&scope, &outer);
        // Those of an annotation stand beside those of the location.
        let of_all = policy.errors.as_ref().is_some_and(|errors| errors.of_all);
        let hides = of_all && (self.has_pages || has_pages(&scope.settings));
        let location = if hides { without_pages(location) } else { location.clone() };
        self.fill(index, &location, inherited, None);
        let level = &mut self.levels[index];
        if self.regex && (level.asks.captures || location.asks_for_groups()) {
            // A path that is no expression matches nothing.
            let pattern = Pattern::new(&format!("^{}", location.path), true).ok();
            level.captures = pattern.map(|pattern| Regex { pattern, names: Vec::new() });
        }
    }

    /// The server itself, where a request is until a location is found.
    fn server(&mut self, scope: &Arc<Scope>, bare: &Location, around: &Arc<Settings>) -> usize {
        let reason = "no location was looked for yet".to_owned();
        let location = Location { backend: Backend::Denied(reason), ..bare.clone() };
        let location = lowered(&location, around);
        let asks = self.tables.asks(&[&**around, &scope.program]);
        let (scope, settings) = (Some(Arc::clone(scope)), Arc::clone(around));
        self.push(location, Level { scope, settings, asks, own: true, ..Level::default() })
    }

    /// A location that a snippet has, `base` is what it has from the one around it.
    fn own(
        &mut self,
        own: &OwnLocation,
        parent: Option<usize>,
        base: &Location,
        around: &Arc<Settings>,
    ) -> usize {
        let (path, kind) = match &own.kind {
            LocationKind::Prefix { path, .. } => (path.clone(), PathKind::Prefix),
            exact => (exact.name().to_owned(), PathKind::Exact),
        };
        let location = Location { path, kind, whole: true, ..base.clone() };
        let location = with_pages(&location, &own.scope.settings);
        let location = with_limits(with_rules(location, &own.scope.settings), &own.scope.settings);
        let index = self.push(location.clone(), Level::default());
        self.levels[index].internal = parent.is_some_and(|parent| self.levels[parent].internal);
        let outer = parent.map_or(Within::default(), |parent| self.levels[parent].within);
        self.levels[index].within = outer.and(&own.scope.settings.headers);
        let owner = own.owner.clone().or_else(|| namespace(&location));
        let inherited = self.inherited(&own.scope, around);
        let around = self.named.clone();
        if let LocationKind::Regex(regex) = &own.kind
            && !regex.names.is_empty()
        {
            self.named.push(regex.clone());
        }
        self.fill(index, &location, inherited, Some(owner));
        self.named.truncate(around.len());
        let level = &mut self.levels[index];
        level.around = around;
        if let LocationKind::Regex(regex) = &own.kind
            && (!regex.names.is_empty() || level.asks.captures || location.asks_for_groups())
        {
            level.captures = Some(regex.clone());
        }
        let passes = level.settings.pass.is_some();
        self.own.push(Own { kind: own.kind.clone(), index, within: parent, passes });
        index
    }

    /// What a scope comes to within the settings around it.
    fn inherited(&mut self, scope: &Scope, around: &Arc<Settings>) -> Inherited {
        let key = (std::ptr::from_ref(scope), Arc::as_ptr(around));
        if let Some(known) = self.inherited.get(&key) {
            return known.clone();
        }
        let mut settings = scope.settings.clone();
        settings.inherit(around);
        // What says nothing of its own has what is around it: there may be thousands of hosts.
        let settings = if settings == **around { Arc::clone(around) } else { Arc::new(settings) };
        let branches = scope.branches.iter().map(|branch| {
            let mut inner = branch.clone();
            inner.inherit(&settings);
            inner.stub_status |= settings.stub_status;
            inner.empty_gif |= settings.empty_gif;
            let asks = self.tables.asks(&[&inner]);
            (Arc::new(inner), asks)
        });
        let branches = branches.collect();
        let said =
            [&*settings as &dyn Pieces, &scope.program, &scope.branches, &scope.limit_except];
        let asks = self.tables.asks(&said);
        let handed_on = if settings.pass.is_none() {
            Arc::clone(&settings)
        } else {
            Arc::new(Settings { pass: None, ..Settings::clone(&settings) })
        };
        let inherited = Inherited {
            scope: Arc::new(scope.clone()),
            settings,
            asks,
            branches,
            handed_on,
            _around: Arc::clone(around),
        };
        self.inherited.insert(key, inherited.clone());
        inherited
    }

    /// Says what a location is, and makes its `if` blocks and the locations within it; `of_snippet` says whose it is if
    /// a snippet has it.
    fn fill(
        &mut self,
        index: usize,
        base: &Location,
        inherited: Inherited,
        of_snippet: Option<Option<Arc<str>>>,
    ) {
        let Inherited { scope, settings, asks, branches: said, handed_on, .. } = inherited;
        let own = of_snippet.is_some();
        let owner = of_snippet.unwrap_or_else(|| namespace(base));
        let outer = self.levels[index].within;
        // The controller's own `if` for CORS is not the last one that holds where one of these does.
        let beside = without_cors(base);
        let mut branches = Vec::with_capacity(said.len());
        for (branch, (inner, asks)) in scope.branches.iter().zip(said) {
            let location = lowered(&with_pages(&beside, branch), &inner);
            let owner = owner.clone();
            let within = outer.and(&branch.headers);
            let level = Level { settings: inner, asks, own, owner, within, ..Level::default() };
            branches.push(self.push(location, level));
        }
        self.locations[index] = Arc::new(lowered(base, &settings));
        // Locations within look at it.
        self.levels[index].internal |= scope.internal;
        let base = at_own_location(base, &settings);
        for inner in &scope.locations {
            self.own(inner, Some(index), &base, &handed_on);
        }
        let level = std::mem::take(&mut self.levels[index]);
        self.levels[index] =
            Level { scope: Some(scope), settings, branches, asks, own, owner, ..level };
    }
}

/// The namespace of a location's Ingress.
fn namespace(location: &Location) -> Option<Arc<str>> {
    location.origin.as_deref().map(|origin| Arc::clone(&origin.namespace))
}

fn has_pages(settings: &Settings) -> bool {
    !settings.answers.error_pages.is_empty()
}

/// The same without what the controller tells other origins.
fn without_cors(location: &Location) -> Location {
    let mut location = location.clone();
    if location.policy.cors.is_some() {
        Arc::make_mut(&mut location.policy).cors = None;
    }
    location
}

/// The same without the controller's error pages, where a level within has some: they replace all of them.
fn with_pages(location: &Location, within: &Settings) -> Location {
    if has_pages(within) { without_pages(location) } else { location.clone() }
}

/// The same without the controller's error pages; whether answers of the upstream are looked at is not theirs to say.
fn without_pages(location: &Location) -> Location {
    let mut location = location.clone();
    if location.policy.errors.is_some() {
        let policy = Arc::make_mut(&mut location.policy);
        policy.errors.iter_mut().for_each(|errors| errors.statuses.clear());
    }
    location
}

/// The same without limits of annotations, where a level within has some of that kind.
fn with_limits(mut location: Location, within: &Settings) -> Location {
    let said = &within.limits;
    let limits = &location.policy.limits;
    let requests =
        !said.requests.is_empty() && (limits.per_second.is_some() || limits.per_minute.is_some());
    let connections = !said.connections.is_empty() && limits.connections.is_some();
    if requests || connections {
        let limits = &mut Arc::make_mut(&mut location.policy).limits;
        if requests {
            (limits.per_second, limits.per_minute) = (None, None);
        }
        if connections {
            limits.connections = None;
        }
    }
    location
}

/// The same without the lists of annotations, where a level within has rules: those stand in place of all around it.
fn with_rules(mut location: Location, within: &Settings) -> Location {
    if !within.access.rules.is_empty() && location.policy.access.has_lists() {
        let policy = Arc::make_mut(&mut location.policy);
        policy.access = Access { satisfy: policy.access.satisfy, ..Access::default() };
    }
    location
}

/// A location of nginx of which nothing is said, but what the ConfigMap says at http level.
fn bare(server: &Server, nowhere: &Nowhere) -> Location {
    let Nowhere { request_status, connection_status, errors } = nowhere;
    let (request_status, connection_status) = (*request_status, *connection_status);
    // Servers of an http-snippet have no Ingress, and none of the locations that nginx.tmpl has for error pages.
    let is_of_ingresses = !server.locations.is_empty();
    let has_own = server.snippet.as_ref().is_some_and(|scope| has_pages(&scope.settings));
    let mut errors = errors.clone().filter(|_| is_of_ingresses);
    if has_own {
        errors.iter_mut().for_each(|errors| errors.statuses.clear());
    }
    let limits = Limits { request_status, connection_status, ..Limits::default() };
    let policy = Policy { tls_redirect: TlsRedirect::NEVER, limits, errors, ..Policy::default() };
    let location = Location {
        path: String::new(),
        kind: PathKind::Prefix,
        whole: true,
        backend: Backend::NotFound,
        canary: None,
        service: None,
        origin: None,
        policy: Arc::new(policy),
    };
    at_own_location(&location, &Settings::default())
}
