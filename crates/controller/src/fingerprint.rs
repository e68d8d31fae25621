//! A number that tells Configurations apart, brought up to date by what differs.

use crate::stable;
use model::policy::Policy;
use model::snippet::Scope;
use model::{
    Changes, Configuration, Location, Others, RouteHost, RouteKey, Rule, RuleMatch, Server, Share,
    revealed,
};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Servers with at most so many locations have all of them hashed anew when one changes: to remember what tens of
/// thousands of servers have takes more than it saves.
const FEW: usize = 16;

/// A number that tells Configurations apart. It is a sum over their parts, so that a change costs what it changes, and
/// it does not depend on the way that led there. Endpoints do not count: they come and go all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// As a number that a float holds exactly.
    pub(crate) fn number(self) -> u64 {
        self.0 >> 11
    }
}

/// The fingerprint of what is served, brought up to date. What parts share has been written once for all of them, and
/// is not written again as long as it is there: a host may have very many places, of which a change touches one.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    now: Fingerprint,
    policies: Numbers<Policy>,
    scopes: Numbers<Scope>,
    places: Numbers<Location>,
    matches: Numbers<RuleMatch>,
    others: Numbers<Others>,
}

impl Fingerprints {
    /// Follows `changes` from one Configuration to the next.
    pub(crate) fn follow(
        &mut self,
        old: &Configuration,
        new: &Configuration,
        changes: &Changes,
    ) -> Fingerprint {
        self.policies.tidy();
        self.scopes.tidy();
        self.places.tidy();
        self.matches.tidy();
        self.others.tidy();
        let without = self.of_changed(old, changes);
        let with = self.of_changed(new, changes);
        self.now = Fingerprint(self.now.0.wrapping_sub(without).wrapping_add(with));
        self.now
    }

    /// The share of the parts that `changes` names.
    fn of_changed(&mut self, of: &Configuration, changes: &Changes) -> u64 {
        let servers = changes.servers.iter().filter_map(|name| of.servers.get(name));
        let servers = sum(servers.map(|server| self.server(server)));
        let routes = changes.routes.iter().filter_map(|key| Some((key, of.routes.get(key)?)));
        let routes = sum(routes.map(|(key, host)| self.routes(key, host)));
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
        let parts = [servers, routes].into_iter().chain(listeners);
        let parts = parts.chain(carried.map(|route| hash(&route))).chain(streams);
        sum(parts.chain(certificates).chain(global).chain(default))
    }

    fn server(&mut self, server: &Server) -> u64 {
        let Server {
            name,
            aliases,
            www,
            app_root,
            certificate,
            owner,
            client_certificate,
            ciphers,
            passthrough,
            snippet,
            raw,
            regex,
            patterns: _,
            locations,
        } = server;
        let snippet = snippet.as_ref().map(|scope| self.scopes.of(scope, hash));
        let are_few = locations.len() <= FEW;
        let locations = locations.iter().map(|location| {
            if are_few { place(&mut self.policies, location) } else { self.place(location) }
        });
        let locations: Vec<u64> = locations.collect();
        let of_tls = (certificate, owner, client_certificate, ciphers, passthrough);
        hash(&(name, aliases, www, app_root, of_tls, (snippet, raw), regex, locations))
    }

    fn routes(&mut self, key: &RouteKey, host: &RouteHost) -> u64 {
        let RouteHost { name, certificate, named, not_shown_to, rules, tiers, locations } = host;
        let mut of_others = |others: &Option<Arc<Others>>| {
            others.as_ref().map(|others| self.others.of(others, hash))
        };
        let not_shown_to = of_others(not_shown_to);
        let rules = rules.iter().map(|Rule { matches, others, shares }| {
            let shares = shares.iter().map(|Share { weight, location }| (weight, location));
            (self.matches.of(matches, hash), of_others(others), shares.collect::<Vec<_>>())
        });
        let rules: Vec<_> = rules.collect();
        let locations: Vec<u64> = locations.iter().map(|location| self.place(location)).collect();
        hash(&(key, name, (certificate, named), not_shown_to, rules, tiers, locations))
    }

    /// A place that is remembered.
    fn place(&mut self, location: &Arc<Location>) -> u64 {
        let policies = &mut self.policies;
        self.places.of(location, |location| place(policies, location))
    }
}

/// A place; those of an Ingress or a route share a policy, which may be large.
fn place(policies: &mut Numbers<Policy>, location: &Location) -> u64 {
    let Location { path, kind, whole, backend, canary, service, origin, policy } = location;
    let policy = policies.of(policy, hash);
    hash(&(path, kind, whole, backend, canary, service, origin, policy))
}

/// The numbers of values that are there.
#[derive(Debug)]
struct Numbers<T> {
    /// By their address, which nobody else has while they are known here.
    all: HashMap<usize, (Weak<T>, u64)>,
    /// How many there were after they had last been gone through.
    kept: usize,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { all: HashMap::new(), kept: 0 }
    }
}

impl<T> Numbers<T> {
    /// The number of a value, which is made once.
    fn of(&mut self, value: &Arc<T>, make: impl FnOnce(&T) -> u64) -> u64 {
        let known = self.all.entry(Arc::as_ptr(value).addr());
        known.or_insert_with(|| (Arc::downgrade(value), make(value))).1
    }

