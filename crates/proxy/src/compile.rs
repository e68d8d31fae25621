//! From a Configuration to the next Generation: only what differs is compiled again.

use crate::authenticator::Authenticator;
use crate::generation::{Clients, Generation, Site, Spot};
use crate::phases::cors::Told;
use crate::tls::{Certificates, Profiles, TlsFront, Verifier, Verifiers};
use crate::upstream::{Alternative, Group, Resolver, Rule};
use imbl::OrdMap;
use model::policy::{ClientCertificate, Protocol};
use model::{Backend, Changes, Configuration, Endpoints, Location, Server, ServerName, UpstreamId};
use route::{Locations, Routes};
use std::sync::Arc;

/// What outlives generations and is needed to make them.
#[derive(Debug, Default)]
pub struct Compiler {
    profiles: Profiles,
    verifiers: Verifiers,
    resolver: Arc<Resolver>,
}

impl Compiler {
    /// The generation before the first: it serves nothing.
    pub fn nothing(&self) -> Result<Generation, Box<dyn std::error::Error + Send + Sync>> {
        let configuration = Configuration::default();
        let certificates = Certificates::new(Arc::new(crate::tls::self_signed()?));
        let front = TlsFront::new(&configuration.global, certificates.clone())?;
        let (sites, groups) = (Routes::default(), OrdMap::new());
        Ok(Generation { number: 0, configuration, sites, certificates, front, groups })
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
        let mut changed = Vec::with_capacity(changes.servers.len());
        for name in &changes.servers {
            let server = configuration.servers.get(name);
            let site = server.map(|server| self.site(server, &mut groups)).transpose()?;
            let site = site.map(Arc::new);
            sites = sites.with(name, site.clone());
            changed.push((name.clone(), site));
        }
        let front = before.front.follow(&configuration.global, &certificates, &changed)?;
        Ok(Generation {
            number: before.number + 1,
            configuration: configuration.clone(),
            sites,
            certificates,
            front,
            groups,
        })
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
        let cors = policy.cors.as_ref().map(Told::new);
        if let Some(id) =
            policy.auth_external.as_ref().and_then(|asked| asked.url.upstream.as_ref())
        {
            self::group(groups, id);
        }
        let authenticator = Authenticator::new(server, location, groups, &self.profiles)?;
        let location = location.clone();
        Ok(Spot { location, group, clients: None, rule, canary, upstream_tls, authenticator, cors })
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

/// The group of an upstream, which may not have any endpoints yet.
fn group(groups: &mut OrdMap<UpstreamId, Arc<Group>>, id: &UpstreamId) -> Arc<Group> {
    groups
        .entry(id.clone())
        .or_insert_with(|| Arc::new(Group::new(id.clone(), Arc::default())))
        .clone()
}
