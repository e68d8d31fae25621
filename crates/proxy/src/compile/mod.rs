//! From a Configuration to the next Generation: only what differs is compiled again.

mod doors;
mod outgoing;
mod routes;
mod shared;

use crate::answer::Watch;
use crate::authenticator::Tag;
use crate::crowds::Crowd;
use crate::generation::{Doors, ErrorPages, Extras, Few, Generation, Site, Spot, StandIn, Told};
use crate::limits::{DeclaredZones, Zones};
use crate::log::Format;
use crate::set_headers::SetHeaders;
use crate::snippet::{Effects, Heads, Level, OwnServers, Plan, inherits_other, of_http_level};
use crate::telemetry::{OtlpEnvironment, Spans, Tracer, Tracing};
use crate::variables::{self, watch};
use imbl::OrdMap;
use model::policy::{AnswerRewrites, AuthExternal, ClientCertificate, Cors, Policy, Protocol};
use model::snippet::{GlobalScope, Scope, Settings};
use model::{
    Backend, Changes, Configuration, DEFAULT_BACKEND, Endpoints, Global, Location, LogFormat,
    Outside, Part, Problem, Server, ServerName, SetHeader, Severity, Template, UpstreamId,
    Variable,
};
use request_metrics::Metrics;
use route::{Locations, RouteTable, Routes};
use routes::Outgoing;
use rustls::sign::CertifiedKey;
use shared::Shared;
use snippet::run::Tables;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use stream::Resolver;
use system::breaks::between_pieces;
use tls::{Certificates, Clients, Profile, Profiles, TlsFront, Verifier, Verifiers};
use upstream::{Addresses, Alternative, Group, Rule};

/// What outlives generations and is needed to make them.
#[derive(Debug, Default)]
pub(crate) struct Compiler {
    profiles: Profiles,
    verifiers: Verifiers,
    zones: Zones,
    /// Who looks names up.
    pub resolver: Arc<Resolver>,
    /// Whether it is never asked: one address that nobody has (RFC 5737) stands for those of every name.
    asks_no_names: bool,
    /// Which endpoints there are.
    pub addresses: Arc<Addresses>,
    /// Where requests are counted, if they are.
    pub metrics: Option<Arc<Metrics>>,
    tracing: Tracing,
    told: Shared<Cors, Told>,
    set_headers: Shared<[SetHeader], SetHeaders>,
    /// What authenticators are asked with, told apart.
    asked: Shared<AuthExternal, Tag>,
    /// How TLS is spoken with the upstreams of an Ingress, which its protocol tells, too.
    upstream_tls: Shared<Policy, Profile>,
}

impl Compiler {
    /// A compiler for objects whose names may lead there, which counts requests here, and of which the environment says
    /// where spans go.
    pub(crate) fn new(
        outside: Outside,
        metrics: Option<Arc<Metrics>>,
        collector: OtlpEnvironment,
    ) -> Self {
        let resolver = Arc::new(Resolver::from(outside));
        let tracing = Tracing { environment: collector, ..Tracing::default() };
        Self { resolver, metrics, tracing, ..Self::default() }
    }

    /// A compiler where nobody serves, which looks no names up.
    pub(crate) fn without_names() -> Self {
        Self { asks_no_names: true, ..Self::default() }
    }

    /// What limits remember of clients outlives generations.
    pub(crate) fn zones(&self) -> &Zones {
        &self.zones
    }

    /// How full the fullest zone is that an `http-snippet` declares.
    pub(crate) fn fullest_zone(&self) -> Crowd {
        self.zones.crowd()
    }

    /// The generation before the first: it serves nothing, and has this certificate for who names no other.
    pub(crate) fn nothing(&self, own: CertifiedKey) -> Result<Generation, rustls::Error> {
        let configuration = Configuration::default();
        let certificates = Certificates::new(Arc::new(own));
        let outside = self.resolver.outside().clone();
        let front = TlsFront::new(&configuration.global, certificates.clone(), outside)?;
        Ok(Generation {
            number: 0,
            configuration,
            sites: Routes::default(),
            routes: RouteTable::default(),
            doors: Doors::default(),
            certificates,
            front,
            groups: OrdMap::new(),
            passthrough: OrdMap::new(),
            left_out: OrdMap::new(),
            few: Few::default(),
            heads: Heads::from(&Global::default()),
            answer_headers: SetHeaders::default(),
            request_headers: SetHeaders::default(),
            watch: Watch::default(),
            log_format: Format::new(&LogFormat::default()),
            tables: Arc::default(),
            counts: false,
            own_servers: None,
            tracer: self.tracing.tracer(&Global::default().telemetry),
        })
    }

