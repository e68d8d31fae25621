//! A random walk over Configurations: the same seed, the same walk. What changes is in `pushed` and `reloaded`.

use super::allowed::is_broken;
use super::{pushed, reloaded, upstream};
use fastrand::Rng;
use model::policy::{Policy, Raw, TlsRedirect};
use model::{
    Backend, Certificate, CertificateId, Configuration, Endpoints, Global, Kind, Location,
    LogTarget, Logs, Origin, PathKind, PrivateKey, Server, ServerName, Upstream, UpstreamId,
};
use rcgen::{CertificateParams, KeyPair};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Hosts that are always there, those that come and go, and names that may lead to one of the first.
pub(super) const STEADY: [&str; 5] = ["h0.test", "h1.test", "h2.test", "h3.test", "h4.test"];
pub(super) const PASSING: [&str; 3] = ["v0.test", "v1.test", "v2.test"];
pub(super) const ALIASES: [&str; 3] = ["a0.test", "a1.test", "a2.test"];
/// Upstreams that locations share.
pub(super) const SPARE: [&str; 3] = ["demo-spare0-80", "demo-spare1-80", "demo-spare2-80"];
/// How long workers that leave may finish what they have.
pub(super) const SHUTDOWN: Duration = Duration::from_secs(10);
/// Endpoints and certificates to choose from.
const ENDPOINTS: usize = 5;
const CERTIFICATES: usize = 8;

