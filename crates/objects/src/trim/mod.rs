//! From the objects of the Kubernetes API to what Fairway keeps of them.

use crate::{
    ConfigMap, EndpointSlice, Ingress, IngressBackend, IngressClass, IngressPath, IngressRule,
    IngressTls, MadeFor, Meta, Namespace, ObjectKey, PathType, PortRef, Secret, Service,
    ServicePort, SliceEndpoint, SlicePort,
};
use crate::{Kind, Object};
use k8s_openapi::api::{
    core::v1 as core, discovery::v1 as discovery, networking::v1 as networking,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The label that says who made an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// What it says where that was Fairway.
pub const MANAGER: &str = "fairway";
/// Says who made an EndpointSlice.
pub const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The annotation of what is made for Gateways: `spec.controllerName` of their class. Whoever has another name leaves
/// it alone.
pub const GATEWAY_CONTROLLER: &str = "fairway/gateway-controller-name";
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A kind of the API that Fairway keeps something of.
pub trait Trim: DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;

    /// What Fairway keeps, or what is wrong with the object.
    fn trim(self) -> Result<Object, String>;
}

impl Trim for networking::Ingress {
    const KIND: Kind = Kind::Ingress;

    fn trim(self) -> Result<Object, String> {
        let spec = self.spec.unwrap_or_default();
        let addresses = self.status.and_then(|s| s.load_balancer).and_then(|l| l.ingress);
        Ok(Object::Ingress(Arc::new(Ingress {
            meta: meta(self.metadata, Annotations::Kept)?,
            class: spec.ingress_class_name,
            default_backend: spec
                .default_backend
                .map(|found| backend(found, "spec.defaultBackend").map(Box::new))
                .transpose()?,
            rules: each(spec.rules, rule)?,
            tls: each(spec.tls, |_, tls| Ok(ingress_tls(tls)))?,
            addresses: each(addresses, |_, address| Ok((address.hostname, address.ip)))?,
        })))
    }
}

/// The parts of an Ingress in JSON that Fairway reads, or what is wrong with it.
pub fn parse_ingress(json: &str) -> Result<Arc<Ingress>, String> {
    match parse::<networking::Ingress>(json)? {
        Object::Ingress(ingress) => Ok(ingress),
        _ => Err("it is no Ingress".to_owned()),
    }
}

/// The same of a Service.
pub fn parse_service(json: &str) -> Result<Arc<Service>, String> {
    match parse::<core::Service>(json)? {
        Object::Service(service) => Ok(service),
        _ => Err("it is no Service".to_owned()),
    }
}

/// The same of a Secret, with its data.
pub fn parse_secret(json: &str) -> Result<Arc<Secret>, String> {
    match parse::<core::Secret>(json)? {
        Object::Secret(secret) => Ok(secret),
        _ => Err("it is no Secret".to_owned()),
    }
}

pub(crate) fn parse<K: Trim>(json: &str) -> Result<Object, String> {
    serde_json::from_str::<K>(json).map_err(|error| error.to_string())?.trim()
}

fn ingress_tls(tls: networking::IngressTLS) -> IngressTls {
    let mut hosts = tls.hosts.unwrap_or_default();
    hosts.shrink_to_fit();
    IngressTls { hosts, secret: tls.secret_name.filter(|name| !name.is_empty()) }
}

fn rule(index: usize, rule: networking::IngressRule) -> Result<IngressRule, String> {
    let paths =
        rule.http.map(|http| each(Some(http.paths), |at, path| ingress_path(path, index, at)));
    Ok(IngressRule { host: rule.host.filter(|host| !host.is_empty()), paths: paths.transpose()? })
}

fn ingress_path(
    path: networking::HTTPIngressPath,
    rule: usize,
    at: usize,
) -> Result<IngressPath, String> {
    Ok(IngressPath {
        path: path.path.unwrap_or_default(),
        kind: match path.path_type.as_str() {
            "Exact" => PathType::Exact,
            "Prefix" => PathType::Prefix,
            _ => PathType::ImplementationSpecific,
        },
        backend: backend(path.backend, &format!("spec.rules[{rule}].http.paths[{at}].backend"))?,
    })
}

fn backend(backend: networking::IngressBackend, field: &str) -> Result<IngressBackend, String> {
    let Some(service) = backend.service else { return Ok(IngressBackend::Other) };
    let port = match service.port {
        None => None,
        Some(networking::ServiceBackendPort { number: None | Some(0), name }) => {
            name.filter(|name| !name.is_empty()).map(PortRef::Name)
        }
        Some(networking::ServiceBackendPort { number: Some(number), .. }) => {
            let field = || format!("{field}.service.port.number");
            Some(PortRef::Number(port_number(number, field)?))
        }
    };
    Ok(IngressBackend::Service { name: service.name, port })
}

