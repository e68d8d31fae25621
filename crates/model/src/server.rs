//! Virtual servers and their locations.

use crate::policy::{Canary, Ciphers, ClientCertificate, Policy, RawServer};
use crate::snippet::Scope;
use crate::{Alias, CertificateId, Kind, Origin, Pattern, ServerName, Template, UpstreamId};
use serde::Serialize;
use std::sync::Arc;

/// A host with everything that answers under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Its host.
    pub name: ServerName,
    /// Its other names (`server-alias`); a name leads to one server only.
    pub aliases: Vec<Alias>,
    /// The name with (or without) `www.` whose requests are redirected to this host (`from-to-www-redirect`).
    pub www: Option<ServerName>,
    /// Where requests for exactly `/` are redirected to (`app-root`, compat/behaviour.md section 12.1).
    pub app_root: Option<Template>,
    /// The certificate for handshakes that name the host. Assigning one (even the default one) switches the HTTPS
    /// redirect on (compat/behaviour.md section 11).
    pub certificate: Option<CertificateId>,
    /// The namespace that owns the host, where it matters whose certificate it has; none: any is as good.
    #[serde(skip)]
    pub owner: Option<Arc<str>>,
    /// What is asked of all clients of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// Cipher suites of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ciphers: Option<Ciphers>,
    /// Where TLS connections that name the host go as they are (`ssl-passthrough`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passthrough: Option<UpstreamId>,
    /// What its `server-snippet` means, with the ConfigMap's behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Arc<Scope>>,
    /// The `server-snippet` that counts, in nginx's own words.
    #[serde(skip)]
    pub raw: Option<Arc<RawServer>>,
    /// Whether every path of the host is a regular expression (compat/behaviour.md section 5).
    pub regex: bool,
    /// The paths of the host, compiled: whoever compiles one of them gets these as long as the server is there.
    #[serde(skip)]
    pub patterns: Vec<Pattern>,
    /// What answers, in the order of age of the Ingresses; there is always a prefix `/`.
    pub locations: Vec<Arc<Location>>,
}

/// Whether hosts with these owners are of one, as far as it matters: the certificate of a wildcard host redirects plain
/// requests of hosts below it only where they are, since that is for their owner to say (docs/tenancy.md).
pub fn is_same_owner(one: Option<&Arc<str>>, other: Option<&Arc<str>>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}

impl Server {
    /// A server without locations or anything else.
    pub fn new(name: ServerName) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            www: None,
            app_root: None,
            certificate: None,
            owner: None,
            client_certificate: None,
            ciphers: None,
            passthrough: None,
            snippet: None,
            raw: None,
            regex: false,
            patterns: Vec::new(),
            locations: Vec::new(),
        }
    }

    /// Whether requests for this name are redirected to that of the server (`from-to-www-redirect`).
    pub fn redirects(&self, host: &str) -> bool {
        self.www.as_ref().is_some_and(|www| www.as_str() == host)
    }

    /// Every name that leads here besides its own: aliases, and the one that is redirected.
    pub fn other_names(&self) -> Vec<Alias> {
        let www = self.www.clone().map(Alias::Name);
        self.aliases.iter().cloned().chain(www).collect()
    }

    /// Those of them that have the certificate of the server if it covers them (compat/behaviour.md section 11).
    pub fn certified_names(&self) -> impl Iterator<Item = ServerName> {
        let aliases = self.aliases.iter().filter_map(|alias| match alias {
            Alias::Name(name) => Some(name.clone()),
            Alias::Below(parent) => Some(ServerName::new(format!("*.{parent}"))),
            Alias::Beginning(_) | Alias::Pattern(_) => None,
        });
        aliases.chain(self.www.clone())
    }
}

/// The upstream of `--default-backend-service`, which answers where no path of an Ingress does.
pub const DEFAULT_BACKEND: &str = "upstream-default-backend";

/// How paths begin that are an engine's own; no Ingress has one.
pub const RESERVED_PATHS: &str = "/_fairway-";

/// How a path is written in an Ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PathKind {
    /// The whole path must be equal.
    Exact,
    /// The path or anything below it; `ImplementationSpecific` is the same.
    Prefix,
}

