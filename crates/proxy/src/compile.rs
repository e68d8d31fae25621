//! From a Configuration to the next Generation: only what differs is compiled again.

use crate::answer::Watch;
use crate::authenticator::Authenticator;
use crate::generation::{Clients, Generation, Site, Spot};
use crate::limits::Zones;
use crate::phases::cors::Told;
use crate::phases::errors::ErrorPages;
use crate::phases::mirror::Copies;
use crate::set_headers::SetHeaders;
use crate::telemetry::{OtlpEnvironment, Spans, Tracer, Tracing};
use crate::tls::{Certificates, Profiles, TlsFront, Verifier, Verifiers};
use crate::upstream::{Alternative, Destination, Group, Rule};
use imbl::OrdMap;
use model::policy::{ClientCertificate, Mirror, Protocol};
use model::{
    Backend, Changes, Configuration, Endpoints, Global, Location, Server, ServerName, UpstreamId,
};
use request_metrics::Metrics;
use route::{Locations, Routes};
use std::sync::Arc;
use stream::Resolver;

/// The upstream of `--default-backend-service`, which answers in place of errors where no other one does.
const DEFAULT_BACKEND: &str = "upstream-default-backend";

/// What outlives generations and is needed to make them.
#[derive(Debug, Default)]
pub struct Compiler {
    profiles: Profiles,
    verifiers: Verifiers,
    zones: Zones,
    resolver: Arc<Resolver>,
    /// Where requests are counted, if they are.
    pub metrics: Option<Arc<Metrics>>,
    tracing: Tracing,
}

impl Compiler {
    /// The generation before the first: it serves nothing.
    pub fn nothing(&self) -> Result<Generation, Box<dyn std::error::Error + Send + Sync>> {
        let configuration = Configuration::default();
        let certificates = Certificates::new(Arc::new(crate::tls::self_signed()?));
        let front = TlsFront::new(&configuration.global, certificates.clone())?;
        let (sites, groups) = (Routes::default(), OrdMap::new());
        Ok(Generation {
            number: 0,
            configuration,
            sites,
            certificates,
            front,
            groups,
            passthrough: OrdMap::new(),
            answer_headers: SetHeaders::default(),
            request_headers: SetHeaders::default(),
            watch: Watch::default(),
            tracer: self.tracing.tracer(&Global::default().telemetry),
        })
    }

    /// The generation after `before`.
    pub fn next(
        &self,
        before: &Generation,
        configuration: &Configuration,
        changes: &Changes,
    ) -> Result<Generation, rustls::Error> {
        let certificates = before.certificates.follow(configuration, changes);
        let mut groups = before.groups.clone();
        for id in &changes.upstreams {
            self.follow(&mut groups, id, configuration);
        }
        let mut sites = before.sites.clone();
        // A name may move from one server to another: first all that was goes.
        for name in &changes.servers {
            let old = before.configuration.servers.get(name).map(|server| server.other_names());
            if let Some(names) = old.filter(|names| !names.is_empty()) {
                sites = sites.with_aliases(name, &names, None);
            }
        }
        let mut passthrough = before.passthrough.clone();
        let mut changed = Vec::with_capacity(changes.servers.len());
        for name in &changes.servers {
            let server = configuration.servers.get(name);
            match server.and_then(|server| server.passthrough.as_ref()) {
                Some(id) => drop(passthrough.insert(name.clone(), group(&mut groups, id))),
                None => drop(passthrough.remove(name)),
            }
            let site = server.map(|server| self.site(server, &mut groups)).transpose()?;
            let site = site.map(Arc::new);
            sites = sites.with(name, site.clone());
            let names = server.map(|server| server.other_names()).unwrap_or_default();
            if !names.is_empty() {
                sites = sites.with_aliases(name, &names, site.as_ref());
            }
            changed.push((name.clone(), site));
        }
        let front = before.front.follow(&configuration.global, &certificates, &changed)?;
        Ok(Generation {
            number: before.number + 1,
            configuration: configuration.clone(),
            sites,
            certificates,
            front,
            answer_headers: SetHeaders::new(&configuration.global.add_headers),
            request_headers: SetHeaders::new(&configuration.global.proxy_set_headers),
            watch: watch_of_all(&configuration.global),
            tracer: self.tracer(before, &configuration.global),
            groups,
            passthrough,
        })
    }

    /// The tracer before, unless its settings have changed: what waits in it is sent, either way.
    fn tracer(&self, before: &Generation, global: &Global) -> Arc<Tracer> {
        match before.number > 0 && before.global().telemetry == global.telemetry {
            true => before.tracer.clone(),
            false => self.tracing.tracer(&global.telemetry),
        }
    }

    /// Says what the environment knows about collectors; before the first generation.
    pub fn locate_collector(&self, environment: OtlpEnvironment) {
        // Who comes second is too late.
        let _ = self.tracing.environment.set(environment);
    }

