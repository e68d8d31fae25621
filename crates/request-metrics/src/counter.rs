//! One thread's end of the metrics: finds the cells of a request and counts in them.

use super::books::{Key, Metrics, Parts};
use super::labels::{CountedLocation, Name, method_number, status_number};
use super::layout::Observed;
use super::series::Cells;
use super::tally::Tally;
use foldhash::fast::RandomState;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// One thread's end of the metrics.
#[derive(Debug)]
pub struct Counter {
    metrics: Arc<Metrics>,
    thread: usize,
    tally: Arc<Tally>,
    /// The cells of this thread.
    known: RefCell<HashMap<Key, Arc<Cells>, RandomState>>,
    /// Hosts that no Ingress names.
    undefined: RefCell<HashMap<String, Arc<Name>>>,
    swept: Cell<usize>,
}

/// What a request counts under.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where it was answered.
    pub place: &'a Arc<CountedLocation>,
    /// The upstream of the canary, if that was chosen.
    pub canary: Option<&'a Arc<Name>>,
    /// The host that it asked for.
    pub host: &'a str,
    /// The same, if hosts are told apart and it is one of those that an Ingress names.
    pub served: Option<&'a Arc<Name>>,
    /// The method.
    pub method: &'a str,
    /// The status.
    pub status: u16,
}

/// The host that a request counts under.
enum Host<'a> {
    /// Hosts are not told apart.
    Any,
    Served(&'a Arc<Name>),
    Undefined(Arc<Name>),
    /// There are too many that no Ingress names.
    TooMany,
}

impl Counter {
    /// A thread begins to count.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        let (thread, tally) = metrics.join();
        let (known, undefined, swept) = (RefCell::default(), RefCell::default(), Cell::new(0));
        Self { metrics, thread, tally, known, undefined, swept }
    }

    /// What this thread says of its connections.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Forgets the cells of series that are gone.
    pub fn prune(&self) {
        let swept = self.metrics.swept();
        if self.swept.replace(swept) != swept {
            // Those that are alive are found again by their next request.
            self.known.take();
        }
    }

    /// Counts a request that is over: only one whose host is named somewhere, unless all are asked for
    /// (compat/behaviour.md section 30).
    pub fn count(&self, request: &Request<'_>, observed: impl FnOnce() -> Observed) {
        let Some(host) = self.host(request) else { return };
        let host = match &host {
            Host::Any => None,
            Host::Served(name) => Some(*name),
            Host::Undefined(name) => Some(name),
            Host::TooMany => return self.overflow(request, &observed()),
        };
        let Request { place, canary, method, status, served, .. } = *request;
        let key = Key {
            place: place.number,
            host: host.map_or(0, |host| host.number),
            canary: canary.map_or(0, |canary| canary.number),
            status: status_number(status, self.metrics.settings.status_classes),
            method: method_number(method),
        };
        if let Some(cells) = self.known.borrow().get(&key) {
            return self.metrics.layout.count(cells, &observed());
        }
        let is_made_up = host.is_some() && served.is_none();
        match self.metrics.cells(self.thread, key, &Parts { place, host, is_made_up, canary }) {
            Some(cells) => {
                self.metrics.layout.count(&cells, &observed());
                self.known.borrow_mut().insert(key, cells);
            }
            None => self.overflow(request, &observed()),
        }
    }

    fn overflow(&self, request: &Request<'_>, observed: &Observed) {
        let namespace = request.place.spot.namespace().cloned().unwrap_or_default();
        let cells = self.metrics.overflow(self.thread, &namespace, request.status / 100);
        self.metrics.layout.count(&cells, observed);
    }

    /// The host that a request counts under; none if it does not count.
    fn host<'a>(&self, request: &Request<'a>) -> Option<Host<'a>> {
        if !self.metrics.settings.per_host {
            return Some(Host::Any);
        }
        if let Some(served) = request.served {
            return Some(Host::Served(served));
        }
        if !self.metrics.settings.undefined_hosts {
            return None;
        }
        if let Some(known) = self.undefined.borrow().get(request.host) {
            return Some(Host::Undefined(known.clone()));
        }
        let Some(name) = self.metrics.undefined(request.host) else { return Some(Host::TooMany) };
        self.undefined.borrow_mut().insert(request.host.to_owned(), name.clone());
        Some(Host::Undefined(name))
    }
}
