//! Groups of endpoints that share the traffic of one Service port.

use crate::{Outside, UpstreamId};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The addresses behind a Service port at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Endpoints {
    /// Endpoints that are ready, in the order the cluster gave them.
    pub ready: Vec<SocketAddr>,
    /// Endpoints that are terminating but still serve: used when nothing is ready (compat/decisions.md).
    pub draining: Vec<SocketAddr>,
}

impl Endpoints {
    /// Those at the addresses of a name to which it may lead.
    pub fn of_name(
        addresses: impl IntoIterator<Item = IpAddr>,
        port: u16,
        outside: &Outside,
    ) -> Self {
        let addresses = addresses.into_iter().filter(|address| outside.permits(*address));
        let mut ready: Vec<_> = addresses.map(|address| SocketAddr::new(address, port)).collect();
        ready.sort_unstable();
        ready.dedup();
        Self { ready, draining: Vec::new() }
    }

    /// The endpoints that take new requests: the ready ones, else those that still serve.
    pub fn usable(&self) -> &[SocketAddr] {
        if self.ready.is_empty() { &self.draining } else { &self.ready }
    }
}

/// A Service port with its endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upstream {
    /// Its name.
    pub id: UpstreamId,
    /// Who is behind it.
    pub endpoints: Arc<Endpoints>,
    /// A name to resolve instead of endpoints: host and port of an ExternalName Service.
    pub external: Option<(String, u16)>,
    /// The namespace of the Service; none of a host that a URL names.
    #[serde(skip)]
    pub namespace: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::Endpoints;
    use crate::Outside;

    #[test]
    fn a_name_never_leads_to_this_machine() {
        let addresses =
            ["127.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "192.0.2.1", "192.0.2.1"];
        let addresses = addresses.map(|address| address.parse().expect("an address"));
        let endpoints = Endpoints::of_name(addresses, 80, &Outside::default());
        assert_eq!(endpoints.ready, ["192.0.2.1:80".parse().expect("an address")]);
    }
}
