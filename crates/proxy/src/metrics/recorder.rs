//! One thread's end of the metrics: counts each request when its last byte is gone.

use super::Metrics;
use super::books::{Key, Parts};
use super::labels::{Name, method_number};
use super::layout::Observed;
use super::series::Cells;
use super::tally::Tally;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::generation::Site;
use crate::phases::choose_backend;
use foldhash::fast::RandomState;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// One thread's end of the metrics.
#[derive(Debug)]
pub struct Recorder {
    metrics: Arc<Metrics>,
    thread: usize,
    pub(crate) tally: Arc<Tally>,
    /// The cells of this thread.
    known: RefCell<HashMap<Key, Arc<Cells>, RandomState>>,
    /// Hosts that no Ingress names.
    undefined: RefCell<HashMap<String, Arc<Name>>>,
    swept: Cell<usize>,
}

/// A connection is busy with a request until this is dropped.
#[derive(Debug)]
pub struct Working(Rc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
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

impl Recorder {
    /// A thread begins to count.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        let (thread, tally) = metrics.join();
        let (known, undefined, swept) = (RefCell::default(), RefCell::default(), Cell::new(0));
        Self { metrics, thread, tally, known, undefined, swept }
    }

    /// A connection begins to work on a request.
    pub fn request(&self, connection: &Rc<Connection>) -> Working {
        self.tally.request();
        self.work(connection)
    }

    /// A connection is at work.
    pub fn work(&self, connection: &Rc<Connection>) -> Working {
        connection.busy.set(connection.busy.get() + 1);
        Working(connection.clone())
    }

    /// Forgets the cells of series that are gone.
    pub fn prune(&self) {
        let swept = self.metrics.swept();
        if self.swept.replace(swept) != swept {
            // Those that are alive are found again by their next request.
            self.known.take();
        }
    }

    /// Counts a request that is over: only those that a location answered, and of these only those of hosts that are
    /// named somewhere, unless all are asked for (compat/behaviour.md section 30).
    pub fn record(&self, exchange: &Exchange) {
        choose_backend::note_reuse(exchange);
        let Some(place) = &exchange.place else { return };
        let Some(counted) = &place.spot().counted else { return };
        let Some(host) = self.host(exchange, &place.site) else { return };
        let canary = counted.canary.as_ref().filter(|_| exchange.canary);
        let status = exchange.log.status;
        let host = match &host {
            Host::Any => None,
            Host::Served(name) => Some(*name),
            Host::Undefined(name) => Some(name),
            Host::TooMany => return self.overflow(exchange),
        };
        let key = Key {
            place: counted.place.number,
            host: host.map_or(0, |host| host.number),
            canary: canary.map_or(0, |canary| canary.number),
            status: if self.metrics.settings.status_classes { status / 100 } else { status },
            method: method_number(&exchange.request.method),
        };
        if let Some(cells) = self.known.borrow().get(&key) {
            return self.metrics.layout.count(cells, &observed(exchange));
        }
        let parts = Parts { place: &counted.place, host, canary };
        match self.metrics.cells(self.thread, key, &parts) {
            Some(cells) => {
                self.metrics.layout.count(&cells, &observed(exchange));
                self.known.borrow_mut().insert(key, cells);
            }
            None => self.overflow(exchange),
        }
    }

    fn overflow(&self, exchange: &Exchange) {
        let cells = self.metrics.overflow(self.thread, exchange.log.status / 100);
        self.metrics.layout.count(&cells, &observed(exchange));
    }

    /// The host that a request counts under; none if it does not count.
    fn host<'a>(&self, exchange: &Exchange, site: &'a Site) -> Option<Host<'a>> {
        if !self.metrics.settings.per_host {
            return Some(Host::Any);
        }
        // Who names no host is asked for as the server, as nginx's `$host`.
        let host = match exchange.host.as_str() {
            "" => site.server.name.as_str(),
            host => host,
        };
        let served = site.hosts.iter().find(|name| *name.text == *host);
        if let Some(served) = served {
            return Some(Host::Served(served));
        }
        if !self.metrics.settings.undefined_hosts {
            return None;
        }
        if let Some(known) = self.undefined.borrow().get(host) {
            return Some(Host::Undefined(known.clone()));
        }
        let Some(name) = self.metrics.undefined(host) else { return Some(Host::TooMany) };
        self.undefined.borrow_mut().insert(host.to_owned(), name.clone());
        Some(Host::Undefined(name))
    }
}

fn observed(exchange: &Exchange) -> Observed {
    let only = match exchange.log.tries.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    Observed {
        took: exchange.since.elapsed(),
        connect: only.and_then(|only| only.connected.get()),
        header: only.and_then(|only| only.header.get()),
        response: only.map(|only| only.ended.get().unwrap_or_else(|| only.since.elapsed())),
        received: exchange.log.received,
        sent: exchange.log.sent,
    }
}