    /// The generation after `before`. Living groups change only once nothing can fail any more, so that a refusal
    /// changes nothing.
    pub(crate) fn next(
        &self,
        before: &Generation,
        configuration: &Configuration,
        changes: &Changes,
    ) -> Result<Generation, rustls::Error> {
        let certificates = before.certificates.follow(configuration, changes);
        let (mut groups, mut passthrough) = (before.groups.clone(), before.passthrough.clone());
        let mut sites = without_old_names(before, changes);
        let (mut left_out, mut few) = (before.left_out.clone(), before.few.clone());
        let around = Around::of(&configuration.global, &self.zones, before);
        let everything_changes = around.differs(before.global());
        let names = around.servers(configuration, changes, before.global());
        let mut changed = Vec::with_capacity(names.len());
        for name in names {
            between_pieces();
            let server = configuration.servers.get(name);
            put(&mut passthrough, name, server.and_then(|it| doors::passed_on(it, &mut groups)));
            left_out.remove(name);
            let site = server.map(|server| {
                let (site, problems) = self.site(server, &around, &mut groups);
                if !problems.is_empty() {
                    left_out.insert(name.clone(), problems);
                }
                Arc::new(site)
            });
            few.note(name, site.as_deref());
            sites = sites.with(name, site.clone());
            let names = server.map(|server| server.other_names()).unwrap_or_default();
            if !names.is_empty() {
                sites = sites.with_aliases(name, &names, site.as_ref());
            }
            changed.push((name.clone(), site));
        }
        let routes = self.routes(before, configuration, changes, &mut groups);
        let own_servers = if everything_changes {
            self.own_servers(&around, &mut groups)
        } else {
            before.own_servers.clone()
        };
        let own_tls = changed.iter().map(|(name, site)| (name.clone(), tls_of(site.as_deref())));
        let front = before.front.follow(&configuration.global, &certificates, own_tls)?;
        let tls = (&front, &certificates);
        let doors = self.doors((before, configuration, changes), tls, &mut groups)?;
        for id in &changes.upstreams {
            self.follow(&mut groups, id, configuration);
        }
        Ok(Generation {
            number: before.number + 1,
            configuration: configuration.clone(),
            sites,
            routes,
            doors,
            certificates,
            front,
            answer_headers: SetHeaders::new(&configuration.global.add_headers),
            request_headers: SetHeaders::new(&configuration.global.proxy_set_headers),
            watch: watch_of_all(&configuration.global, &around.tables),
            log_format: Format::new(&configuration.global.log_format),
            heads: heads(&configuration.global, own_servers.as_deref(), &few),
            counts: counts(&configuration.global, own_servers.as_deref(), &few, &around.tables),
            own_servers,
            tables: around.tables,
            tracer: self.tracer(before, &configuration.global),
            groups,
            passthrough,
            left_out,
            few,
        })
    }

    /// The servers that the http level itself has.
    fn own_servers(
        &self,
        around: &Around<'_>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Option<Arc<OwnServers>> {
        OwnServers::new(around.http?, |server| self.site(server, around, groups).0)
    }

    /// The tracer before, unless its settings have changed: what waits in it is sent, either way.
    fn tracer(&self, before: &Generation, global: &Global) -> Arc<Tracer> {
        if before.number > 0 && before.global().telemetry == global.telemetry {
            before.tracer.clone()
        } else {
            self.tracing.tracer(&global.telemetry)
        }
    }

    /// What became of spans since the process started.
    pub(crate) fn spans(&self) -> Spans {
        self.tracing.counts.now()
    }

