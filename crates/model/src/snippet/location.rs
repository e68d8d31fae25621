//! Scopes: what one snippet says for its level, and the locations of its own.

use super::inherit::settings;
use super::{
    Access, Answers, Client, Headers, IfBlock, Inherit, LimitExcept, Limits, Program, RealIp,
    Regex, Step, Task, Template, Transfer,
};
use crate::UpstreamId;
use serde::Serialize;
use std::sync::Arc;

settings! {
    /// All settings of one level.
    pub struct Settings {
        /// Headers.
        pub headers: Headers,
        /// Guards.
        pub access: Access,
        /// Addresses of clients.
        pub real_ip: RealIp,
        /// Limits.
        pub limits: Limits,
        /// Upstreams that speak HTTP.
        pub proxy: Transfer,
        /// Upstreams that speak gRPC.
        pub grpc: Transfer,
        /// Upstreams that speak FastCGI.
        pub fastcgi: Transfer,
        /// Answers.
        pub answers: Answers,
        /// Clients.
        pub client: Client,
        /// `proxy_pass`, `grpc_pass`
        pub pass: Option<Pass>,
        /// `stub_status`
        pub stub_status: bool,
        /// `empty_gif`
        pub empty_gif: bool,
    }
}

/// What one level says: a snippet, a location, a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// The rewrite module.
    pub program: Program,
    /// Everything else.
    pub settings: Settings,
    /// Settings of `if` blocks: nameless locations that inherit [`Self::settings`].
    pub branches: Vec<Settings>,
    /// `limit_except`, one of each text: for a method that several are about, all of them must let in.
    pub limit_except: Vec<LimitExcept>,
    /// `internal`: for requests that are led there, not for clients; so are locations within.
    pub internal: bool,
    /// Locations within.
    pub locations: Vec<OwnLocation>,
}

impl Scope {
    /// Adds what another text says for the same level, behind this one. Of guards it opens none that this one has: of
    /// what nginx refuses to be said twice, what closes more counts.
    pub fn join(&mut self, behind: &Self) {
        let access = &self.settings.access;
        let excepted = behind.limit_except.iter().map(|one| one.behind(access, &self.program));
        let excepted: Vec<_> = excepted.collect();
        let (satisfy, auth_basic) = access.stricter(&behind.settings.access);
        self.goes_on(&behind.program, &behind.branches);
        self.settings.join(&behind.settings);
        (self.settings.access.satisfy, self.settings.access.auth_basic) = (satisfy, auth_basic);
        self.limit_except.extend(excepted);
        self.internal |= behind.internal;
        self.locations.join(&behind.locations);
    }

    /// Its program goes on as another one does, with the settings of that one's `if` blocks.
    fn goes_on(&mut self, program: &Program, blocks: &[Settings]) {
        let branches = self.branches.len();
        for step in &program.steps {
            let mut step = step.clone();
            if let Task::If(IfBlock { branch: Some(branch), .. }) = &mut step.task {
                *branch += branches;
            }
            self.program.steps.push(step);
        }
        self.branches.extend(blocks.iter().cloned());
    }

    /// Its locations stand behind what another text says of the level that they are all in: they open no guard of that,
    /// and its program runs in them before their own.
    pub fn has_locations_behind(&mut self, before: &Self) {
        let Self { program, branches, settings: Settings { access, .. }, .. } = before;
        for OwnLocation { scope, .. } in &mut self.locations {
            for except in &mut scope.limit_except {
                *except = except.behind(access, program);
            }
            scope.settings.access.opens_nothing(access);
            let own = (std::mem::take(&mut scope.program), std::mem::take(&mut scope.branches));
            (scope.program, scope.branches) = (program.clone(), branches.clone());
            scope.goes_on(&own.0, &own.1);
            scope.has_locations_behind(before);
        }
    }

    /// Whether two levels let in the same requests, as far as their texts tell: headers, times and what goes into logs
    /// keep nobody out.
    pub fn are_guarded_alike(one: Option<&Self>, other: Option<&Self>) -> bool {
        let nothing = Self::default();
        let (one, other) = (one.unwrap_or(&nothing), other.unwrap_or(&nothing));
        one.settings.access == other.settings.access
            && one.limit_except == other.limit_except
            && one.internal == other.internal
            && one.locations == other.locations
            && one.decisions() == other.decisions()
    }