/// A step of the walk.
pub(super) type Step = (&'static str, fn(&mut World));

/// Where the walk has got to.
pub(super) struct World {
    pub rng: Rng,
    pub configuration: Configuration,
    pub endpoints: Vec<SocketAddr>,
    /// Chain and key.
    pub pool: Vec<(Vec<u8>, Vec<u8>)>,
    /// Never the same twice.
    pub number: u32,
}

impl World {
    /// The beginning: the steady hosts, each with an upstream of its own.
    pub(super) fn new(seed: u64, log: &Path) -> Self {
        let endpoints = (0..ENDPOINTS).map(|_| upstream::start()).collect();
        let pool = (0..CERTIFICATES).map(|_| issue()).collect();
        let error = LogTarget::File(log.display().to_string());
        let global = Global {
            access_log: false,
            shutdown_timeout: SHUTDOWN,
            logs: Logs { error, ..Logs::default() },
            ..Global::default()
        };
        let configuration = Configuration { global: Arc::new(global), ..Configuration::default() };
        let rng = Rng::with_seed(seed);
        let mut world = Self { rng, configuration, endpoints, pool, number: 0 };
        let rest = Location {
            backend: Backend::NotFound,
            origin: None,
            ..location("_", "/", UpstreamId::new(""))
        };
        let rest =
            Server { locations: vec![Arc::new(rest)], ..Server::new(ServerName::catch_all()) };
        world.configuration.servers.insert(rest.name.clone(), Arc::new(rest));
        for host in STEADY {
            world.add_host(host);
        }
        for id in SPARE {
            world.set_endpoints(&UpstreamId::new(id), |endpoints, all, _| {
                endpoints.ready = all[..2].to_vec();
            });
        }
        world
    }

    /// All names that clients ask for: those of the steady hosts, and others, of which the last is nobody's.
    pub(super) fn names() -> [Vec<String>; 2] {
        let other = PASSING.iter().chain(&ALIASES).chain(&["nobody.test"]);
        [STEADY.map(str::to_owned).to_vec(), other.map(ToString::to_string).collect()]
    }

    /// Goes on, and says how.
    pub(super) fn step(&mut self) -> &'static str {
        let kinds = [pushed::KINDS, reloaded::KINDS].concat();
        let before = self.configuration.clone();
        loop {
            let (name, change) = kinds[self.rng.usize(..kinds.len())];
            change(self);
            if self.configuration != before {
                return name;
            }
        }
    }

    pub(super) fn fresh(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// For what would hide other things if there were much of it.
    pub(super) fn rarely(&mut self) -> bool {
        self.rng.u8(..4) == 0
    }

    pub(super) fn any<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(..of.len())].clone()
    }

    pub(super) fn add_host(&mut self, host: &str) {
        let id = UpstreamId::new(format!("demo-{host}-80"));
        self.set_endpoints(&id, |endpoints, all, _| endpoints.ready = all[..2].to_vec());
        let name = ServerName::new(host);
        let locations = vec![Arc::new(location(host, "/", id))];
        let server = Server { locations, ..Server::new(name.clone()) };
        self.configuration.servers.insert(name, Arc::new(server));
    }

    /// Changes the endpoints of an upstream, which is made if there is none.
    pub(super) fn set_endpoints(
        &mut self,
        id: &UpstreamId,
        change: impl FnOnce(&mut Endpoints, &[SocketAddr], &mut Rng),
    ) {
        let before = self.configuration.upstreams.get(id).map(|upstream| &upstream.endpoints);
        let mut endpoints = before.map(|endpoints| Endpoints::clone(endpoints)).unwrap_or_default();
        change(&mut endpoints, &self.endpoints, &mut self.rng);
        let upstream = Upstream {
            id: id.clone(),
            endpoints: Arc::new(endpoints),
            external: None,
            namespace: "".into(),
        };
        self.configuration.upstreams.insert(id.clone(), Arc::new(upstream));
    }

    pub(super) fn any_upstream(&mut self) -> UpstreamId {
        let ids: Vec<_> = self.configuration.upstreams.keys().cloned().collect();
        self.any(&ids)
    }

    /// The hosts that there are.
    pub(super) fn hosts(&self) -> Vec<ServerName> {
        let names = self.configuration.servers.keys();
        names.filter(|name| **name != ServerName::catch_all()).cloned().collect()
    }

    /// Changes some server.
    pub(super) fn edit_server(&mut self, change: impl FnOnce(&mut Server, &mut Self)) {
        let names = self.hosts();
        let name = self.any(&names);
        let mut server = Server::clone(&self.configuration.servers[&name]);
        change(&mut server, self);
        self.configuration.servers.insert(name, Arc::new(server));
    }

    /// Changes some location that nginx takes.
    pub(super) fn edit_location(&mut self, change: impl FnOnce(&mut Location, &mut Self)) {
        self.edit_server(|server, world| {
            let index = world.rng.usize(..server.locations.len());
            let mut location = Location::clone(&server.locations[index]);
            if !is_broken(&location) {
                change(&mut location, world);
                server.locations[index] = Arc::new(location);
            }
        });
    }

    pub(super) fn edit_policy(&mut self, change: impl FnOnce(&mut Policy, &mut Self)) {
        self.edit_location(|location, world| {
            let mut policy = Policy::clone(&location.policy);
            change(&mut policy, world);
            location.policy = Arc::new(policy);
        });
    }

    pub(super) fn edit_global(&mut self, change: impl FnOnce(&mut Global, &mut Self)) {
        let mut global = Global::clone(&self.configuration.global);
        change(&mut global, self);
        self.configuration.global = Arc::new(global);
    }

    /// Puts some certificate of the pool under an id.
    pub(super) fn hold(&mut self, id: &CertificateId) {
        let (chain, key) = self.pool[self.rng.usize(..self.pool.len())].clone();
        let certificate = Certificate {
            id: id.clone(),
            chain: vec![chain],
            key: PrivateKey(key),
            names: vec!["*.test".to_owned()].into(),
            not_after: 0,
        };
        self.configuration.certificates.insert(id.clone(), Arc::new(certificate));
    }
}

/// A path of an Ingress of its own.
pub(super) fn location(host: &str, path: &str, id: UpstreamId) -> Location {
    let policy = Policy { tls_redirect: TlsRedirect::NEVER, ..Policy::default() };
    Location {
        path: path.to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend: Backend::Upstream(id),
        canary: None,
        service: None,
        origin: Some(Origin::new(Kind::Ingress, "demo", format!("{host}{path}")).into()),
        policy: Arc::new(policy),
    }
}

/// A policy that says something in nginx's words.
pub(super) fn raw(text: &str) -> Option<Box<Raw>> {
    Some(Box::new(Raw { configuration: Some(text.to_owned().into()), ..Raw::default() }))
}

fn issue() -> (Vec<u8>, Vec<u8>) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["*.test".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.der().to_vec(), key.serialize_der())
}