    /// A server, and what of it is denied because it cannot be served.
    fn site(
        &self,
        server: &Arc<Server>,
        around: &Around<'_>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> (Site, Vec<Problem>) {
        let (inherited, nowhere) = (around.inherited.as_deref(), &around.global.nowhere);
        let plan = Plan::of(server, inherited, nowhere, &around.tables);
        let all = plan.as_ref().map_or(&server.locations, |plan| &plan.locations);
        let outgoing = all.iter().map(|location| self.outgoing(&server.name, location, groups));
        let outgoing: Vec<_> = outgoing.collect();
        let (locations, problems) = without_the_unservable(&server.name, all, &outgoing);
        let mut known = Known::default();
        let spots = locations.iter().zip(outgoing).enumerate();
        let spots = spots.map(|(index, (location, outgoing))| {
            let clients = self.clients_besides(server, location);
            let level = plan.as_ref().and_then(|plan| plan.levels[index].clone());
            let watch = level.as_ref().map(|level| known.watch(level)).unwrap_or_default();
            let effects = around.effects(level.as_ref(), &location.policy, &mut known);
            let expression = variables::expression(server, location, level.as_deref());
            let said = Extras { clients, expression, snippet: level, effects, ..Extras::NOTHING };
            self.spot(location, said, outgoing.unwrap_or_default(), watch, groups)
        });
        let spots = spots.collect();
        let served = served(server, &locations);
        let own = plan.as_ref().map_or(&[][..], |plan| &plan.own);
        let site = Site {
            owner: Site::owner_of(&server.locations),
            clients: server.client_certificate.as_ref().map(|asked| match asked {
                ClientCertificate::Closed(reason) => Clients::Closed(reason.clone()),
                ClientCertificate::Verified(asked) => {
                    Clients::Verified(self.verifiers.verifier(asked))
                }
            }),
            hosts: self.metrics.as_ref().map(|all| all.hosts(server)).unwrap_or_default(),
            locations: Locations::compile(&served).with_own(&served, own),
            server: served,
            spots,
            snippet: plan.map(|plan| Box::new(plan.of_site)),
        };
        (site, problems)
    }

    /// What the Ingress of a location asks of clients besides what the host does.
    fn clients_besides(&self, server: &Server, location: &Location) -> Option<Arc<Verifier>> {
        if matches!(location.backend, Backend::Denied(_)) {
            return None;
        }
        let own = location.policy.client_certificate.as_ref()?;
        match own {
            ClientCertificate::Verified(asked)
                if Some(own) != server.client_certificate.as_ref() =>
            {
                Some(self.verifiers.verifier(asked))
            }
            // The host is closed as a whole, then.
            ClientCertificate::Closed(_) | ClientCertificate::Verified(_) => None,
        }
    }

