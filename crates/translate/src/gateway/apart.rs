//! What keeps the listeners of a Gateway apart that several people wrote. The most special one has a request alone,
//! whether or not it can be served: a mistake of its owner gives nobody else its names.

use super::listeners::{Listening, Protocol, State, certificate_id};
use super::reach::Reach;
use super::targets::port_of;
use model::{ListenerId, Origin, Others, ServerName, Speaks};
use objects::gateway::Listener;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

/// The hosts that a listener is for.
fn hosts(listener: &Listener) -> ServerName {
    let name = listener.hostname.as_deref().map(str::to_ascii_lowercase);
    name.map_or_else(ServerName::catch_all, ServerName::new)
}

/// The names that wider listeners may have: those of the wildcards above it, and `_`.
fn above(name: &str) -> impl Iterator<Item = String> {
    let dots = name.match_indices('.').filter(|(at, _)| *at > 0);
    let wildcards = dots.map(|(at, _)| format!("*{}", &name[at..]));
    wildcards.chain(["_".to_owned()]).filter(move |above| above != name)
}

impl State {
    /// Notes of each listener which hosts more special ones have that somebody else wrote. Where the Gateway has a
    /// place of its own, its listeners are kept apart there. `socket` says which one a port means.
    pub(super) fn keep_apart(&mut self, socket: impl Fn(u16) -> u16) {
        if self.sets.is_empty() || self.reach != Reach::Shared {
            return;
        }
        let place = |(listener, read): (&Listener, &Listening)| {
            Some((read.protocol?, socket(listener.port), hosts(listener)))
        };
        let places: Vec<Option<(Protocol, u16, ServerName)>> = self.each().map(place).collect();
        let mut wide: HashMap<(Protocol, u16, &str), Vec<usize>> = HashMap::new();
        // Of one name a set may have many listeners, but one alone is accepted.
        let accepted = |(index, _): &(usize, _)| self.listeners[*index].is_accepted();
        for (index, place) in places.iter().enumerate().filter(accepted) {
            let Some((protocol, port, name)) = place else { continue };
            if name.as_str() == "_" || name.as_str().starts_with('*') {
                wide.entry((*protocol, *port, name.as_str())).or_default().push(index);
            }
        }
        let mut others = vec![BTreeSet::new(); places.len()];
        for (own, place) in self.listeners.iter().zip(&places).filter(|(own, _)| own.keeps) {
            let Some((protocol, port, name)) = place else { continue };
            for above in above(name.as_str()) {
                let wider = wide.get(&(*protocol, *port, above.as_str())).into_iter().flatten();
                for index in wider.filter(|index| self.listeners[**index].set != own.set) {
                    others[*index].insert(name.clone());
                }
            }
        }
        for (own, others) in self.listeners.iter_mut().zip(others) {
            own.others = (!others.is_empty()).then(|| Arc::new(Others::from_iter(others)));
        }
    }

    /// Notes of listeners where TLS ends which of them have hosts in common with another one on their port: a client
    /// may send what is for these over a connection that began at the other one.
    pub(super) fn find_overlaps(&mut self, socket: impl Fn(u16) -> u16) {
        let mut all: HashMap<(u16, ServerName), usize> = HashMap::new();
        for (index, (listener, read)) in self.each().enumerate() {
            if read.protocol.is_some_and(Protocol::is_ended) && read.is_accepted() {
                all.insert((socket(listener.port), hosts(listener)), index);
            }
        }
        let overlapping = all.iter().flat_map(|((port, name), index)| {
            let wider = above(name.as_str());
            let wider = wider.filter_map(|wider| all.get(&(*port, ServerName::new(wider))));
            wider.flat_map(|wider| [*wider, *index])
        });
        for index in overlapping.collect::<BTreeSet<_>>() {
            self.listeners[index].overlaps = true;
        }
    }

    /// The listener with a place of its own, if it is there.
    pub(super) fn own(&self, index: usize) -> Option<ListenerId> {
        let listener = self.listener(index);
        let address = self.reach.place(port_of(listener)?)?;
        Some(ListenerId { address, hosts: hosts(listener) })
    }

    /// The listeners with a place of their own: those that are served, and beside them, closed, those that are not and
    /// keep their hosts all the same. A place where none is served is not opened.
    pub(super) fn doors(&self) -> impl Iterator<Item = model::Listener> {
        let places = (0..self.listeners.len()).filter(|index| self.serves(*index));
        let spoken = |index: usize| match self.listeners[index].protocol {
            Some(Protocol::Spoken(speaks)) => Some((self.own(index)?.address, speaks)),
            _ => None,
        };
        let open: BTreeMap<SocketAddr, Speaks> = places.filter_map(spoken).collect();
        (0..self.listeners.len()).filter_map(move |index| {
            let (read, is_served) = (&self.listeners[index], self.serves(index));
            if !is_served && !read.keeps {
                return None;
            }
            let Protocol::Spoken(speaks) = read.protocol? else { return None };
            let id = self.own(index)?;
            let beside = *open.get(&id.address)?;
            if beside != speaks && !(beside.is_carried() && speaks.is_carried()) {
                return None;
            }
            let secret = read.certificate.as_ref().and_then(|found| found.as_ref().ok());
            let port = self.listener(index).port;
            let (kind, key) = self.owner(read);
            Some(model::Listener {
                port: (id.address.port() != port).then_some(port),
                id,
                speaks,
                certificate: secret.filter(|_| is_served).map(certificate_id),
                clients: read.clients.as_ref().and_then(|asked| asked.verified.clone().ok()),
                origin: Origin::new(kind, key.namespace.clone(), key.name.clone()),
            })
        })
    }
}
