//! The whole of what should be served.

use crate::{
    Certificate, CertificateId, Global, Listener, ListenerId, RouteHost, RouteKey, Server,
    ServerName, Stream, StreamPort, TlsRoute, Upstream, UpstreamId,
};
use imbl::OrdMap;
use serde::Serialize;
use std::sync::Arc;

/// What should be served. Persistent maps: a copy costs nothing and two versions are compared by what differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Configuration {
    /// Settings of the process as a whole.
    pub global: Arc<Global>,
    /// The servers by host; `_` is always present once translated.
    pub servers: OrdMap<ServerName, Arc<Server>>,
    /// The hosts of Gateways, beside the servers of Ingresses.
    #[serde(skip_serializing_if = "OrdMap::is_empty")]
    pub routes: OrdMap<RouteKey, Arc<RouteHost>>,
    /// The listeners of Gateways that have an address of their own.
    #[serde(skip_serializing_if = "OrdMap::is_empty")]
    pub listeners: OrdMap<ListenerId, Arc<Listener>>,
    /// Hosts of listeners whose connections are carried on.
    #[serde(skip_serializing_if = "OrdMap::is_empty")]
    pub tls_routes: OrdMap<RouteKey, Arc<TlsRoute>>,
    /// The upstreams that locations name.
    pub upstreams: OrdMap<UpstreamId, Arc<Upstream>>,
    /// The certificates that servers name.
    pub certificates: OrdMap<CertificateId, Arc<Certificate>>,
    /// The certificate for handshakes without a better one; the self-signed one of the process if absent.
    pub default_certificate: Option<CertificateId>,
    /// TCP and UDP services, by the port they are reached by.
    #[serde(skip_serializing_if = "OrdMap::is_empty")]
    pub streams: OrdMap<StreamPort, Arc<Stream>>,
}

/// A host of Gateways, and the certificate that it names.
pub type Certified<'a> = (&'a ServerName, Option<&'a CertificateId>);

impl Configuration {
    /// The hosts of Gateways that share the process's addresses.
    pub fn certified_at_shared(&self) -> impl Iterator<Item = Certified<'_>> {
        let shared = self.routes.iter().filter(|(key, _)| key.is_shared());
        shared.map(|(key, host)| (&key.host, host.certificate.as_ref()))
    }

    /// Those of listeners that have an address of their own: where one has no certificate, its handshakes fail.
    pub fn certified_at_own(&self) -> impl Iterator<Item = Certified<'_>> {
        self.listeners.iter().map(|(id, one)| (&id.hosts, one.certificate.as_ref()))
    }
}