    fn spot(
        &self,
        location: &Arc<Location>,
        of_host: Extras,
        outgoing: Outgoing,
        watch_of_snippets: Watch,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Arc<Spot> {
        let (group, renamed) = match &location.backend {
            Backend::Upstream(id) => (Some(group(groups, id)), id.usual() != id.as_str()),
            Backend::NotFound | Backend::Denied(_) | Backend::Broken(_) => (None, false),
        };
        let policy = &location.policy;
        let rule = group.as_ref().and_then(|group| Rule::compile(&policy.balance, group));
        let canary = location.canary.as_ref().filter(|_| group.is_some());
        let canary = canary
            .map(|canary| Alternative::compile(canary, self::group(groups, &canary.upstream)));
        let errors = policy.errors.as_ref().filter(|errors| !errors.statuses.is_empty());
        let errors = errors.map(|errors| {
            let default = UpstreamId::new(DEFAULT_BACKEND);
            let ids = errors.backend.iter().chain([&default]);
            let groups = ids.map(|id| self::group(groups, id)).collect();
            Box::new(ErrorPages { errors: errors.clone(), groups })
        });
        let stand_in = policy.default_backend.as_ref();
        let stand_in = stand_in.map(|id| StandIn::new(&policy.balance, self::group(groups, id)));
        let told = if policy.route.is_some() { Told::of_route } else { Told::new };
        let cors = policy.cors.as_ref().map(|cors| self.told.get(cors, told));
        let mirrors = policy.route.iter().flat_map(|filters| &filters.mirrors);
        let mirrors = mirrors.map(|mirror| self::group(groups, &mirror.upstream)).collect();
        // A denied location is nothing but its 503 (compat/behaviour.md section 1).
        let custom_headers = match location.backend {
            Backend::Denied(_) => None,
            _ if policy.custom_headers.0.is_empty() => None,
            _ => Some(self.set_headers.get(&policy.custom_headers.0, SetHeaders::new)),
        };
        let span_name =
            policy.opentelemetry.as_ref().and_then(|traced| traced.operation_name.as_ref());
        let watch =
            Watch::of(policy.answer_rewrites.templates().chain(span_name)).or(watch_of_snippets);
        let gate = self.zones.gate(location);
        let alternative = location.canary.as_ref().map(|canary| &canary.upstream);
        let counted = self.metrics.as_ref().map(|all| all.location(location, alternative));
        let Outgoing { upstream_tls, mirror, authenticator, guard } = outgoing;
        let extras = Extras {
            rule,
            renamed,
            canary,
            upstream_tls,
            authenticator,
            guard,
            cors,
            errors,
            stand_in,
            mirror,
            mirrors,
            custom_headers,
            gate,
            ..of_host
        };
        Arc::new(Spot { location: location.clone(), group, watch, counted, extras: extras.boxed() })
    }

    /// Brings a group's endpoints up to date; locations keep the group they have.
    fn follow(
        &self,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
        id: &UpstreamId,
        configuration: &Configuration,
    ) {
        let Some(upstream) = configuration.upstreams.get(id) else {
            // No location names it any longer; requests that are on their way hold it themselves.
            if let Some(gone) = groups.remove(id) {
                gone.resolve(&Arc::default(), None, &self.resolver);
                gone.replace(Arc::new(Endpoints::default()));
            }
            return;
        };
        let group = group(groups, id);
        group.tell(&self.addresses);
        if let (true, Some((_, port))) = (self.asks_no_names, &upstream.external) {
            let ready = vec![SocketAddr::from(([192, 0, 2, 1], *port))];
            return group.replace(Arc::new(Endpoints { ready, draining: Vec::new() }));
        }
        group.resolve(&upstream.namespace, upstream.external.clone(), &self.resolver);
        if upstream.external.is_none() {
            group.replace(upstream.endpoints.clone());
        }
    }
}

/// Where settings are, how the upstream is spoken to there, and whether annotations rewrite nothing of answers.
type At = (*const Settings, Protocol, bool);

/// What annotations rewrite, and what settings do beside it.
type Done = (AnswerRewrites, Option<Arc<Effects>>);

/// What places of one server share with others that have the same settings of snippets.
#[derive(Debug, Default)]
struct Known {
    /// What they do. Of places where annotations rewrite answers it is that of the last one: paths of an Ingress stand
    /// together.
    effects: HashMap<At, Done>,
    /// What they ask of answers, by where they and their scope are.
    watches: HashMap<(*const Settings, Option<*const Scope>), Watch>,
}

impl Known {
    fn watch(&mut self, level: &Level) -> Watch {
        let key = (Arc::as_ptr(&level.settings), level.scope.as_ref().map(Arc::as_ptr));
        *self.watches.entry(key).or_insert_with(|| level.watch())
    }
}

/// How handshakes of a server that has changed differ from those of others.
fn tls_of(site: Option<&Site>) -> tls::Own {
    site.map(Site::own_tls).unwrap_or_default()
}

/// What heads are read by, as servers of their own and others say.
fn heads(global: &Global, own: Option<&OwnServers>, few: &Few) -> Heads {
    let own = own.into_iter().flat_map(OwnServers::sites);
    let said = own.filter_map(|site| site.own_heads()).chain(few.heads.values().copied());
    Heads::most_generous(global, said)
}

/// What stands around servers where snippets count.
#[derive(Debug)]
struct Around<'g> {
    http: Option<&'g GlobalScope>,
    /// What every server inherits of it.
    inherited: Option<Cow<'g, Settings>>,
    zones: DeclaredZones,
    tables: Arc<Tables>,
    global: &'g Global,
}

