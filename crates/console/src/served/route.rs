//! A route: where requests or connections come in, whose it is, and what is behind it.

use crate::query::{shown, told};
use crate::sample::{Live, Sample, SampleKey};
use model::policy::ClientCertificate;
use model::{
    Backend, Configuration, Endpoints, Location, Origin, PathKind, RouteHost, RouteKey, Server,
    StreamPort, UpstreamId,
};
use std::sync::Arc;

/// Where requests or connections come in.
pub(crate) enum Place {
    /// A path of a host of Ingresses.
    Ingress { server: Arc<Server> },
    /// A rule of a host of Gateways.
    Rule { key: RouteKey, host: Arc<RouteHost>, rule: usize },
    /// A host of a listener whose connections are carried on.
    Tls(RouteKey),
    /// A port of TCP or UDP.
    Port(StreamPort),
}

/// A line of the list.
pub(crate) struct Route {
    pub(crate) place: Place,
    /// The host; or the port, as `9000/tcp`.
    pub(crate) host: Arc<str>,
    /// What answers there; none where connections are carried on.
    pub(crate) location: Option<Arc<Location>>,
    /// Whose it is, if not the ConfigMap's.
    pub(crate) origin: Option<Origin>,
    /// Where its requests go.
    pub(crate) backend: String,
    /// Its part of the requests, and all parts together.
    pub(crate) weight: Option<(u32, u64)>,
    /// What tells it from others of the same host and path; none for a path of an Ingress.
    pub(crate) id: Option<String>,
    /// What its requests are counted under; none where none are.
    pub(crate) spot: Option<SampleKey>,
    /// Who is behind it; its canary comes last.
    pub(super) endpoints: Vec<Arc<Endpoints>>,
    has_canary: bool,
    /// How many endpoints are ready, and how many only finish what they have; the canary's do not count.
    pub(crate) ready: usize,
    pub(crate) draining: usize,
    /// A name that is resolved instead.
    pub(crate) external: Option<String>,
    /// All that a search looks at besides addresses, in small letters.
    pub(super) text: String,
}

impl Route {
    /// A path of a host of Ingresses.
    pub(super) fn of_ingress(
        server: &Arc<Server>,
        location: &Arc<Location>,
        serving: &Configuration,
    ) -> Self {
        let place = Place::Ingress { server: server.clone() };
        let mut route = Self::at(place, server.name.as_str().into());
        route.answered_by(location, serving);
        // Whoever is behind it, nobody gets there.
        if let Some(ClientCertificate::Closed(reason)) = &server.client_certificate {
            route.backend = told(format_args!("403: {reason}"));
        }
        let certificate = server.certificate.as_ref().map(ToString::to_string);
        route.searched(certificate.as_deref().unwrap_or_default());
        route
    }

    /// A route that leads nowhere so far.
    pub(super) fn at(place: Place, host: Arc<str>) -> Self {
        Self {
            place,
            host,
            location: None,
            origin: None,
            backend: String::new(),
            weight: None,
            id: None,
            spot: None,
            endpoints: Vec::new(),
            has_canary: false,
            ready: 0,
            draining: 0,
            external: None,
            text: String::new(),
        }
    }

    /// A location answers.
    pub(super) fn answered_by(&mut self, location: &Arc<Location>, serving: &Configuration) {
        let origin = location.origin.as_deref();
        let service = location.service.as_deref();
        let namespace = origin
            .map(|origin| &origin.namespace)
            .or_else(|| service.map(|service| &service.namespace));
        self.spot = Some(SampleKey {
            host: Some(self.host.clone()),
            namespace: namespace.cloned().unwrap_or_default(),
            ingress: origin.map(|origin| origin.name.clone()).unwrap_or_default(),
            path: location.path.as_str().into(),
            service: service.map(|service| service.name.clone()).unwrap_or_default(),
        });
        self.origin = origin.cloned();
        self.backend = backend(location);
        self.location = Some(location.clone());
        if let Backend::Upstream(id) = &location.backend {
            self.leads_to(id, serving);
        }
        let canary = location.canary.as_ref().and_then(|one| serving.upstreams.get(&one.upstream));
        self.has_canary = canary.is_some();
        self.endpoints.extend(canary.map(|upstream| upstream.endpoints.clone()));
    }

    /// An upstream is behind it.
    pub(super) fn leads_to(&mut self, id: &UpstreamId, serving: &Configuration) {
        let Some(upstream) = serving.upstreams.get(id) else { return };
        self.external = upstream.external.as_ref().map(external);
        self.has_behind(&upstream.endpoints);
    }

    pub(super) fn has_behind(&mut self, endpoints: &Arc<Endpoints>) {
        self.ready += endpoints.ready.len();
        self.draining += endpoints.draining.len();
        self.endpoints.push(endpoints.clone());
    }

    /// From now on it can be found, by these words, too.
    pub(super) fn searched(&mut self, more: &str) {
        let origin = self.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        let service = self.location.as_ref().and_then(|location| location.service.as_deref());
        let service = service.map(|service| format!("{}/{}", service.namespace, service.name));
        let text = format!(
            "{}{} {origin} {} {} {more}",
            self.host,
            self.path(),
            service.unwrap_or_default(),
            self.backend,
        );
        self.text = text.to_lowercase();
    }

    /// Whether a word is in it.
    pub(super) fn has(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// Who is behind it but for its canary.
    pub(crate) fn own_endpoints(&self) -> &[Arc<Endpoints>] {
        let canary = usize::from(self.has_canary);
        &self.endpoints[..self.endpoints.len().saturating_sub(canary)]
    }

    /// How it goes.
    pub(crate) fn live(&self, sample: &Sample) -> Live {
        match (&self.spot, &self.place) {
            (Some(spot), _) => sample.at(spot),
            (None, Place::Port(port)) => sample.at_port(port),
            (None, _) => Live::default(),
        }
    }

    /// Whether it is the `/` of a host that no Ingress has written.
    pub(crate) fn is_of_host(&self) -> bool {
        self.location.as_ref().is_some_and(|location| location.is_of_host())
    }

    /// The path, as its object has it.
    pub(crate) fn path(&self) -> &str {
        self.location.as_ref().map(|location| location.path.as_str()).unwrap_or_default()
    }

    /// How the path is meant.
    pub(crate) fn kind(&self) -> Option<PathKind> {
        self.location.as_ref().map(|location| location.kind)
    }
}

/// A name that is resolved.
pub(super) fn external((host, port): &(String, u16)) -> String {
    shown(format_args!("{host}:{port}"))
}

/// Where requests go, in one word.
pub(crate) fn backend(location: &Location) -> String {
    match &location.backend {
        Backend::Upstream(id) => shown(id),
        Backend::NotFound => "404".to_owned(),
        Backend::Denied(reason) => told(format_args!("503: {reason}")),
        Backend::Broken(reason) => told(format_args!("500: {reason}")),
    }
}
