//! One thread counts each request when its last byte is gone.

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::phases::choose_backend;
use request_metrics::{Counter, Metrics, Observed, Request, Tally};
use std::rc::Rc;
use std::sync::Arc;

/// One thread's end of the metrics.
#[derive(Debug)]
pub struct Recorder(Counter);

/// A connection is busy with a request until this is dropped.
#[derive(Debug)]
pub struct Working(Rc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

impl Recorder {
    /// A thread begins to count.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self(Counter::new(metrics))
    }

    /// What this thread says of its connections.
    pub fn tally(&self) -> &Tally {
        self.0.tally()
    }

    /// A connection begins to work on a request.
    pub fn request(&self, connection: &Rc<Connection>) -> Working {
        self.tally().request();
        self.work(connection)
    }

    /// A connection is at work.
    pub fn work(&self, connection: &Rc<Connection>) -> Working {
        connection.busy.set(connection.busy.get() + 1);
        Working(connection.clone())
    }

    /// Forgets the cells of series that are gone.
    pub fn prune(&self) {
        self.0.prune();
    }

    /// Counts a request that is over, if a location answered it.
    pub fn record(&self, exchange: &Exchange) {
        choose_backend::note_reuse(exchange);
        let Some(place) = &exchange.place else { return };
        let Some(counted) = &place.spot().counted else { return };
        // Who names no host is asked for as the server, as nginx's `$host`.
        let host = match exchange.host.as_str() {
            "" => place.site.server.name.as_str(),
            host => host,
        };
        let request = Request {
            place: &counted.place,
            canary: counted.canary.as_ref().filter(|_| exchange.canary),
            host,
            served: place.site.hosts.iter().find(|name| *name.text == *host),
            method: exchange.request.method.as_str(),
            status: exchange.log.status,
        };
        self.0.count(&request, || observed(exchange));
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