impl<'g> Around<'g> {
    fn of(global: &'g Global, zones: &Zones, before: &Generation) -> Self {
        let http = global.http_snippet.as_deref();
        let zones = http.map(|http| zones.declared(http)).unwrap_or_default();
        let tables = if global.http_snippet == before.global().http_snippet {
            before.tables.clone()
        } else {
            Arc::new(Tables::new(http.as_slice()))
        };
        let inherited = http.map(|http| of_http_level(&http.settings, global));
        Self { http, inherited, zones, tables, global }
    }

    /// The servers that are compiled: those that changed, and those for which something around them did.
    fn servers<'c>(
        &self,
        configuration: &'c Configuration,
        changes: &'c Changes,
        before: &Global,
    ) -> BTreeSet<&'c ServerName> {
        let differs = self.differs(before);
        if !differs {
            return changes.servers.iter().collect();
        }
        // What the http level says is inherited by every server.
        let everywhere = self.global.http_snippet != before.http_snippet;
        let is_around =
            |server: &Server| everywhere || Plan::counts(server, self.inherited.as_deref());
        let others = configuration.servers.iter().filter(|(_, server)| is_around(server));
        changes.servers.iter().chain(others.map(|(name, _)| name)).collect()
    }

    /// What the settings of snippets do at a place: the same at places that share them.
    fn effects(
        &self,
        level: Option<&Arc<Level>>,
        policy: &Policy,
        known: &mut Known,
    ) -> Option<Arc<Effects>> {
        let level = level?;
        let (all, within) = (&level.settings, level.within);
        let new = || Effects::new(all, within, policy, self.global, &self.zones).map(Arc::from);
        let rewrites = &policy.answer_rewrites;
        let none = *rewrites == AnswerRewrites::default();
        let key = (Arc::as_ptr(&level.settings), policy.protocol, none);
        if let Some((of, effects)) = known.effects.get(&key)
            && of == rewrites
        {
            return effects.clone();
        }
        let effects: Option<Arc<Effects>> = new();
        known.effects.insert(key, (rewrites.clone(), effects.clone()));
        effects
    }

    /// Whether what snippets stand on is other than before.
    fn differs(&self, before: &Global) -> bool {
        let now = self.global;
        now.http_snippet != before.http_snippet
            || now.real_ip != before.real_ip
            || now.proxy_protocol != before.proxy_protocol
            || now.compression != before.compression
            || now.nowhere != before.nowhere
            || inherits_other(self.http, now, before)
    }
}

/// The sites before, of those that change without their other names: one may move from one server to another, so first
/// all that was goes.
fn without_old_names(before: &Generation, changes: &Changes) -> Routes<Site> {
    let mut sites = before.sites.clone();
    for name in &changes.servers {
        let old = before.configuration.servers.get(name).map(|server| server.other_names());
        if let Some(names) = old.filter(|names| !names.is_empty()) {
            sites = sites.with_aliases(name, &names, None);
        }
    }
    sites
}

/// The locations, those denied that cannot be served, and the problems of their owners. One location never stands in
/// the way of others.
fn without_the_unservable<'l>(
    server: &ServerName,
    locations: &'l [Arc<Location>],
    all: &[Result<Outgoing, rustls::Error>],
) -> (Cow<'l, [Arc<Location>]>, Vec<Problem>) {
    if all.iter().all(Result::is_ok) {
        return (Cow::Borrowed(locations), Vec::new());
    }
    let mut problems = Vec::new();
    let locations = locations.iter().zip(all).map(|(location, outgoing)| {
        let Err(error) = outgoing else { return location.clone() };
        let reason = format!("TLS towards the upstream cannot be spoken as asked: {error}");
        problems.extend(location.origin.as_deref().cloned().map(|origin| Problem {
            origin,
            key: None,
            severity: Severity::Error,
            message: format!(
                "path {} of host {server}: {reason}; it answers 503: mend the Secret or the proxy-ssl settings",
                location.path
            )
            .into(),
        }));
        let backend = Backend::Denied(reason);
        Arc::new(Location { backend, canary: None, ..Location::clone(location) })
    });
    (locations.collect(), problems)
}