impl Trim for networking::IngressClass {
    const KIND: Kind = Kind::IngressClass;

    fn trim(self) -> Result<Object, String> {
        Ok(Object::IngressClass(Arc::new(IngressClass {
            meta: unversioned(self.metadata, Annotations::Kept)?,
            controller: self.spec.and_then(|spec| spec.controller).unwrap_or_default(),
        })))
    }
}

impl Trim for core::Service {
    const KIND: Kind = Kind::Service;

    fn trim(self) -> Result<Object, String> {
        let spec = self.spec.unwrap_or_default();
        let addresses = self.status.and_then(|s| s.load_balancer).and_then(|l| l.ingress);
        let mut external_ips = spec.external_ips.unwrap_or_default();
        external_ips.shrink_to_fit();
        let made_for = made_for(&self.metadata).map(|owner| {
            let labels = self.metadata.labels.clone().unwrap_or_default();
            let asks_for = spec.load_balancer_ip.filter(|ip| !ip.is_empty());
            let (name, uid) = (owner.name.as_str().into(), owner.uid.as_str().into());
            Box::new(MadeFor { name, uid, labels, asks_for })
        });
        Ok(Object::Service(Arc::new(Service {
            made_for,
            meta: unversioned(self.metadata, Annotations::Kept)?,
            kind: spec.type_.unwrap_or_else(|| "ClusterIP".to_owned()),
            cluster_ip: spec.cluster_ip.filter(|ip| !ip.is_empty() && ip != "None"),
            external_name: spec.external_name.filter(|name| !name.is_empty()),
            external_ips,
            addresses: each(addresses, |_, address| Ok((address.hostname, address.ip)))?,
            traffic_distribution: spec.traffic_distribution,
            ports: each(spec.ports, service_port)?,
        })))
    }
}

/// The Gateway that Fairway made an object for.
pub fn made_for(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let by = meta.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY));
    let owners = by.filter(|by| *by == MANAGER).and(meta.owner_references.as_ref());
    let is_gateway = |owner: &&OwnerReference| {
        owner.kind == "Gateway" && owner.api_version.starts_with(crate::gateway::GROUP)
    };
    owners.into_iter().flatten().find(is_gateway)
}

/// Whether an `appProtocol` is spoken under TLS: a name of IANA, whose case says nothing, or one of Kubernetes.
fn is_under_tls(name: &str) -> bool {
    name.eq_ignore_ascii_case("https") || name == "kubernetes.io/wss"
}

fn service_port(index: usize, port: core::ServicePort) -> Result<ServicePort, String> {
    let target = match port.target_port {
        // Zero and empty mean "the same as the port", as they do to the API server.
        None | Some(IntOrString::Int(0)) => None,
        Some(IntOrString::Int(number)) => Some(PortRef::Number(port_number(number, || {
            format!("spec.ports[{index}].targetPort")
        })?)),
        Some(IntOrString::String(name)) => (!name.is_empty()).then_some(PortRef::Name(name)),
    };
    Ok(ServicePort {
        name: port.name.filter(|name| !name.is_empty()),
        port: port_number(port.port, || format!("spec.ports[{index}].port"))?,
        target,
        protocol: port.protocol.unwrap_or_else(tcp),
        http2: port.app_protocol.as_deref() == Some("kubernetes.io/h2c"),
        tls: port.app_protocol.is_some_and(|name| is_under_tls(&name)),
    })
}

impl Trim for discovery::EndpointSlice {
    const KIND: Kind = Kind::EndpointSlice;

    fn trim(self) -> Result<Object, String> {
        let label = |name| self.metadata.labels.as_ref().and_then(|labels| labels.get(name));
        let service = label(SERVICE_NAME).map(|name| Arc::from(name.as_str()));
        // Whoever labels all that there is leaves the annotation.
        let mut annotations = self.metadata.annotations.iter();
        let is_signed = annotations.any(|all| all.contains_key(GATEWAY_CONTROLLER));
        let is_ours = is_signed || label(SLICE_MANAGED_BY).is_some_and(|by| by == MANAGER);
        Ok(Object::EndpointSlice(Arc::new(EndpointSlice {
            meta: unversioned(self.metadata, Annotations::Dropped)?,
            service,
            is_ours,
            fqdn: self.address_type == "FQDN",
            ports: each(self.ports, slice_port)?,
            endpoints: each(self.endpoints, |_, endpoint| slice_endpoint(endpoint))?,
        })))
    }
}

fn slice_port(index: usize, port: discovery::EndpointPort) -> Result<SlicePort, String> {
    let number = port.port.map(|port| port_number(port, || format!("ports[{index}].port")));
    Ok(SlicePort {
        name: port.name.filter(|name| !name.is_empty()),
        port: number.transpose()?,
        protocol: port.protocol.unwrap_or_else(tcp),
    })
}