/// A path of a host and what happens to its requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The path as the Ingress has it.
    pub path: String,
    /// How the path is meant.
    pub kind: PathKind,
    /// Whether use-regex or an effective rewrite-target applies: then the path is never split into `/p` and `/p/`.
    pub whole: bool,
    /// Where its requests go.
    pub backend: Backend,
    /// Another upstream for some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Box<Canary>>,
    /// The Service of the path, for logs, metrics and error pages; shared by the paths that lead there.
    pub service: Option<Arc<ServiceRef>>,
    /// The Ingress that owns the path; shared by its paths.
    pub origin: Option<Arc<Origin>>,
    /// Everything else that was asked for; shared by the paths of an Ingress that agree.
    pub policy: Arc<Policy>,
}

impl Location {
    /// The namespace of its Ingress; empty for what is nobody's.
    pub fn namespace(&self) -> Arc<str> {
        self.origin.as_ref().map_or_else(Arc::default, |origin| Arc::clone(&origin.namespace))
    }

    /// Whether who answers next hangs on how long answers took, here or at its canary.
    pub fn is_measured(&self) -> bool {
        let canary = self.canary.as_ref();
        self.policy.balance.is_measured()
            || canary.is_some_and(|canary| canary.balance.is_measured())
    }

    /// Whether it is the `/` that a host has because every host has one, and that no Ingress has written. What it has
    /// of an Ingress are its settings: those of the Ingress that made the host.
    pub fn is_of_host(&self) -> bool {
        let is_root = self.path == "/" && self.kind == PathKind::Prefix;
        let of_ingress = self.origin.as_ref().is_none_or(|origin| origin.kind == Kind::Ingress);
        let is_nobodys = match &self.backend {
            Backend::NotFound | Backend::Denied(_) => true,
            // A path may be written without a Service: then its upstream is none of the controller's.
            Backend::Upstream(id) => id.as_str() == DEFAULT_BACKEND,
            Backend::Broken(_) => false,
        };
        is_root && of_ingress && self.service.is_none() && is_nobodys
    }
}

/// Where requests of a location go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Backend {
    /// To an upstream of [`crate::Configuration::upstreams`].
    Upstream(UpstreamId),
    /// To the built-in answer: 404.
    NotFound,
    /// Nowhere, for the reason given: 503.
    Denied(String),
    /// To a backend that a route names in vain, for the reason given: 500.
    Broken(String),
}

/// A Service port as an Ingress names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceRef {
    /// Namespace of the Service.
    pub namespace: Arc<str>,
    /// Name of the Service.
    pub name: Arc<str>,
    /// Port by number or name, as written.
    pub port: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::{Backend, DEFAULT_BACKEND, Location, PathKind, ServiceRef};
    use crate::{Kind, Origin, UpstreamId};
    use std::sync::Arc;

    #[test]
    fn only_the_root_that_no_ingress_has_written_is_of_the_host() {
        let root = Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::NotFound,
            canary: None,
            service: None,
            origin: Some(Origin::new(Kind::Ingress, "demo", "shop").into()),
            policy: Arc::default(),
        };
        let upstream = |name: &str| Backend::Upstream(UpstreamId::new(name));
        let own = [Backend::NotFound, Backend::Denied("a".to_owned()), upstream(DEFAULT_BACKEND)];
        for backend in own {
            assert!(Location { backend, ..root.clone() }.is_of_host());
        }
        assert!(Location { origin: None, ..root.clone() }.is_of_host());
        let service =
            ServiceRef { namespace: "demo".into(), name: "web".into(), port: "80".into() };
        let route = Some(Origin::new(Kind::HttpRoute, "demo", "shop").into());
        for written in [
            Location { path: "/a".to_owned(), ..root.clone() },
            Location { kind: PathKind::Exact, ..root.clone() },
            Location {
                service: Some(service.into()),
                backend: upstream("demo-web-80"),
                ..root.clone()
            },
            Location { backend: upstream("demo-INVALID"), ..root.clone() },
            Location { origin: route, ..root.clone() },
        ] {
            assert!(!written.is_of_host(), "{written:?}");
        }
    }
}
