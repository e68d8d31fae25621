//! Counts what nginx's workers measured under the same labels as the native engine.

use crate::measurements::Measurement;
use model::{Configuration, Kind, Location, Server, ServerName};
use parking_lot::Mutex;
use request_metrics::{Counted, Counter, Metrics, Name, Observed, Request, Settings};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Requests of one worker and second at most, unless more are asked for (`--monitor-max-batch-size`).
pub(crate) const LEAST_BATCH: u32 = 10_000;

/// What is counted of nginx's requests.
#[derive(Debug)]
pub struct Requests {
    metrics: Arc<Metrics>,
    /// Requests of one worker and second at most; the rest is not measured.
    pub batch: u32,
    books: Mutex<Books>,
}

/// What measurements are counted under.
#[derive(Debug)]
struct Books {
    counter: Counter,
    /// By [`spot`].
    places: HashMap<String, Counted>,
    canaries: HashMap<Arc<str>, Arc<Name>>,
    hosts: HashMap<Arc<str>, Arc<Name>>,
    /// The servers that all this was made of.
    servers: imbl::OrdMap<ServerName, Arc<Server>>,
}

impl Requests {
    /// Nothing is counted yet; `batch` is `--monitor-max-batch-size`.
    pub fn new(settings: Settings, batch: u32) -> Self {
        let metrics = Arc::new(Metrics::new(settings));
        let books = Books {
            counter: Counter::new(metrics.clone()),
            places: HashMap::new(),
            canaries: HashMap::new(),
            hosts: HashMap::new(),
            servers: imbl::OrdMap::new(),
        };
        Self { metrics, batch: batch.max(LEAST_BATCH), books: Mutex::new(books) }
    }

    /// What was counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// From now on requests are those of this Configuration.
    pub fn follow(&self, configuration: &Configuration) {
        let mut books = self.books.lock();
        if books.servers.ptr_eq(&configuration.servers) {
            return;
        }
        books.read(&self.metrics, configuration);
        drop(books);
        self.metrics.sweep();
    }

    /// Counts a batch. What came from a location that has gone meanwhile is not told any more.
    pub fn count(&self, batch: &[Measurement]) {
        let books = self.books.lock();
        books.counter.prune();
        batch.iter().for_each(|measured| books.count(measured));
    }
}

impl Books {
    fn read(&mut self, metrics: &Metrics, configuration: &Configuration) {
        self.servers = configuration.servers.clone();
        // The new ones are there before the old ones go, so that what stays is counted on.
        let (mut places, mut canaries, mut hosts) =
            <(HashMap<_, _>, HashMap<_, _>, HashMap<_, _>)>::default();
        for server in configuration.servers.values() {
            hosts.extend(metrics.hosts(server).into_iter().map(|name| (name.text.clone(), name)));
            for location in &server.locations {
                let canary = location.canary.as_ref().map(|canary| &canary.upstream);
                let counted = metrics.location(location, canary);
                canaries
                    .extend(counted.canary.iter().map(|name| (name.text.clone(), name.clone())));
                places.insert(spot_of(location), counted);
            }
        }
        (self.places, self.canaries, self.hosts) = (places, canaries, hosts);
    }

    fn count(&self, measured: &Measurement) {
        let Measurement { namespace, ingress, service, path, .. } = measured;
        let Some(counted) = self.places.get(&spot(namespace, ingress, service, path)) else {
            return;
        };
        let request = Request {
            place: &counted.place,
            canary: self.canaries.get(measured.canary.as_str()),
            host: &measured.host,
            served: self.hosts.get(measured.host.as_str()),
            method: &measured.method,
            status: measured.status,
        };
        self.counter.count(&request, || observed(measured));
    }
}

/// A location as measurements tell of it.
fn spot(namespace: &str, ingress: &str, service: &str, path: &str) -> String {
    [namespace, ingress, service, path].join("\0")
}

/// The same from what `conf` sets for a location: measurements are made of its variables.
fn spot_of(location: &Location) -> String {
    let ingress = location.origin.as_deref().filter(|origin| origin.kind == Kind::Ingress);
    let (namespace, name) =
        ingress.map(|origin| (&*origin.namespace, &*origin.name)).unwrap_or_default();
    let service = location.service.as_deref().map(|service| &*service.name);
    spot(namespace, name, service.unwrap_or_default(), &location.path)
}

fn observed(measured: &Measurement) -> Observed {
    // Numbers of nginx: not negative, with thousandths at most.
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Observed {
        took: measured.request_time.map(time).unwrap_or_default(),
        connect: measured.upstream_latency.map(time),
        header: measured.upstream_header_time.map(time),
        response: measured.upstream_response_time.map(time),
        received: measured.request_length.unwrap_or(0),
        sent: measured.response_length.unwrap_or(0),
    }
}