    /// What its program decides, and what counts then; nothing where it only sets variables.
    fn decisions(&self) -> Option<(&Program, &[Settings])> {
        let decides = |step: &Step| !matches!(step.task, Task::Set(..) | Task::Break);
        let does = self.program.steps.iter().any(decides);
        does.then_some((&self.program, &*self.branches))
    }

    /// Notes that a namespace says all of it. What it sets counts in its own locations, and what it leads to is open to
    /// it as far as it is its own; what nobody is noted for is everybody's.
    pub fn belong_to(&mut self, owner: &Arc<str>) {
        steps_belong_to(&mut self.program.steps, owner);
        let excepted = self.limit_except.iter_mut().map(|except| &mut *except.settings);
        let settings = self.branches.iter_mut().chain(excepted).chain([&mut self.settings]);
        for page in settings.flat_map(|settings| &mut settings.answers.error_pages) {
            page.owner = Some(Arc::clone(owner));
        }
        for location in &mut self.locations {
            location.owner = Some(Arc::clone(owner));
            location.scope.belong_to(owner);
        }
    }
}

fn steps_belong_to(steps: &mut [Step], owner: &Arc<str>) {
    for step in steps {
        step.owner = Some(Arc::clone(owner));
        if let Task::If(block) = &mut step.task {
            steps_belong_to(&mut block.steps, owner);
        }
    }
}

/// A location that a snippet has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnLocation {
    /// For which paths.
    pub kind: LocationKind,
    /// What it says.
    pub scope: Scope,
    /// The namespace that has it; see [`Scope::belong_to`].
    #[serde(skip)]
    pub owner: Option<Arc<str>>,
}

/// For which paths a location is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum LocationKind {
    /// `=`
    Exact(String),
    /// A prefix; `final_prefix` for `^~`: no expression is tried after it.
    Prefix {
        /// The prefix.
        path: String,
        /// `^~`
        final_prefix: bool,
    },
    /// `~` and `~*`
    Regex(Regex),
    /// `@name`
    Named(String),
}

impl LocationKind {
    /// Why a location of this kind may not stand within one of another; none if it may. The locations of Ingresses
    /// are judged by it too: a `configuration-snippet` with locations stands in each of them.
    pub fn misplaced_in(&self, around: &Self) -> Option<&'static str> {
        match (self, around) {
            (Self::Named(_), _) => self.misplaced_in_any(),
            (_, Self::Exact(_)) => Some("no location may stand within an exact one"),
            (_, Self::Named(_)) => Some("no location may stand within a named one"),
            (Self::Regex(_), _) => None,
            (inner, around) => {
                if inner.name().starts_with(around.name()) {
                    None
                } else {
                    Some("its path does not begin with that of the location around it")
                }
            }
        }
    }

    /// Why it may stand within no location.
    pub fn misplaced_in_any(&self) -> Option<&'static str> {
        matches!(self, Self::Named(_)).then_some("a named location stands in a server")
    }
}

/// Where `proxy_pass` or `grpc_pass` leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// Whether it is gRPC.
    pub grpc: bool,
    /// Whether TLS is spoken.
    pub tls: bool,
    /// To whom.
    pub target: PassTarget,
    /// A path that replaces what the location matched, or with variables the whole.
    pub path: Option<Template>,
}

/// Whom requests are passed to: upstreams of Kubernetes, nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PassTarget {
    /// `upstream_balancer`: the upstream that `$proxy_upstream_name` names.
    Balancer,
    /// A Service by its name in the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
}

impl PassTarget {
    /// The upstream of a Service; that of the balancer is known when a request comes.
    pub fn upstream(&self) -> Option<UpstreamId> {
        let Self::Service { namespace, name, port } = self else { return None };
        Some(UpstreamId::new(format!("url:{namespace}/{name}:{port}")))
    }
}