    /// Forgets those whose values are gone, once they may be many.
    fn tidy(&mut self) {
        if self.all.len() > self.kept + self.kept / 4 + 64 {
            self.all.retain(|_, (value, _)| value.strong_count() > 0);
            self.kept = self.all.len();
        }
    }
}

fn sum(parts: impl Iterator<Item = u64>) -> u64 {
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
    use super::{Fingerprints, Numbers};
    use model::policy::Policy;
    use model::{
        Backend, Changes, Configuration, Global, Location, PathKind, RouteHost, RouteKey, Rule,
        RuleMatch, Scheme, Server, ServerName, Share, Template,
    };
    use std::sync::Arc;

    fn with(hosts: &[&str]) -> Configuration {
        let server =
            |name: &&str| (ServerName::new(*name), Arc::new(Server::new(ServerName::new(*name))));
        Configuration { servers: hosts.iter().map(server).collect(), ..Configuration::default() }
    }

    /// The number after each step, beginning with nothing.
    fn numbers(steps: &[&Configuration]) -> Vec<u64> {
        let (mut numbers, mut before) = (Fingerprints::default(), &Configuration::default());
        let mut step = |next| {
            let now = numbers.follow(before, next, &Changes::between(before, next));
            before = next;
            now.number()
        };
        steps.iter().map(|next| step(*next)).collect()
    }

    fn place(path: &str, policy: Arc<Policy>) -> Arc<Location> {
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
    }

    /// A rule for a path with where it leads.
    fn rule(path: &str) -> (Arc<RuleMatch>, Arc<Location>) {
        let matches = RuleMatch {
            scheme: Scheme::Http,
            kind: PathKind::Prefix,
            path: path.to_owned(),
            pattern: None,
            grpc: None,
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
        };
        (Arc::new(matches), place(path, Arc::default()))
    }

    /// These rules under each of the hosts.
    fn routes(hosts: &[&str], all: &[(Arc<RuleMatch>, Arc<Location>)]) -> Configuration {
        let rules = all.iter().enumerate().map(|(location, (matches, _))| Rule {
            matches: matches.clone(),
            others: None,
            shares: vec![Share { weight: 1, location }],
        });
        let rules: Vec<_> = rules.collect();
        let host = |name: &&str| {
            let host = ServerName::new(*name);
            let made = RouteHost {
                rules: rules.clone(),
                locations: all.iter().map(|(_, location)| location.clone()).collect(),
                ..RouteHost::new(host.clone())
            };
            (RouteKey { listener: None, host }, Arc::new(made))
        };
        Configuration { routes: hosts.iter().map(host).collect(), ..Configuration::default() }
    }

    #[test]
    fn of_hosts_with_many_places_a_change_writes_those_that_it_changes() {
        let mut rules: Vec<_> = (0..200).map(|number| rule(&format!("/{number}"))).collect();
        let hosts = ["a.test", "b.test", "c.test"];
        let before = routes(&hosts, &rules);
        rules.push(rule("/new"));
        let after = routes(&hosts, &rules);
        let (mut numbers, nothing) = (Fingerprints::default(), Configuration::default());
        let mut written = Vec::new();
        let mut said = Vec::new();
        for (old, new) in [(&nothing, &before), (&before, &after), (&after, &before)] {
            said.push(numbers.follow(old, new, &Changes::between(old, new)));
            written.push((numbers.places.all.len(), numbers.matches.all.len()));
        }
        assert_eq!(written, [(200, 200), (201, 201), (201, 201)]);
        assert!(said[0] == said[2] && said[0] != said[1]);
        let copy: Vec<_> = rules
            .iter()
            .map(|(matches, location)| {
                (RuleMatch::clone(matches).into(), place(&location.path, Arc::default()))
            })
            .collect();
        let anew = numbers_of(&routes(&hosts, &copy));
        assert_eq!(anew, said[1].number(), "a replica that shares nothing with this one");
        rules.swap(0, 1);
        assert_ne!(numbers_of(&routes(&hosts, &rules)), anew, "their order counts");
        let of_others = |names: &[&str]| {
            let mut made = routes(&["_"], &[rule("/")]);
            let others = names.iter().map(|name| ServerName::new(*name)).collect();
            let key = RouteKey { listener: None, host: ServerName::new("_") };
            let host = made.routes.get_mut(&key).expect("it is there");
            Arc::make_mut(host).rules[0].others = Some(Arc::new(others));
            numbers_of(&made)
        };
        assert_ne!(of_others(&["a.test"]), of_others(&["b.test"]), "whose hosts are not its");
    }

    fn numbers_of(only: &Configuration) -> u64 {
        numbers(&[only])[0]
    }

    #[test]
    fn numbers_are_made_once_and_forgotten_with_their_values() {
        let (mut numbers, value) = (Numbers::<u8>::default(), Arc::new(1));
        assert_eq!(numbers.of(&value, |value| u64::from(*value)), 1);
        assert_eq!(numbers.of(&value, |_| panic!("it is known")), 1);
        for _ in 0..1000 {
            numbers.tidy();
            numbers.of(&Arc::new(2), |value| u64::from(*value));
        }
        assert!(numbers.all.len() < 100, "{}", numbers.all.len());
        assert_eq!(numbers.of(&value, |_| panic!("it is known")), 1);
    }

    #[test]
    fn places_count_alike_whether_they_share_their_policy_or_not() {
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
