//! The routes that are served, as one list that can be searched and sorted.

use crate::lock::lock;
use crate::query::{shown, told};
use crate::sample::SampleKey;
use controller::Known;
use model::{Backend, Location, Server};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// Addresses of an upstream that a search finds.
const ADDRESSES: usize = 32;

/// What is served at one moment.
pub(crate) struct Served {
    known: Arc<Known>,
    /// In the order of hosts, then as the host has them.
    pub(crate) routes: Vec<Route>,
}

/// The routes of what is known, worked out once for all who ask.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Arc<Served>>>);

/// A path of a host.
pub(crate) struct Route {
    pub(crate) server: Arc<Server>,
    pub(crate) location: Arc<Location>,
    pub(crate) spot: SampleKey,
    /// How many endpoints are ready, and how many only finish what they have.
    pub(crate) ready: usize,
    pub(crate) draining: usize,
    /// A name that is resolved instead.
    pub(crate) external: Option<String>,
    /// All that a search looks at, in small letters.
    text: String,
}

impl Kept {
    pub(crate) fn of(&self, known: &Arc<Known>) -> Arc<Served> {
        let mut kept = lock(&self.0);
        match kept.as_ref().filter(|served| Arc::ptr_eq(&served.known, known)) {
            Some(served) => served.clone(),
            None => kept.insert(Arc::new(Served::new(known.clone()))).clone(),
        }
    }

    pub(crate) fn forget(&self) {
        *lock(&self.0) = None;
    }
}

impl Served {
    fn new(known: Arc<Known>) -> Self {
        let servers = known.serving.servers.values();
        let routes = servers.flat_map(|server| {
            let of = |location: &Arc<Location>| Route::new(server, location, &known);
            server.locations.iter().map(of).collect::<Vec<_>>()
        });
        Self { routes: routes.collect(), known: known.clone() }
    }

    /// Those in which all words are found.
    pub(crate) fn found(&self, words: &[String]) -> impl Iterator<Item = &Route> {
        let has = |route: &&Route| words.iter().all(|word| route.text.contains(word.as_str()));
        self.routes.iter().filter(has)
    }
}

impl Route {
    fn new(server: &Arc<Server>, location: &Arc<Location>, known: &Known) -> Self {
        let upstream = match &location.backend {
            Backend::Upstream(id) => known.serving.upstreams.get(id),
            Backend::NotFound | Backend::Denied(_) | Backend::Broken(_) => None,
        };
        let endpoints = upstream.map(|upstream| upstream.endpoints.clone()).unwrap_or_default();
        let external = upstream.and_then(|upstream| upstream.external.as_ref());
        let origin = location.origin.as_ref();
        let service = location.service.as_ref();
        let namespace = origin
            .map(|origin| &origin.namespace)
            .or_else(|| service.map(|service| &service.namespace));
        let spot = SampleKey {
            host: Some(server.name.as_str().into()),
            namespace: namespace.cloned().unwrap_or_default(),
            ingress: origin.map(|origin| origin.name.clone()).unwrap_or_default(),
            path: location.path.as_str().into(),
            service: service.map(|service| service.name.clone()).unwrap_or_default(),
        };
        let mut text = format!(
            "{}{} {}/{} {}/{} {}",
            server.name,
            location.path,
            spot.namespace,
            spot.ingress,
            spot.namespace,
            spot.service,
            backend(location)
        );
        if let Some(certificate) = &server.certificate {
            let _ = write!(text, " {certificate}");
        }
        for address in endpoints.ready.iter().chain(&endpoints.draining).take(ADDRESSES) {
            let _ = write!(text, " {address}");
        }
        Self {
            server: server.clone(),
            location: location.clone(),
            spot,
            ready: endpoints.ready.len(),
            draining: endpoints.draining.len(),
            external: external.map(|(host, port)| shown(format_args!("{host}:{port}"))),
            text: text.to_lowercase(),
        }
    }
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