fn slice_endpoint(endpoint: discovery::Endpoint) -> Result<SliceEndpoint, String> {
    let conditions = endpoint.conditions.unwrap_or_default();
    let ready = conditions.ready.unwrap_or(true);
    let zones = endpoint.hints.and_then(|hints| hints.for_zones);
    Ok(SliceEndpoint {
        addresses: each(Some(endpoint.addresses), |_, address| Ok(address.into()))?,
        ready,
        serving: conditions.serving.unwrap_or(ready),
        terminating: conditions.terminating.unwrap_or(false),
        zones: zones.map(|zones| each(Some(zones), |_, zone| Ok(zone.name))).transpose()?,
    })
}

impl Trim for core::Secret {
    const KIND: Kind = Kind::Secret;

    fn trim(self) -> Result<Object, String> {
        let data = self.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
        // The API server folds `stringData` into `data`; a file may still have it, and it wins there.
        let plain = self.string_data.unwrap_or_default().into_iter();
        Ok(Object::Secret(Arc::new(Secret {
            meta: meta(self.metadata, Annotations::Dropped)?,
            kind: self.type_.unwrap_or_else(|| "Opaque".to_owned()),
            data: Some(data.chain(plain.map(|(key, value)| (key, value.into_bytes()))).collect()),
        })))
    }
}

impl Trim for core::ConfigMap {
    const KIND: Kind = Kind::ConfigMap;

    fn trim(self) -> Result<Object, String> {
        Ok(Object::ConfigMap(Arc::new(ConfigMap {
            meta: unversioned(self.metadata, Annotations::Dropped)?,
            data: self.data.unwrap_or_default(),
        })))
    }
}

impl Trim for core::Namespace {
    const KIND: Kind = Kind::Namespace;

    fn trim(mut self) -> Result<Object, String> {
        let labels = self.metadata.labels.take().unwrap_or_default();
        let meta = unversioned(self.metadata, Annotations::Dropped)?;
        Ok(Object::Namespace(Arc::new(Namespace { meta, labels })))
    }
}

/// Whether anybody reads the annotations of a kind.
pub(crate) enum Annotations {
    Kept,
    Dropped,
}

pub(crate) fn meta(meta: ObjectMeta, annotations: Annotations) -> Result<Meta, String> {
    let kept: BTreeMap<String, String> = match annotations {
        Annotations::Dropped => BTreeMap::new(),
        Annotations::Kept => {
            let mut annotations = meta.annotations.unwrap_or_default();
            annotations.remove(LAST_APPLIED);
            annotations
        }
    };
    let name = meta.name.filter(|name| !name.is_empty());
    Ok(Meta {
        key: ObjectKey::new(
            meta.namespace.unwrap_or_default(),
            name.ok_or("metadata.name is missing; give the object a name")?,
        ),
        uid: meta.uid.unwrap_or_default().into(),
        created: meta.creation_timestamp.map_or(0, |time| time.0.as_second()),
        generation: meta.generation.unwrap_or_default(),
        resource_version: meta.resource_version.unwrap_or_default().into(),
        annotations: kept,
    })
}

/// The same of a kind of which nobody asks for the version: then an object that only has another one is the same.
pub(crate) fn unversioned(metadata: ObjectMeta, annotations: Annotations) -> Result<Meta, String> {
    let found = meta(metadata, annotations)?;
    Ok(Meta { generation: 0, resource_version: Arc::default(), ..found })
}

/// Turns each item into what is kept of it. `collect` would keep them in the room that the originals took, which is
/// several times too large.
pub(crate) fn each<T, U>(
    items: Option<Vec<T>>,
    mut turn: impl FnMut(usize, T) -> Result<U, String>,
) -> Result<Vec<U>, String> {
    let items = items.unwrap_or_default();
    let mut kept = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        kept.push(turn(index, item)?);
    }
    Ok(kept)
}

pub(crate) fn port_number(number: i32, field: impl FnOnce() -> String) -> Result<u16, String> {
    match u16::try_from(number) {
        Ok(port) if port > 0 => Ok(port),
        Ok(_) => Err(format!("{} is missing or 0; a port is a number from 1 to 65535", field())),
        Err(_) => Err(format!("{} is {number}; a port is a number from 1 to 65535", field())),
    }
}

fn tcp() -> String {
    "TCP".to_owned()
}

/// An object as tests write it.
#[cfg(test)]
pub(crate) fn trimmed<K: Trim>(object: serde_json::Value) -> Object {
    serde_json::from_value::<K>(object).expect("the object fits its kind").trim().expect("trims")
}

#[cfg(test)]
mod tests;
