//! The places of a thread's connections: who has one, who is turned away, and who gives way.

mod holders;

use super::{FEW, TICK, Worker};
use crate::connection::{Connection, Guest};
use crate::load::Refusal;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wire::Control;

pub(super) use self::holders::Holder;

/// How a connection is let in.
#[derive(Debug)]
pub(crate) enum Admission {
    /// There is room.
    Regular,
    /// Under full pressure, for one request.
    Guest(Guest),
}

impl Worker {
    /// How a connection is let in, if there is room for it. Where there is none, those that wait for nothing go, and so
    /// does the newcomer, unless it comes from elsewhere than most of the others. Under full pressure a few are let in
    /// for one request each, and as many as were ended: whoever holds the memory must not keep others out.
    pub(crate) fn admits(&self, socket: &impl AsRawFd, from: IpAddr) -> Option<Admission> {
        let refusal = if self.is_full() && !self.gives_way(from) {
            Refusal::Connections
        } else if !wire::descriptors::client_fits(socket) {
            // The next one has a lower number.
            self.gives_way(from);
            Refusal::Descriptors
        } else if !self.is_overloaded() {
            return Some(Admission::Regular);
        } else if Rc::strong_count(&self.guests) <= FEW || self.freed.get() > 0 {
            self.freed.set(self.freed.get().saturating_sub(1));
            return Some(Admission::Guest(Guest::new(&self.guests)));
        } else {
            Refusal::Pressure
        };
        self.refused(refusal, from);
        self.relieve();
        None
    }

    /// Ends a connection of whoever holds most of the places, for a newcomer from elsewhere; whether one ended.
    fn gives_way(&self, from: IpAddr) -> bool {
        self.relieve();
        let given = self.holder.borrow_mut().as_mut().and_then(|holder| holder.gives_way(from));
        let connections = self.connections.borrow();
        let Some(one) = given.and_then(|serial| connections.get(&serial)) else { return false };
        one.control.reset();
        true
    }

    /// Counts a connection that is turned away, and tells of it now and then.
    pub(crate) fn refused(&self, refusal: Refusal, peer: IpAddr) {
        if self.shared.load.refused(refusal) {
            refusal.tell(peer, self.places());
        }
    }

    /// A connection could not be accepted.
    pub(crate) fn accept_failed(&self, error: &std::io::Error) {
        if self.shared.load.accept_failed() {
            tracing::warn!(%error, "connections cannot be accepted; idle ones are closed");
        }
        self.relieve();
    }

    /// Lets idle connections go, but does not look for them at every newcomer of a flood.
    fn relieve(&self) {
        if self.relieved.get().is_none_or(|last| last.elapsed() >= TICK) {
            self.relieved.set(Some(Instant::now()));
            self.close_idle(Control::make_way);
            self.young.borrow().hurry();
            self.pool.shrink();
            let connections = self.connections.borrow();
            let all = connections.values().map(|one| (one.serial, one.counted_as()));
            *self.holder.borrow_mut() = Holder::of(all, self.places());
        }
    }

    /// Asks connections without a request to `end`, but for those whose first one may be on its way.
    pub(super) fn close_idle(&self, end: fn(&Control)) {
        let all = self.all();
        let settled = all.iter().filter(|connection| !connection.is_fresh());
        settled.for_each(|connection| end(&connection.control));
    }

    /// How many connections there may be.
    pub(super) fn places(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Whether all of them are taken.
    fn is_full(&self) -> bool {
        self.taken() >= self.places()
    }

    /// How many there are.
    pub(super) fn taken(&self) -> usize {
        self.connections.borrow().len() + self.young.borrow().len()
    }

    /// Stands for a connection until it is in the books; none if there are enough of those that come `from` there.
    pub(crate) fn expect(
        self: &Rc<Self>,
        serial: u64,
        peer: SocketAddr,
        from: Option<IpAddr>,
    ) -> Option<Expected> {
        let admitted = self.young.borrow_mut().admit(serial, from, self.places());
        if !admitted {
            self.refused(Refusal::Connections, peer.ip());
        }
        admitted.then(|| Expected { worker: self.clone(), peer, serial })
    }

    /// Notes the task that serves a connection, until it is in the books.
    pub(crate) fn served_by(&self, serial: u64, task: AbortHandle) {
        self.young.borrow_mut().served_by(serial, task);
    }

    /// Keeps a connection in the books until the guard is dropped.
    pub(crate) fn enter(self: &Rc<Self>, connection: &Rc<Connection>) -> Entry {
        self.connections.borrow_mut().insert(connection.serial, connection.clone());
        Entry { worker: self.clone(), connection: connection.clone() }
    }
}

/// A connection that is not in the books yet.
#[derive(Debug)]
pub(crate) struct Expected {
    worker: Rc<Worker>,
    pub(crate) peer: SocketAddr,
    pub(crate) serial: u64,
}

impl Expected {
    /// It came from there in truth, which its PROXY header says; whether it may stay.
    pub(crate) fn comes_from(&self, address: IpAddr) -> bool {
        let places = self.worker.places();
        let stays = self.worker.young.borrow_mut().comes_from(self.serial, address, places);
        if !stays {
            self.worker.refused(Refusal::Connections, self.peer.ip());
        }
        stays
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.worker.shared.load.tell_of_panic(self.peer, self.serial);
        self.worker.young.borrow_mut().remove(self.serial);
    }
}

/// A connection's place in the books.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) worker: Rc<Worker>,
    pub(crate) connection: Rc<Connection>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Self { worker, connection } = self;
        worker.shared.load.tell_of_panic(connection.peer, connection.serial);
        worker.connections.borrow_mut().remove(&connection.serial);
    }
}