/// The server with its locations as they are served; the same one where that makes no difference.
fn served(server: &Arc<Server>, locations: &[Arc<Location>]) -> Arc<Server> {
    let locations = &locations[..server.locations.len()];
    if server.locations.iter().zip(locations).all(|(before, now)| Arc::ptr_eq(before, now)) {
        server.clone()
    } else {
        Arc::new(Server { locations: locations.to_vec(), ..Server::clone(server) })
    }
}

/// Whether anybody asks for numbers of connections: servers, or the templates of the process.
fn counts(global: &Global, own: Option<&OwnServers>, few: &Few, tables: &Tables) -> bool {
    let set = global.add_headers.iter().chain(&global.proxy_set_headers);
    let templates = set.map(|header| &*header.value).chain([&global.log_format.template]);
    !few.counting.is_empty()
        || own.into_iter().flat_map(OwnServers::sites).any(|site| site.counts())
        || variables::counts(templates, tables)
}

/// What the templates of the process ask for.
fn watch_of_all(global: &Global, tables: &Tables) -> Watch {
    let added = global.add_headers.iter().map(|header| &*header.value);
    let all = added.chain([&global.log_format.template]);
    let loggable = Part::Variable(Variable::OfSnippets("loggable".into()));
    let loggable = Template::from_parts(vec![loggable]);
    Watch::of(all.clone()).or(watch(all.chain([&loggable]), tables))
}

/// Keeps what is known under a name, or forgets it.
fn put<V: Clone>(all: &mut OrdMap<ServerName, V>, name: &ServerName, known: Option<V>) {
    match known {
        Some(known) => drop(all.insert(name.clone(), known)),
        None => drop(all.remove(name)),
    }
}

/// The group of an upstream, which may not have any endpoints yet.
fn group(groups: &mut OrdMap<UpstreamId, Arc<Group>>, id: &UpstreamId) -> Arc<Group> {
    groups
        .entry(id.clone())
        .or_insert_with(|| Arc::new(Group::new(id.clone(), Arc::default())))
        .clone()
}

#[cfg(test)]
mod tests {
    use super::{Compiler, served};
    use crate::generation::{Generation, Spot};
    use model::policy::{AuthExternal, CustomHeaders, Policy, Protocol, UpstreamTls};
    use model::{
        Backend, Changes, Configuration, Endpoints, Global, Kind, Location, Origin, PathKind,
        Server, ServerName, SetHeader, Steps, Template, TlsSettings, Upstream, UpstreamId, Url,
    };
    use std::sync::Arc;

    fn location(path: &str, policy: Policy) -> Arc<Location> {
        Arc::new(Location {
            path: path.to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::Upstream(UpstreamId::new("a")),
            canary: None,
            service: None,
            origin: Some(Origin::new(Kind::Ingress, "b", "x").into()),
            policy: Arc::new(policy),
        })
    }

    /// A host with a path of each policy, and an upstream with one endpoint.
    fn configuration(policies: Vec<Policy>, endpoint: &str) -> Configuration {
        let name = ServerName::new("a.test");
        let numbered = policies.into_iter().enumerate();
        let locations =
            numbered.map(|(number, policy)| location(&format!("/{number}"), policy)).collect();
        let server = Server { locations, ..Server::new(name.clone()) };
        let ready = vec![endpoint.parse().expect("an address")];
        let upstream = Upstream {
            id: UpstreamId::new("a"),
            endpoints: Arc::new(Endpoints { ready, draining: Vec::new() }),
            external: None,
            namespace: "b".into(),
        };
        Configuration {
            servers: [(name, Arc::new(server))].into_iter().collect(),
            upstreams: [(UpstreamId::new("a"), Arc::new(upstream))].into_iter().collect(),
            ..Configuration::default()
        }
    }

    fn after(
        compiler: &Compiler,
        before: &Generation,
        next: &Configuration,
    ) -> Result<Generation, rustls::Error> {
        compiler.next(before, next, &Changes::between(&before.configuration, next))
    }

