//! Virtual servers and their locations.

use crate::policy::{Canary, Ciphers, ClientCertificate, Policy};
use crate::snippet::Scope;
use crate::{Alias, CertificateId, Origin, Pattern, ServerName, Template, UpstreamId};
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
    /// Whether every path of the host is a regular expression (compat/behaviour.md section 5).
    pub regex: bool,
    /// The paths of the host, compiled: whoever compiles one of them gets these as long as the server is there.
    #[serde(skip)]
    pub patterns: Vec<Pattern>,
    /// What answers, in the order of age of the Ingresses; there is always a prefix `/`.
    pub locations: Vec<Arc<Location>>,
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
            client_certificate: None,
            ciphers: None,
            passthrough: None,
            snippet: None,
            regex: false,
            patterns: Vec::new(),
            locations: Vec::new(),
        }
    }

    /// Every name that leads here besides its own: aliases, and the one that is redirected.
    pub fn other_names(&self) -> Vec<Alias> {
        let www = self.www.clone().map(Alias::Name);
        self.aliases.iter().cloned().chain(www).collect()
    }
}

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
    /// The Service of the path, for logs, metrics and error pages.
    pub service: Option<ServiceRef>,
    /// The Ingress that owns the path.
    pub origin: Option<Origin>,
    /// Everything else that was asked for; shared by the paths of an Ingress that agree.
    pub policy: Arc<Policy>,
}

impl Location {
    /// The namespace of its Ingress; empty for what is nobody's.
    pub fn namespace(&self) -> Arc<str> {
        self.origin.as_ref().map_or_else(Arc::default, |origin| Arc::clone(&origin.namespace))
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
