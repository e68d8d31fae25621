//! A number that tells Configurations apart, brought up to date by what differs.

use crate::stable;
use model::policy::Policy;
use model::{Changes, Configuration, Location, Server, revealed};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

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
    let mut policies = Policies::default();
    let servers = changes.servers.iter().filter_map(|name| of.servers.get(name));
    let servers = servers.map(|server| policies.server(server));
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

/// The numbers of policies that were seen: the places of an Ingress share one, which may be large.
#[derive(Default)]
struct Policies(HashMap<*const Policy, u64>);

impl Policies {
    fn server(&mut self, server: &Server) -> u64 {
        let locations = server.locations.iter().map(|location| {
            let Location { path, kind, whole, backend, canary, service, origin, policy } =
                &**location;
            let policy = *self.0.entry(Arc::as_ptr(policy)).or_insert_with(|| hash(&**policy));
            hash(&(path, kind, whole, backend, canary, service, origin, policy))
        });
        let locations: Vec<u64> = locations.collect();
        let bare = Server { locations: Vec::new(), ..server.clone() };
        hash(&(bare, locations))
    }
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
    use model::policy::Policy;
    use model::{
        Backend, Changes, Configuration, Global, Location, PathKind, Server, ServerName, Template,
    };
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
    fn places_count_alike_whether_they_share_their_policy_or_not() {
        let place = |path: &str, policy: Arc<Policy>| {
            Arc::new(Location {
                path: path.to_owned(),
                kind: PathKind::Prefix,
                whole: false,
                backend: Backend::NotFound,
                canary: None,
                service: None,
                origin: None,
                policy,
            })
        };
        let of = |one: Arc<Policy>, two: Arc<Policy>| {
            let name = ServerName::new("a.test");
            let locations = vec![place("/1", one), place("/2", two)];
            let server = Server { locations, ..Server::new(name.clone()) };
            let servers = [(name, Arc::new(server))].into_iter().collect();
            Configuration { servers, ..Configuration::default() }
        };
        let (one, same) = (Arc::new(Policy::default()), Arc::new(Policy::default()));
        let other =
            Policy { upstream_host: Some(Template::parse("x").unwrap()), ..Policy::default() };
        let other = Arc::new(other);
        let shared = numbers(&[&of(one.clone(), one.clone())]);
        assert_eq!(numbers(&[&of(one.clone(), same)]), shared);
        let differs = numbers(&[&of(one.clone(), other.clone())]);
        assert_ne!(differs, shared);
        assert_ne!(numbers(&[&of(other, one)]), differs, "each place has its own");
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
