//! The routes that are served, as one list that can be searched and sorted: those of Ingresses, of Gateways, and ports.

mod addresses;
mod gateway;
mod route;

pub(crate) use gateway::{asks, listener};
pub(crate) use route::{Place, Route, backend};

use addresses::Addresses;
use controller::Known;
use parking_lot::Mutex;
use std::sync::Arc;

/// What is served at one moment.
pub(crate) struct Served {
    known: Arc<Known>,
    /// In the order of hosts, then as the host has them.
    pub(crate) routes: Vec<Route>,
}

/// The routes of what is known, worked out once for all who ask.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Arc<Served>>>);

impl Kept {
    pub(crate) fn of(&self, known: &Arc<Known>) -> Arc<Served> {
        let mut kept = self.0.lock();
        match kept.as_ref().filter(|served| Arc::ptr_eq(&served.known, known)) {
            Some(served) => served.clone(),
            None => kept.insert(Arc::new(Served::new(known.clone()))).clone(),
        }
    }

    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl Served {
    fn new(known: Arc<Known>) -> Self {
        let serving = &known.serving;
        let of_ingresses = serving.servers.values().flat_map(|server| {
            let of = |location| Route::of_ingress(server, location, serving);
            server.locations.iter().map(of).collect::<Vec<_>>()
        });
        let mut routes: Vec<Route> = of_ingresses.collect();
        gateway::add(&mut routes, serving);
        // What a host has stays in its order.
        routes.sort_by(|one, other| one.host.cmp(&other.host));
        Self { routes, known }
    }

    /// Those in which all words are found, be it in an address behind them.
    pub(crate) fn found(&self, words: &[String]) -> impl Iterator<Item = &Route> {
        let addresses = Addresses::with(words, &self.routes);
        self.routes.iter().filter(move |route| {
            let has = |(at, word): (usize, &String)| route.has(word) || addresses.are_of(route, at);
            words.iter().enumerate().all(has)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Served;
    use controller::Known;
    use model::policy::ClientCertificate;
    use model::{Backend, Endpoints, Kind, Location, Origin, PathKind, Server, ServerName};
    use model::{Configuration, Upstream, UpstreamId};
    use std::net::SocketAddr;
    use std::sync::Arc;

    const ENDPOINTS: u32 = 5000;

    fn address(number: u32) -> SocketAddr {
        let [_, a, b, c] = number.to_be_bytes();
        SocketAddr::from(([10, a, b, c], 8080))
    }

    fn location(upstream: &str) -> Arc<Location> {
        Arc::new(Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::Upstream(UpstreamId::new(upstream)),
            canary: None,
            service: None,
            origin: Some(Origin::new(Kind::Ingress, "shop", "front").into()),
            policy: Arc::default(),
        })
    }

    fn served() -> Served {
        let mut serving = Configuration::default();
        for (host, upstream, first) in [("big.test", "big", 0), ("small.test", "small", ENDPOINTS)]
        {
            let ready = (first..ENDPOINTS).chain(first..=first).map(address).collect();
            let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
            let id = UpstreamId::new(upstream);
            let upstream =
                Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
            serving.upstreams.insert(id.clone(), Arc::new(upstream));
            let mut server = Server::new(ServerName::new(host));
            server.locations.push(location(id.as_str()));
            serving.servers.insert(server.name.clone(), Arc::new(server));
        }
        Served::new(Arc::new(Known { serving, ..Known::default() }))
    }

    #[test]
    fn every_endpoint_of_a_service_is_found_by_its_address() {
        let served = served();
        let found = |words: &[&str]| -> Vec<&str> {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            served.found(&words).map(|route| &*route.host).collect()
        };
        let (last, own) = (address(ENDPOINTS - 1).to_string(), address(ENDPOINTS).to_string());
        assert_eq!(found(&[&last]), ["big.test"], "the last one of many");
        assert_eq!(found(&[&own]), ["small.test"]);
        assert_eq!(found(&["10."]), ["big.test", "small.test"]);
        assert_eq!(found(&[&last, "small"]), [""; 0]);
        assert_eq!(found(&[&last, "shop/front"]), ["big.test"], "words and addresses together");
        assert_eq!(found(&["10.255."]), [""; 0]);
    }

    /// Every request is answered 403, whoever is behind its path.
    #[test]
    fn a_host_without_the_authorities_of_its_clients_is_shown_as_denied_and_why() {
        let mut serving = Configuration::default();
        let mut server = Server::new(ServerName::new("shop.test"));
        server.locations.push(location("shop-web-80"));
        let reason = "auth-tls-secret: Secret shop/ca does not exist".to_owned();
        server.client_certificate = Some(ClientCertificate::Closed(reason));
        serving.servers.insert(server.name.clone(), Arc::new(server));
        let served = Served::new(Arc::new(Known { serving, ..Known::default() }));
        let told: Vec<_> = served.found(&[]).map(|route| &*route.backend).collect();
        assert_eq!(told, ["403: auth-tls-secret: Secret shop/ca does not exist"]);
        assert_eq!(served.found(&["does not exist".to_owned()]).count(), 1);
    }
}
