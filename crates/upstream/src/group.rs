//! An upstream while it serves: its endpoints now, and whose turn it is. It outlives generations.

use super::{Addresses, Rule};
use arc_swap::ArcSwap;
use balance::{Needs, Roster, RoundRobin};
use model::{Endpoints, UpstreamId};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stream::{Following, Resolver};

/// The endpoints of one upstream, replaced as a whole when they change.
#[derive(Debug)]
pub struct Group {
    /// The upstream's name.
    pub id: UpstreamId,
    members: Arc<Members>,
    turns: RoundRobin,
    opened: AtomicU64,
    reused: AtomicU64,
    /// The name that is being followed.
    resolving: Mutex<Option<((String, u16), Following)>>,
}

/// What is known of the endpoints, for threads of traffic and for whoever replaces them.
#[derive(Debug)]
struct Members {
    id: UpstreamId,
    roster: ArcSwap<Roster>,
    /// Whether it has an endpoint that can take a request: each request asks that before it asks for one. Never said of
    /// a roster that is not there yet, nor still of one whose endpoints are gone.
    is_served: AtomicBool,
    /// Which algorithms ask; it is also what those wait for who replace the roster.
    needs: Mutex<Needs>,
    /// Where the addresses of all upstreams are known.
    told: OnceLock<Arc<Addresses>>,
    /// When the clock of the scores began.
    since: Instant,
}

/// Requests that were sent to an upstream, by the connections that they went over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    /// Over new ones.
    pub opened: u64,
    /// Over kept ones.
    pub reused: u64,
}

impl Members {
    /// Replaces the endpoints. What algorithms compute of them is computed here, not while somebody waits.
    fn replace(&self, endpoints: Arc<Endpoints>) {
        let needs = self.needs.lock();
        let before = self.roster.load().endpoints().clone();
        if before == endpoints {
            return;
        }
        // What stays is known all the time.
        if let Some(told) = self.told.get() {
            told.add(&endpoints);
        }
        self.renew(endpoints, &needs);
        if let Some(told) = self.told.get() {
            told.remove(&before);
        }
    }

    fn tell(&self, addresses: &Arc<Addresses>) {
        let _needs = self.needs.lock();
        if self.told.set(addresses.clone()).is_ok() {
            addresses.add(self.roster.load().endpoints());
        }
    }

    fn prepare(&self, more: &Needs) {
        let mut needs = self.needs.lock();
        let mut all = needs.clone();
        all.scores |= more.scores;
        all.ring |= more.ring;
        all.sessions |= more.sessions;
        all.subsets |= more.subsets;
        if all != *needs {
            *needs = all;
            self.renew(self.roster.load().endpoints().clone(), &needs);
        }
    }

    fn renew(&self, endpoints: Arc<Endpoints>, needs: &Needs) {
        let before = self.roster.load();
        let next = Roster::new(&self.id, endpoints, Some(&before), needs, self.now());
        let is_served = !next.endpoints().usable().is_empty();
        if !is_served {
            self.is_served.store(false, Ordering::Release);
        }
        self.roster.store(Arc::new(next));
        self.is_served.store(is_served, Ordering::Release);
    }

    /// Milliseconds on the clock of the scores; it begins again after 49 days.
    fn now(&self) -> u32 {
        self.since.elapsed().as_millis() as u32
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if let Some(told) = self.told.get() {
            told.remove(self.roster.load().endpoints());
        }
    }
}

impl Group {
    /// A group with these endpoints.
    pub fn new(id: UpstreamId, endpoints: Arc<Endpoints>) -> Self {
        let needs = Needs::default();
        let roster = Roster::new(&id, endpoints, None, &needs, 0);
        let members = Arc::new(Members {
            id: id.clone(),
            is_served: AtomicBool::new(!roster.endpoints().usable().is_empty()),
            roster: ArcSwap::from_pointee(roster),
            needs: Mutex::new(needs),
            told: OnceLock::new(),
            since: Instant::now(),
        });
        Self {
            id,
            members,
            turns: RoundRobin::default(),
            opened: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            resolving: Mutex::new(None),
        }
    }

    /// Replaces the endpoints.
    pub fn replace(&self, endpoints: Arc<Endpoints>) {
        self.members.replace(endpoints);
    }

    /// From now on its addresses are known there, as long as it lives.
    pub fn tell(&self, addresses: &Arc<Addresses>) {
        self.members.tell(addresses);
    }

    /// Follows a name of a namespace from now on (host and port of an ExternalName Service), or none.
    pub fn resolve(
        &self,
        namespace: &Arc<str>,
        name: Option<(String, u16)>,
        resolver: &Arc<Resolver>,
    ) {
        let mut resolving = self.resolving.lock();
        if resolving.as_ref().map(|(name, _)| name) == name.as_ref() {
            return;
        }
        *resolving = name.map(|name| {
            let members = self.members.clone();
            let tell = move |endpoints| members.replace(endpoints);
            (name.clone(), resolver.follow(namespace, name, tell))
        });
    }