    /// What became of spans since the process started.
    pub fn spans(&self) -> Spans {
        self.tracing.counts.now()
    }

    fn site(
        &self,
        server: &Arc<Server>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Result<Site, rustls::Error> {
        let spots = server.locations.iter().map(|location| {
            let clients = self.clients_besides(server, location);
            self.spot(&server.name, location, groups).map(|spot| Spot { clients, ..spot })
        });
        Ok(Site {
            clients: server.client_certificate.as_ref().map(|asked| match asked {
                ClientCertificate::Closed(reason) => Clients::Closed(reason.clone()),
                ClientCertificate::Verified(asked) => {
                    Clients::Verified(self.verifiers.verifier(asked))
                }
            }),
            hosts: self.metrics.as_ref().map(|all| all.hosts(server)).unwrap_or_default(),
            server: server.clone(),
            locations: Locations::compile(server),
            spots: spots.collect::<Result<_, _>>()?,
        })
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
        server: &ServerName,
        location: &Arc<Location>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Result<Spot, rustls::Error> {
        let group = match &location.backend {
            Backend::Upstream(id) => Some(group(groups, id)),
            Backend::NotFound | Backend::Denied(_) => None,
        };
        let policy = &location.policy;
        let rule = group.as_ref().and_then(|group| Rule::compile(&policy.balance, group));
        let canary = location.canary.as_ref().filter(|_| group.is_some());
        let canary = canary
            .map(|canary| Alternative::compile(canary, self::group(groups, &canary.upstream)));
        let upstream_tls = match policy.protocol {
            Protocol::Http | Protocol::Grpc | Protocol::Fcgi => None,
            Protocol::Https | Protocol::AutoHttp => {
                Some(self.profiles.profile(&policy.upstream_tls, false)?)
            }
            Protocol::Grpcs => Some(self.profiles.profile(&policy.upstream_tls, true)?),
        };
        let errors = policy.errors.as_ref().map(|errors| {
            let default = UpstreamId::new(DEFAULT_BACKEND);
            let ids = errors.backend.iter().chain([&default]);
            let groups = ids.map(|id| self::group(groups, id)).collect();
            Box::new(ErrorPages { errors: errors.clone(), groups })
        });
        let stand_in = policy.default_backend.as_ref().map(|id| self::group(groups, id));
        let mirror = policy.mirror.as_ref().map(|mirror| self.copies(mirror, groups));
        let mirror = mirror.transpose()?.map(Box::new);
        let cors = policy.cors.as_ref().map(Told::new);
        // A denied location is nothing but its 503 (compat/behaviour.md section 1).
        let custom_headers = match location.backend {
            Backend::Denied(_) => SetHeaders::default(),
            _ => SetHeaders::new(&policy.custom_headers.0),
        };
        let span_name =
            policy.opentelemetry.as_ref().and_then(|traced| traced.operation_name.as_ref());
        let watch = Watch::of(policy.answer_rewrites.templates().chain(span_name));
        if let Some(id) =
            policy.auth_external.as_ref().and_then(|asked| asked.url.upstream.as_ref())
        {
            self::group(groups, id);
        }
        let authenticator = Authenticator::new(server, location, groups, &self.profiles)?;
        let gate = self.zones.gate(location);
        let alternative = location.canary.as_ref().map(|canary| &canary.upstream);
        let counted = self.metrics.as_ref().map(|all| all.location(location, alternative));
        Ok(Spot {
            location: location.clone(),
            group,
            clients: None,
            rule,
            canary,
            upstream_tls,
            authenticator,
            cors,
            errors,
            stand_in,
            mirror,
            custom_headers,
            watch,
            gate,
            counted,
        })
    }

    fn copies(
        &self,
        mirror: &Mirror,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Result<Copies, rustls::Error> {
        if let Some(id) = &mirror.url.upstream {
            group(groups, id);
        }
        let destination = Destination::new(&mirror.url, groups, &self.profiles)?;
        Ok(Copies { mirror: mirror.clone(), destination: Arc::new(destination) })
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
                gone.resolve(None, &self.resolver);
                gone.replace(Arc::new(Endpoints::default()));
            }
            return;
        };
        let group = group(groups, id);
        match &upstream.external {
            None => {
                group.resolve(None, &self.resolver);
                group.replace(upstream.endpoints.clone());
            }
            Some(external) => group.resolve(Some(external.clone()), &self.resolver),
        }
    }
}

/// What the templates of the process ask for.
fn watch_of_all(global: &Global) -> Watch {
    let added = global.add_headers.iter().map(|header| &header.value);
    Watch::of(added.chain([&global.log_format.template]))
}

/// The group of an upstream, which may not have any endpoints yet.
fn group(groups: &mut OrdMap<UpstreamId, Arc<Group>>, id: &UpstreamId) -> Arc<Group> {
    groups
        .entry(id.clone())
        .or_insert_with(|| Arc::new(Group::new(id.clone(), Arc::default())))
        .clone()
}