    /// TLS that trusts something that is no certificate.
    fn broken() -> Policy {
        let authorities = [Arc::from(&[0x30, 3, 2, 1, 0][..])].into();
        let upstream_tls = UpstreamTls { verify: true, authorities, ..UpstreamTls::default() };
        Policy { protocol: Protocol::Https, upstream_tls, ..Policy::default() }
    }

    fn nothing(compiler: &Compiler) -> Generation {
        compiler.nothing(tls::never_shown().expect("a certificate")).expect("nothing is taken")
    }

    fn backends(generation: &Generation) -> Vec<Backend> {
        let site = generation.sites.find("a.test", &Steps::default());
        let site = site.expect("steps suffice").expect("a site");
        site.spots.iter().map(|spot| spot.location.backend.clone()).collect()
    }

    #[test]
    fn a_location_whose_tls_cannot_be_made_is_denied_and_told_of_and_others_are_served() {
        let compiler = Compiler::default();
        let nothing = nothing(&compiler);
        let next = configuration(vec![Policy::default(), broken()], "192.0.2.1:80");
        let generation = after(&compiler, &nothing, &next).expect("it is taken");
        let [good, bad] = &backends(&generation)[..] else { panic!("two locations") };
        assert_eq!(*good, Backend::Upstream(UpstreamId::new("a")));
        assert!(matches!(bad, Backend::Denied(_)), "{bad:?}");
        let problems: Vec<_> = generation.left_out.values().flatten().collect();
        let [problem] = problems[..] else { panic!("{problems:?}") };
        assert_eq!(problem.origin, Origin::new(Kind::Ingress, "b", "x"));
        assert!(problem.message.contains("/1 of host a.test"), "{problem}");
        let mended = configuration(vec![Policy::default(), Policy::default()], "192.0.2.1:80");
        let generation = after(&compiler, &generation, &mended).expect("it is taken");
        assert!(generation.left_out.is_empty());
    }

    #[test]
    fn places_share_what_is_compiled_of_what_they_share() {
        let value = Template::parse("1").expect("no variable").into();
        let header = SetHeader { name: "X-One".to_owned(), value };
        let url = Url {
            secure: false,
            authority: Template::parse("a.test").expect("no variable").into(),
            target: Template::parse("/$host").expect("a variable").into(),
            upstream: None,
        };
        let asked = AuthExternal {
            url,
            method: None,
            sign_in: None,
            response_headers: Vec::new(),
            request_headers: Vec::new(),
            request_redirect: None,
            always_set_cookie: false,
            cache: None,
            snippet: None,
        };
        let of_all = Policy {
            custom_headers: CustomHeaders([header].into()),
            auth_external: Some(asked.into()),
            ..Policy::default()
        };
        let own = Policy { relative_redirects: true, ..of_all.clone() };
        let compiler = Compiler::default();
        let nothing = nothing(&compiler);
        let next = configuration(vec![of_all, own], "192.0.2.1:80");
        let generation = after(&compiler, &nothing, &next).expect("it is taken");
        let site = generation.sites.find("a.test", &Steps::default());
        let site = site.expect("steps suffice").expect("a site");
        let [one, two] = &site.spots[..] else { panic!("two places") };
        let sets = |spot: &Spot| spot.extras().custom_headers.clone().expect("it sets some");
        assert!(sets(one).has(b"x-one") && Arc::ptr_eq(&sets(one), &sets(two)));
        let asks = |spot: &Spot| spot.extras().authenticator.clone().expect("it asks");
        let (one, two) = (asks(one), asks(two));
        assert!(Arc::ptr_eq(&one.policy, &two.policy) && Arc::ptr_eq(&one.id.1, &two.id.1));
    }

