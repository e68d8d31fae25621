//! A number that tells Configurations apart, brought up to date by what differs.

use crate::stable;
use model::{Changes, Configuration, revealed};
use serde::Serialize;

/// A number that tells Configurations apart. It is a sum over their parts, so that a change costs what it changes, and
/// it does not depend on the way that led there. Endpoints do not count: they come and go all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// The number after `changes` from one Configuration to the next.
    pub(crate) fn after(self, old: &Configuration, new: &Configuration, changes: &Changes) -> Self {
        let without = of_changed(old, changes);
        Self(self.0.wrapping_sub(without).wrapping_add(of_changed(new, changes)))
    }

    /// As a number that a float holds exactly.
    pub(crate) fn number(self) -> u64 {
        self.0 >> 11
    }
}

/// The share of the parts that `changes` names.
fn of_changed(of: &Configuration, changes: &Changes) -> u64 {
    let servers = changes.servers.iter().filter_map(|name| of.servers.get(name)).map(hash);
    let routes = changes.routes.iter().filter_map(|key| Some((key, of.routes.get(key)?)));
    let listeners = changes.listeners.iter().filter_map(|id| of.listeners.get(id)).map(hash);
    let carried = changes.tls_routes.iter();
    let carried = carried.filter_map(|key| Some((key, of.tls_routes.get(key)?)));
    let streams = changes.streams.iter().filter_map(|port| Some((port, of.streams.get(port)?)));
    let streams = streams.map(|(port, stream)| {
        hash(&(port, &stream.service, stream.takes_proxy, stream.gives_proxy))
    });
    let certificates = changes.certificates.iter().filter_map(|id| of.certificates.get(id));
    let certificates = certificates.map(|certificate| {
        let chain = certificate.chain.iter().map(Vec::as_slice);
        stable::number(std::iter::once(certificate.id.as_str().as_bytes()).chain(chain))
    });
    let global = changes.global.then(|| hash(&of.global));
    let default = changes.default_certificate.then(|| hash(&of.default_certificate));
    let parts = servers
        .chain(routes.map(|route| hash(&route)))
        .chain(listeners)
        .chain(carried.map(|route| hash(&route)))
        .chain(streams)
        .chain(certificates)
        .chain(global)
        .chain(default);
    parts.fold(0, u64::wrapping_add)
}

#[expect(
    clippy::disallowed_methods,
    reason = "of a value that is hidden, too, a change has to be seen; the number tells nothing"
)]
fn hash(part: &impl Serialize) -> u64 {
    // Plain data can always be written; what could not would only not count.
    stable::number([revealed(|| serde_json::to_vec(part)).unwrap_or_default().as_slice()])
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;
    use model::{Changes, Configuration, Global, Server, ServerName};
    use std::sync::Arc;

    fn with(hosts: &[&str]) -> Configuration {
        let server =
            |name: &&str| (ServerName::new(*name), Arc::new(Server::new(ServerName::new(*name))));
        Configuration { servers: hosts.iter().map(server).collect(), ..Configuration::default() }
    }

    /// The number after each step, beginning with nothing.
    fn numbers(steps: &[&Configuration]) -> Vec<u64> {
        let (mut fingerprint, mut before) = (Fingerprint::default(), &Configuration::default());
        let mut step = |next| {
            fingerprint = fingerprint.after(before, next, &Changes::between(before, next));
            before = next;
            fingerprint.number()
        };
        steps.iter().map(|next| step(*next)).collect()
    }

    #[test]
    fn the_way_does_not_matter_and_every_part_does() {
        let (a, ab) = (with(&["a.test"]), with(&["a.test", "b.test"]));
        let other = Configuration {
            global: Arc::new(Global { http2: false, ..Global::default() }),
            ..a.clone()
        };
        let all = numbers(&[&a, &ab, &a, &other, &ab]);
        assert_eq!((all[0], all[1]), (all[2], all[4]));
        assert!(all[0] != all[1] && all[0] != all[3] && all[0] != 0);
        assert_eq!(numbers(&[&ab]), [all[1]], "a replica that starts later says the same");
    }
}