    /// The name that is followed, without its port.
    pub fn followed(&self) -> Option<String> {
        let resolving = self.resolving.lock();
        resolving.as_ref().map(|((host, _), _)| host.clone())
    }

    /// That nobody is there, as it is told: of a name it is DNS that has to be looked at, and no Service.
    pub fn nobody(&self) -> String {
        match self.followed() {
            Some(host) => format!("no address of {host} is known"),
            None => format!("upstream {} has no endpoints", self.id),
        }
    }

    /// The endpoint whose turn it is, if there is any.
    pub fn pick(&self) -> Option<SocketAddr> {
        self.turns.next(self.members.roster.load().endpoints().usable())
    }

    /// From now on what a rule asks for is computed whenever the endpoints change.
    pub fn prepare(&self, rule: &Rule) {
        self.members.prepare(&rule.needs());
    }

    /// The endpoints with what rules ask for.
    pub fn roster(&self) -> arc_swap::Guard<Arc<Roster>> {
        self.members.roster.load()
    }

    /// Milliseconds on the clock of the scores.
    pub fn now(&self) -> u32 {
        self.members.now()
    }

    /// The endpoints now.
    pub fn endpoints(&self) -> Arc<Endpoints> {
        self.members.roster.load().endpoints().clone()
    }

    /// Notes that a request went over a new connection, or over one that was kept. All threads share the counts, as
    /// they share whose turn it is.
    pub fn note(&self, reused: bool) {
        let count = if reused { &self.reused } else { &self.opened };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests went over new and over kept connections.
    pub fn reuse(&self) -> Reuse {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Reuse { opened: get(&self.opened), reused: get(&self.reused) }
    }

    /// Whether no endpoint can take a request.
    pub fn is_empty(&self) -> bool {
        !self.members.is_served.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Rule};
    use model::policy::Algorithm;
    use model::{Endpoints, UpstreamId};
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;
    use stream::Resolver;
    use testkit::eventually;
    use testkit::name_server::{NameServer, Says};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    async fn until(group: &Group, wanted: &[IpAddr]) {
        let wanted: Vec<_> = wanted.iter().map(|ip| SocketAddr::new(*ip, 80)).collect();
        let there = || async { (group.endpoints().ready == wanted).then_some(()) };
        let found = eventually(PATIENCE, there).await;
        assert!(found.is_some(), "{:?} instead of {wanted:?}", group.endpoints().ready);
    }

    #[tokio::test]
    async fn a_group_without_endpoints_is_told_by_the_name_that_it_follows() {
        let resolver = Arc::new(Resolver::default());
        let group = Group::new(UpstreamId::new("url:login.invalid:443"), Arc::default());
        assert_eq!(group.nobody(), "upstream url:login.invalid:443 has no endpoints");
        group.resolve(&"".into(), Some(("login.invalid".to_owned(), 443)), &resolver);
        assert_eq!(group.nobody(), "no address of login.invalid is known");
    }

    #[test]
    fn a_group_is_empty_exactly_while_it_has_nobody_to_pick() {
        let at = |ip| SocketAddr::new(ip, 80);
        let endpoints = |ready: &[IpAddr], draining: &[IpAddr]| {
            let all = |ips: &[IpAddr]| ips.iter().map(|ip| at(*ip)).collect();
            Arc::new(Endpoints { ready: all(ready), draining: all(draining) })
        };
        let rule = Rule { algorithm: Algorithm::Ewma, session: None };
        for begin in [endpoints(&[], &[]), endpoints(&[ip(1)], &[])] {
            let group = Group::new(UpstreamId::new("demo-web-80"), begin);
            assert_eq!(group.is_empty(), group.pick().is_none());
            for (ready, draining) in
                [(&[ip(1)][..], &[][..]), (&[], &[ip(2)]), (&[], &[]), (&[ip(3)], &[ip(2)])]
            {
                group.replace(endpoints(ready, draining));
                assert_eq!(group.is_empty(), ready.is_empty() && draining.is_empty());
                assert_eq!(group.is_empty(), group.pick().is_none());
            }
            group.prepare(&rule);
            assert!(!group.is_empty());
        }
    }

    #[tokio::test]
    async fn a_group_follows_a_name_and_one_that_does_not_exist_leaves_nobody() {
        let server = NameServer::start().await;
        let resolver = Arc::new(Resolver::from(server.resolver(PATIENCE)));
        server.says("db.example", Says::Addresses(vec![ip(7)], 1));
        let before = Endpoints { ready: vec![SocketAddr::new(ip(1), 80)], draining: Vec::new() };
        let group = Group::new(UpstreamId::new("demo-db-80"), Arc::new(before));
        group.resolve(&"demo".into(), Some(("db.example".to_owned(), 80)), &resolver);
        until(&group, &[ip(7)]).await;
        server.says("db.example", Says::Addresses(vec![ip(8)], 1));
        until(&group, &[ip(8)]).await;
        group.resolve(&"demo".into(), Some(("nobody.example".to_owned(), 80)), &resolver);
        until(&group, &[]).await;
    }
}