    /// There may be thousands of paths, and of hosts.
    #[test]
    fn places_share_what_is_compiled_of_snippets_that_they_share() {
        use model::policy::{AnswerRewrites, Replaced, Replacement};
        use snippet::{Context, understand};
        let text = "add_header X-A '$host$uri'; more_set_headers 'X-B: $host';";
        let server = understand(Context::Server, text).expect("it is understood").scope;
        let cookie = |path: &str| {
            let from = Replaced::Text(Template::parse("/a").expect("no variable"));
            let to = Template::parse(path).expect("no variable").into();
            let answer_rewrites = AnswerRewrites {
                cookie_path: Some(Replacement { from, to }),
                ..AnswerRewrites::default()
            };
            Policy { answer_rewrites, ..Policy::default() }
        };
        let policies = vec![cookie("/b"), cookie("/b"), cookie("/c"), Policy::default()];
        let mut next = configuration(policies, "192.0.2.1:80");
        let (name, host) = next.servers.iter().next().expect("a server");
        let (name, mut host) = (name.clone(), Server::clone(host));
        host.snippet = Some(Arc::new(server));
        next.servers.insert(name, Arc::new(host));
        let compiler = Compiler::default();
        let generation = after(&compiler, &nothing(&compiler), &next).expect("it is taken");
        let site = generation.sites.find("a.test", &Steps::default());
        let site = site.expect("steps suffice").expect("a site");
        let effects = |at: usize| site.spots[at].extras().effects.clone().expect("it has some");
        assert!(Arc::ptr_eq(&effects(0), &effects(1)) && !Arc::ptr_eq(&effects(1), &effects(2)));
        let level = |at: usize| site.spots[at].extras().snippet.clone().expect("it has one");
        assert!(Arc::ptr_eq(&level(0).settings, &level(3).settings));
        let add = |at: usize| level(at).settings.headers.add[0].value.pieces.clone();
        let said = &site.server.snippet.as_ref().expect("it has one").settings.headers.add[0];
        assert!(Arc::ptr_eq(&add(0), &said.value.pieces), "texts are never copied");
    }

    #[test]
    fn a_location_of_an_own_server_whose_tls_cannot_be_made_is_told_to_who_wrote_it() {
        use snippet::{Context, understand};
        let text = "map $uri $x { default 1; }\n  server { listen 8080; location /a {
            proxy_pass https://s.b.svc.cluster.local; proxy_ssl_protocols TLSv1.2; } }";
        let mut http = understand(Context::Http, text).expect("it is understood").http;
        http.origin = Some(Origin::new(Kind::ConfigMap, "b", "all"));
        // Nothing that a text can say any more.
        let inside = &mut http.servers[0].scope.locations[0].scope;
        inside.settings.proxy.tls.protocols = Some(vec!["TLSv1".to_owned()]);
        let next = Configuration {
            global: Arc::new(Global { http_snippet: Some(Arc::new(http)), ..Global::default() }),
            ..Configuration::default()
        };
        let compiler = Compiler::default();
        let nothing = nothing(&compiler);
        let generation = after(&compiler, &nothing, &next).expect("it is taken");
        let problems: Vec<_> = generation.problems().map(ToString::to_string).collect();
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let start = "ConfigMap b/all: http-snippet: line 2, column 3: location /a of this server: no version of TLS";
        assert!(problem.starts_with(start), "{problem}");
    }

    #[test]
    fn a_refusal_leaves_endpoints_as_they_were() {
        let compiler = Compiler::default();
        let nothing = nothing(&compiler);
        let first = configuration(vec![Policy::default()], "192.0.2.1:80");
        let before = after(&compiler, &nothing, &first).expect("it is taken");
        let mut next = configuration(vec![Policy::default()], "192.0.2.2:80");
        // No version of TLS at all: nothing that objects can ask for, but the engine has to refuse it.
        let tls = TlsSettings { versions: Default::default(), ..TlsSettings::default() };
        next.global = Arc::new(Global { tls, ..Global::default() });
        assert!(after(&compiler, &before, &next).is_err());
        let group = before.groups.get(&UpstreamId::new("a")).expect("a group");
        assert_eq!(group.endpoints().ready, ["192.0.2.1:80".parse().expect("an address")]);
    }

    #[test]
    fn a_server_without_a_mistake_is_shared_and_not_copied() {
        let server = Arc::new(Server::new(ServerName::new("a.test")));
        assert!(Arc::ptr_eq(&served(&server, &[]), &server));
    }
}
