//! From the JSON of gateway.networking.k8s.io to what is kept of it. What a route asks for and nobody reads is noted,
//! never passed over.

use super::grants::MOST;
use super::grpc::GrpcSpec;
use super::parse_rules::{RawRule, Unread, Unsaid};
use super::route::{HttpRoute, ParentRef};
use super::streams::StreamSpec;
use super::tls::{FrontendTls, FrontendValidation};
use super::{
    FromNamespaces, GROUP, Gateway, GatewayClass, GrantFrom, GrantTo, Infrastructure, Listener,
    ListenerTls, ObjectRef, ReferenceGrant, Selector,
};
use crate::trim::{self, Annotations, each, meta, port_number, unversioned};
use crate::{Kind, Object, Trim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the API server calls a kind, and where its objects have their metadata.
macro_rules! resource {
    ($name:ident, $kind:ident, $scope:ty) => {
        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = Kind::$kind.api_version();
            const GROUP: &'static str = GROUP;
            const KIND: &'static str = Kind::$kind.name();
            const VERSION: &'static str = Kind::$kind.version();
            const URL_PATH_SEGMENT: &'static str = Kind::$kind.plural();
            type Scope = $scope;
        }

        impl k8s_openapi::Metadata for $name {
            type Ty = ObjectMeta;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(super) use resource;

macro_rules! raw {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $scope:ty, $spec:ty $(, status $status:ty)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        pub struct $name {
            metadata: ObjectMeta,
            #[serde(default)]
            spec: $spec,
            $(#[serde(default)]
            status: $status,)?
        }

        resource! { $name, $kind, $scope }
    };
}

type Everywhere = k8s_openapi::ClusterResourceScope;
pub(super) type InNamespaces = k8s_openapi::NamespaceResourceScope;

raw! {
    /// A GatewayClass as the API server has it.
    RawGatewayClass, GatewayClass, Everywhere, ClassSpec
}
raw! {
    /// A Gateway as the API server has it.
    RawGateway, Gateway, InNamespaces, GatewaySpec, status GatewayTold
}
raw! {
    /// An HTTPRoute as the API server has it.
    RawHttpRoute, HttpRoute, InNamespaces, RouteSpec, status RouteTold
}
raw! {
    /// A GRPCRoute as the API server has it.
    RawGrpcRoute, GrpcRoute, InNamespaces, GrpcSpec, status RouteTold
}
raw! {
    /// A TCPRoute as the API server has it.
    RawTcpRoute, TcpRoute, InNamespaces, StreamSpec, status RouteTold
}
raw! {
    /// A UDPRoute as the API server has it.
    RawUdpRoute, UdpRoute, InNamespaces, StreamSpec, status RouteTold
}
raw! {
    /// A TLSRoute as the API server has it.
    RawTlsRoute, TlsRoute, InNamespaces, StreamSpec, status RouteTold
}
raw! {
    /// A ReferenceGrant as the API server has it: in the version that all bundles of CRDs serve.
    RawReferenceGrant, ReferenceGrant, InNamespaces, GrantSpec
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClassSpec {
    controller_name: String,
    parameters_ref: Unread,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GatewaySpec {
    gateway_class_name: String,
    listeners: Vec<RawListener>,
    addresses: Vec<RawAddress>,
    infrastructure: RawInfrastructure,
    tls: RawGatewayTls,
    allowed_listeners: RawAllowedListeners,
}

/// `spec.tls` of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawGatewayTls {
    backend: RawTowardsBackends,
    frontend: Option<RawFrontend>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTowardsBackends {
    client_certificate_ref: Option<RawRef>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawFrontend {
    default: RawAsked,
    per_port: Vec<RawPort>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawAsked {
    validation: Option<RawFrontendValidation>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawPort {
    port: i32,
    tls: RawAsked,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawFrontendValidation {
    #[serde(rename = "caCertificateRefs")]
    authorities: Vec<RawRef>,
    mode: Option<String>,
}

impl RawAsked {
    fn read(self) -> Option<FrontendValidation> {
        self.validation.map(|raw| FrontendValidation {
            authorities: raw.authorities.into_iter().map(|one| one.read("", "ConfigMap")).collect(),
            falls_back: raw.mode.as_deref() == Some("AllowInsecureFallback"),
        })
    }
}

impl RawGatewayTls {
    /// The certificate for backends, and what is asked of clients.
    fn read(self) -> Result<(Option<ObjectRef>, Option<FrontendTls>), String> {
        let certificate = self.backend.client_certificate_ref.map(|one| one.read("", "Secret"));
        let Some(RawFrontend { default, per_port }) = self.frontend else {
            return Ok((certificate, None));
        };
        let ports = per_port.into_iter().enumerate().map(|(index, one)| {
            let field = || format!("spec.tls.frontend.perPort[{index}].port");
            Ok((port_number(one.port, field)?, one.tls.read()))
        });
        let ports = ports.collect::<Result<_, String>>()?;
        Ok((certificate, Some(FrontendTls { default: default.read(), ports })))
    }
}

/// `status` of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct GatewayTold {
    addresses: Vec<RawAddress>,
}

/// `status` of a route.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RouteTold {
    parents: Vec<ParentTold>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParentTold {
    controller_name: String,
}

impl RouteTold {
    /// Who has told the route something.
    pub(super) fn by(self) -> Vec<String> {
        let mut names: Vec<String> =
            self.parents.into_iter().map(|parent| parent.controller_name).collect();
        names.sort();
        names.dedup();
        names.shrink_to_fit();
        names
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawInfrastructure {
    parameters_ref: Unread,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawAddress {
    r#type: Option<String>,
    value: String,
    routability: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawListener {
    name: String,
    hostname: Option<String>,
    port: i32,
    protocol: String,
    tls: Option<RawTls>,
    allowed_routes: RawAllowed,
    filters: Unread,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTls {
    mode: Option<String>,
    certificate_refs: Vec<RawRef>,
    frontend_validation: Unread,
}

/// `spec.allowedListeners` of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawAllowedListeners {
    namespaces: RawFrom,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawAllowed {
    namespaces: Option<RawFrom>,
    kinds: Vec<RawKind>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawFrom {
    from: Option<String>,
    selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawKind {
    group: Option<String>,
    kind: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawRef {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl RawRef {
    pub(super) fn read(self, group: &'static str, kind: &'static str) -> ObjectRef {
        ObjectRef {
            group: word(self.group, group),
            kind: word(self.kind, kind),
            namespace: self.namespace.filter(|namespace| !namespace.is_empty()),
            name: self.name,
        }
    }
}

/// What was said, or what stands for nothing; nearly always the same, which takes no memory of its own.
fn word(said: Option<String>, usual: &'static str) -> Cow<'static, str> {
    match said {
        Some(said) if said != usual => said.into(),
        Some(_) | None => usual.into(),
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RouteSpec {
    parent_refs: Vec<RawParent>,
    hostnames: Vec<String>,
    rules: Option<Vec<RawRule>>,
    use_default_gateways: Unread,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawParent {
    #[serde(flatten)]
    object: RawRef,
    section_name: Option<String>,
    port: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct GrantSpec {
    from: Vec<GrantFrom>,
    to: Vec<GrantTo>,
}

impl Trim for RawGatewayClass {
    const KIND: Kind = Kind::GatewayClass;

    fn trim(self) -> Result<Object, String> {
        Ok(Object::GatewayClass(Arc::new(GatewayClass {
            meta: meta(self.metadata, Annotations::Dropped)?,
            controller: self.spec.controller_name,
            has_parameters: self.spec.parameters_ref.is_some(),
        })))
    }
}

impl Trim for RawGateway {
    const KIND: Kind = Kind::Gateway;

    fn trim(self) -> Result<Object, String> {
        let GatewaySpec {
            gateway_class_name,
            listeners,
            addresses,
            infrastructure,
            tls,
            allowed_listeners,
        } = self.spec;
        let of_type = |kind: Option<String>| kind.unwrap_or_else(|| "IPAddress".to_owned());
        let (backend_certificate, frontend) = tls.read()?;
        let listeners = listeners.into_iter().enumerate();
        let listeners = listeners.map(|(index, listener)| listener.read(index));
        let mut routability = addresses.iter().filter_map(|raw| raw.routability.clone());
        let routability = routability.find(|asked| !asked.is_empty());
        Ok(Object::Gateway(Arc::new(Gateway {
            meta: meta(self.metadata, Annotations::Dropped)?,
            class: gateway_class_name,
            listeners: listeners.collect::<Result<_, _>>()?,
            addresses: addresses.into_iter().map(|raw| (of_type(raw.r#type), raw.value)).collect(),
            routability,
            published: self.status.addresses.into_iter().map(|raw| raw.value).collect(),
            has_parameters: infrastructure.parameters_ref.is_some(),
            infrastructure: Arc::new(Infrastructure {
                labels: infrastructure.labels,
                annotations: infrastructure.annotations,
            }),
            backend_certificate,
            frontend,
            allowed_sets: allowed_sets(allowed_listeners.namespaces),
        })))
    }
}

impl RawListener {
    pub(super) fn read(self, index: usize) -> Result<Listener, String> {
        let certificates = |refs: Vec<RawRef>| refs.into_iter().map(|one| one.read("", "Secret"));
        let kinds = self.allowed_routes.kinds.into_iter();
        let group = |group: Option<String>| group.unwrap_or_else(|| GROUP.to_owned());
        Ok(Listener {
            name: self.name,
            hostname: self.hostname.filter(|hostname| !hostname.is_empty()),
            port: port_number(self.port, || format!("spec.listeners[{index}].port"))?,
            protocol: self.protocol,
            tls: self.tls.map(|tls| ListenerTls {
                passthrough: tls.mode.as_deref() == Some("Passthrough"),
                certificates: certificates(tls.certificate_refs).collect(),
                asks_clients: tls.frontend_validation.is_some(),
            }),
            namespaces: from_namespaces(self.allowed_routes.namespaces.unwrap_or_default()),
            kinds: kinds.map(|kind| (group(kind.group), kind.kind)).collect(),
            asks_filters: self.filters.is_some(),
        })
    }
}

/// Without a word nobody may add listeners.
fn allowed_sets(raw: RawFrom) -> FromNamespaces {
    if raw.from.is_some() { from_namespaces(raw) } else { FromNamespaces::None }
}

fn from_namespaces(raw: RawFrom) -> FromNamespaces {
    match (raw.from.as_deref(), raw.selector) {
        (None | Some("Same"), _) => FromNamespaces::Same,
        (Some("All"), _) => FromNamespaces::All,
        (Some("Selector"), Some(selector)) => FromNamespaces::Selector(Selector(selector)),
        _ => FromNamespaces::None,
    }
}

impl Trim for RawReferenceGrant {
    const KIND: Kind = Kind::ReferenceGrant;

    fn trim(self) -> Result<Object, String> {
        for (field, count) in [("from", self.spec.from.len()), ("to", self.spec.to.len())] {
            if count > MOST {
                return Err(format!(
                    "spec.{field}: {count} entries, at most {MOST} are allowed: use several ReferenceGrants"
                ));
            }
        }
        Ok(Object::ReferenceGrant(Arc::new(ReferenceGrant {
            meta: unversioned(self.metadata, Annotations::Dropped)?,
            from: self.spec.from,
            to: self.spec.to,
        })))
    }
}

/// The parts of a route of this kind in JSON that Fairway reads, or what is wrong with it.
pub fn parse_route(kind: Kind, json: &str) -> Result<Object, String> {
    match kind {
        Kind::HttpRoute => trim::parse::<RawHttpRoute>(json),
        Kind::GrpcRoute => trim::parse::<RawGrpcRoute>(json),
        Kind::TcpRoute => trim::parse::<RawTcpRoute>(json),
        Kind::UdpRoute => trim::parse::<RawUdpRoute>(json),
        Kind::TlsRoute => trim::parse::<RawTlsRoute>(json),
        other => Err(format!("{} is no kind of routes", other.name())),
    }
}

pub(super) fn parents(raw: Vec<RawParent>) -> Result<Vec<ParentRef>, String> {
    each(Some(raw), |index, parent| {
        let field = || format!("spec.parentRefs[{index}].port");
        let port = parent.port.map(|port| port_number(port, field)).transpose()?;
        let object = parent.object.read(GROUP, "Gateway");
        Ok(ParentRef { object, section: parent.section_name, port })
    })
}

impl Trim for RawGrpcRoute {
    const KIND: Kind = Kind::GrpcRoute;

    fn trim(self) -> Result<Object, String> {
        self.spec.read(self.metadata, self.status)
    }
}

impl Trim for RawTcpRoute {
    const KIND: Kind = Kind::TcpRoute;

    fn trim(self) -> Result<Object, String> {
        self.spec.read(self.metadata, Self::KIND, self.status)
    }
}

impl Trim for RawUdpRoute {
    const KIND: Kind = Kind::UdpRoute;

    fn trim(self) -> Result<Object, String> {
        self.spec.read(self.metadata, Self::KIND, self.status)
    }
}

impl Trim for RawTlsRoute {
    const KIND: Kind = Kind::TlsRoute;

    fn trim(self) -> Result<Object, String> {
        self.spec.read(self.metadata, Self::KIND, self.status)
    }
}

impl Trim for RawHttpRoute {
    const KIND: Kind = Kind::HttpRoute;

    fn trim(self) -> Result<Object, String> {
        let RouteSpec { parent_refs, mut hostnames, rules, use_default_gateways } = self.spec;
        hostnames.shrink_to_fit();
        let mut unread = Unsaid::default();
        unread.note(use_default_gateways.is_some(), || "spec.useDefaultGateways".to_owned());
        let parents = parents(parent_refs)?;
        let rules = rules.unwrap_or_else(|| vec![RawRule::default()]);
        let rules = each(Some(rules), |index, rule| {
            rule.read(&format!("spec.rules[{index}]"), &mut unread)
        })?;
        Ok(Object::HttpRoute(Arc::new(HttpRoute {
            meta: meta(self.metadata, Annotations::Dropped)?,
            kind: Self::KIND,
            parents,
            hostnames,
            rules,
            unread: unread.0,
            told_by: self.status.by(),
        })))
    }
}
