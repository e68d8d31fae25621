//! The parts of gateway.networking.k8s.io objects that Fairway reads. The types are our own: those of the crate
//! `gateway-api` come with `kube`, which this crate must never see, and hold several times what anybody reads.

mod backend_tls;
mod duration;
mod filters;
mod grants;
mod grpc;
mod parse;
mod parse_rules;
mod route;
mod selector;
mod session;
mod sets;
mod streams;
mod tls;

pub use backend_tls::RawBackendTlsPolicy;
pub use grants::Grants;
pub use parse_rules::short;
pub use route::{
    BackendRef, CorsFilter, ExternalAuth, HeaderChange, HeaderChanges, HttpRoute, MethodMatch,
    NameMatch, ParentRef, PathMatch, PathModifier, Redirect, RequestMirror, Retry, Rewrite,
    RouteFilter, RouteMatch, RouteRule, SessionPersistence, StreamRoute, ValueMatch,
};

pub use selector::Selector;
pub use sets::RawListenerSet;
pub use tls::{BackendTlsPolicy, FrontendTls, FrontendValidation, PolicyTarget};

pub use crate::kind::GROUP;

use crate::{Meta, Namespace, ObjectKey};
use imbl::OrdMap;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// GatewayClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayClass {
    /// Name and so on.
    pub meta: Meta,
    /// `spec.controllerName`.
    pub controller: String,
    /// Whether there is a `spec.parametersRef`.
    pub has_parameters: bool,
}

/// Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// Name and so on.
    pub meta: Meta,
    /// `spec.gatewayClassName`.
    pub class: String,
    /// `spec.listeners`.
    pub listeners: Vec<Listener>,
    /// `spec.addresses`: type and value.
    pub addresses: Vec<(String, String)>,
    /// The first `routability` that one of them asks for.
    pub routability: Option<String>,
    /// The values of `status.addresses`.
    pub published: Vec<String>,
    /// Whether there is a `spec.infrastructure.parametersRef`.
    pub has_parameters: bool,
    /// `spec.infrastructure`: what is made for the Gateway carries it.
    pub infrastructure: Arc<Infrastructure>,
    /// `spec.tls.backend.clientCertificateRef`.
    pub backend_certificate: Option<ObjectRef>,
    /// `spec.tls.frontend`.
    pub frontend: Option<FrontendTls>,
    /// `spec.allowedListeners.namespaces`: whose ListenerSets may add listeners.
    pub allowed_sets: FromNamespaces,
}

/// ListenerSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSet {
    /// Name and so on.
    pub meta: Meta,
    /// `spec.parentRef`.
    pub parent: ObjectRef,
    /// `spec.listeners`.
    pub listeners: Vec<Listener>,
}

impl ListenerSet {
    /// The Gateway that it adds to; none if it names something else.
    pub fn gateway(&self) -> Option<ObjectKey> {
        let ObjectRef { group, kind, namespace, name } = &self.parent;
        let own = &self.meta.key.namespace;
        let namespace = namespace.as_deref().map_or_else(|| own.clone(), Arc::from);
        (group == GROUP && kind == "Gateway").then(|| ObjectKey::new(namespace, name.as_str()))
    }
}

/// Labels and annotations of what is made for a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Infrastructure {
    /// `labels`.
    pub labels: BTreeMap<String, String>,
    /// `annotations`.
    pub annotations: BTreeMap<String, String>,
}

/// One of `spec.listeners`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// `name`.
    pub name: String,
    /// `hostname`; none matches all.
    pub hostname: Option<String>,
    /// `port`.
    pub port: u16,
    /// `protocol`.
    pub protocol: String,
    /// `tls`.
    pub tls: Option<ListenerTls>,
    /// `allowedRoutes.namespaces`.
    pub namespaces: FromNamespaces,
    /// `allowedRoutes.kinds`: group and kind; empty: what fits the protocol.
    pub kinds: Vec<(String, String)>,
    /// Whether there are `filters`, which later versions of the specification have.
    pub asks_filters: bool,
}

/// `tls` of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Whether the mode is `Passthrough`.
    pub passthrough: bool,
    /// `certificateRefs`.
    pub certificates: Vec<ObjectRef>,
    /// Whether there is a `frontendValidation`, as older versions of the specification have it.
    pub asks_clients: bool,
}

/// A reference to another object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its group; empty is core.
    pub group: Cow<'static, str>,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// Its namespace; none: that of whoever refers.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectRef {
    /// The object that it leads to from one in this namespace.
    pub fn key(&self, own: &Arc<str>) -> ObjectKey {
        let namespace = self.namespace.as_deref().map_or_else(|| own.clone(), Arc::from);
        ObjectKey::new(namespace, self.name.as_str())
    }
}

/// From which namespaces routes, or ListenerSets, may attach.
#[derive(Clone, Debug, PartialEq)]
pub enum FromNamespaces {
    /// From that of the Gateway.
    Same,
    /// From all.
    All,
    /// From none, or in a way that is not known.
    None,
    /// From those with such labels.
    Selector(Selector),
}

impl FromNamespaces {
    /// Whether what says so, and is in the namespace `own` itself, takes something from that one.
    pub fn take(
        &self,
        own: &str,
        namespace: &Arc<str>,
        all: &OrdMap<ObjectKey, Arc<Namespace>>,
    ) -> bool {
        match self {
            Self::All => true,
            Self::Same => *own == **namespace,
            Self::None => false,
            Self::Selector(selector) => {
                let found = all.get(&ObjectKey::new("", namespace.clone()));
                found.is_some_and(|found| selector.matches(&found.labels))
            }
        }
    }
}

/// ReferenceGrant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceGrant {
    /// Name and so on.
    pub meta: Meta,
    /// `spec.from`: group, kind and namespace.
    pub from: Vec<GrantFrom>,
    /// `spec.to`: group, kind and name; no name: all.
    pub to: Vec<GrantTo>,
}

/// One of `spec.from` of a ReferenceGrant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GrantFrom {
    /// `group`; empty is core.
    #[serde(default)]
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `namespace`.
    pub namespace: String,
}

/// One of `spec.to` of a ReferenceGrant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GrantTo {
    /// `group`; empty is core.
    #[serde(default)]
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `name`; none: all.
    #[serde(default)]
    pub name: Option<String>,
}

pub use parse::{
    RawGateway, RawGatewayClass, RawGrpcRoute, RawHttpRoute, RawReferenceGrant, RawTcpRoute,
    RawTlsRoute, RawUdpRoute, parse_route,
};
