//! Objects of Kubernetes with everything at its default, for tests.
#![allow(dead_code, reason = "the bench uses a part of it")]

use objects::{
    ConfigMap, EndpointSlice, Ingress, IngressBackend, IngressClass, IngressPath, IngressRule,
    IngressTls, Meta, ObjectKey, PathType, PortRef, Secret, Service, ServicePort, SliceEndpoint,
    SlicePort, Snapshot,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, name)
}

pub(crate) fn meta(namespace: &str, name: &str) -> Meta {
    Meta {
        key: key(namespace, name),
        uid: "".into(),
        created: 0,
        generation: 0,
        resource_version: "".into(),
        annotations: BTreeMap::new(),
    }
}

pub(crate) fn ingress(namespace: &str, name: &str) -> Ingress {
    Ingress {
        meta: meta(namespace, name),
        class: Some("nginx".to_owned()),
        default_backend: None,
        rules: Vec::new(),
        tls: Vec::new(),
        addresses: Vec::new(),
    }
}

pub(crate) fn annotate(ingress: &mut Ingress, name: &str, value: &str) {
    ingress
        .meta
        .annotations
        .insert(format!("nginx.ingress.kubernetes.io/{name}"), value.to_owned());
}

pub(crate) fn backend(service: &str, port: Option<PortRef>) -> IngressBackend {
    IngressBackend::Service { name: service.to_owned(), port }
}

pub(crate) fn path(path: &str, kind: PathType, backend: IngressBackend) -> IngressPath {
    IngressPath { path: path.to_owned(), kind, backend }
}

pub(crate) fn rule(host: Option<&str>, paths: Option<Vec<IngressPath>>) -> IngressRule {
    IngressRule { host: host.map(str::to_owned), paths }
}

/// One host with one Prefix path to port 80 of a Service.
pub(crate) fn simple(namespace: &str, name: &str, host: &str, at: &str, service: &str) -> Ingress {
    let to = backend(service, Some(PortRef::Number(80)));
    Ingress {
        rules: vec![rule(Some(host), Some(vec![path(at, PathType::Prefix, to)]))],
        ..ingress(namespace, name)
    }
}

pub(crate) fn tls(hosts: &[&str], secret: Option<&str>) -> IngressTls {
    IngressTls {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        secret: secret.map(str::to_owned),
    }
}

pub(crate) fn class(name: &str, controller: &str) -> IngressClass {
    IngressClass { meta: meta("", name), controller: controller.to_owned() }
}

pub(crate) fn service(namespace: &str, name: &str, port: u16) -> Service {
    Service {
        meta: meta(namespace, name),
        kind: "ClusterIP".to_owned(),
        cluster_ip: None,
        external_name: None,
        external_ips: Vec::new(),
        addresses: Vec::new(),
        traffic_distribution: None,
        made_for: None,
        ports: vec![ServicePort {
            name: Some("http".to_owned()),
            port,
            target: Some(PortRef::Number(8000)),
            protocol: "TCP".to_owned(),
            http2: false,
            tls: false,
        }],
    }
}

pub(crate) fn endpoint(address: &str) -> SliceEndpoint {
    SliceEndpoint {
        addresses: vec![address.into()],
        ready: true,
        serving: true,
        terminating: false,
        zones: None,
    }
}

pub(crate) fn slice(
    namespace: &str,
    name: &str,
    service: &str,
    endpoints: Vec<SliceEndpoint>,
) -> EndpointSlice {
    let port =
        SlicePort { name: Some("http".to_owned()), port: Some(8000), protocol: "TCP".to_owned() };
    EndpointSlice {
        meta: meta(namespace, name),
        service: Some(service.into()),
        is_ours: false,
        fqdn: false,
        ports: vec![port],
        endpoints,
    }
}

pub(crate) fn secret(namespace: &str, name: &str, data: &[(&str, &str)]) -> Secret {
    let data =
        data.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    Secret { meta: meta(namespace, name), kind: "kubernetes.io/tls".to_owned(), data: Some(data) }
}

pub(crate) fn config_map(namespace: &str, name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data = data.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ConfigMap { meta: meta(namespace, name), data }
}

/// A self-signed certificate for these names, and its key.
pub(crate) fn certificate(names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate can be made");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub(crate) fn put_ingress(snapshot: &mut Snapshot, ingress: Ingress) {
    snapshot.ingresses.insert(ingress.meta.key.clone(), Arc::new(ingress));
}

pub(crate) fn put_service(snapshot: &mut Snapshot, service: Service) {
    snapshot.services.insert(service.meta.key.clone(), Arc::new(service));
}

pub(crate) fn put_secret(snapshot: &mut Snapshot, secret: Secret) {
    snapshot.secrets.insert(secret.meta.key.clone(), Arc::new(secret));
}

pub(crate) fn put_config_map(snapshot: &mut Snapshot, config_map: ConfigMap) {
    snapshot.config_maps.insert(config_map.meta.key.clone(), Arc::new(config_map));
}

pub(crate) fn put_class(snapshot: &mut Snapshot, class: IngressClass) {
    snapshot.classes.get_or_insert_default().insert(class.meta.key.clone(), Arc::new(class));
}

pub(crate) fn put_slice(snapshot: &mut Snapshot, slice: EndpointSlice) {
    let name = slice.service.clone().expect("slices of tests have a Service");
    let service = ObjectKey { namespace: slice.meta.key.namespace.clone(), name };
    let mut slices =
        snapshot.slices.get(&service).map(|slices| (**slices).clone()).unwrap_or_default();
    slices.insert(slice.meta.key.clone(), Arc::new(slice));
    snapshot.slices.insert(service, Arc::new(slices));
}

/// A cluster with the class `nginx`.
pub(crate) fn cluster() -> Snapshot {
    let mut snapshot = Snapshot::default();
    put_class(&mut snapshot, class("nginx", "k8s.io/ingress-nginx"));
    snapshot
}

/// The location of a host with this path and kind.
pub(crate) fn location<'a>(
    configuration: &'a model::Configuration,
    host: &str,
    path: &str,
    kind: model::PathKind,
) -> Option<&'a model::Location> {
    let server = configuration.servers.get(&model::ServerName::new(host))?;
    server
        .locations
        .iter()
        .map(|location| &**location)
        .find(|location| location.path == path && location.kind == kind)
}

/// The upstream behind a Prefix path of a host; none if it is denied or goes nowhere.
pub(crate) fn upstream(
    configuration: &model::Configuration,
    host: &str,
    path: &str,
) -> Option<String> {
    match &location(configuration, host, path, model::PathKind::Prefix)?.backend {
        model::Backend::Upstream(id) => Some(id.to_string()),
        model::Backend::NotFound | model::Backend::Denied(_) | model::Backend::Broken(_) => None,
    }
}

/// Whether a Prefix path of a host answers 503.
pub(crate) fn is_denied(configuration: &model::Configuration, host: &str, path: &str) -> bool {
    let found = location(configuration, host, path, model::PathKind::Prefix);
    found.is_some_and(|location| matches!(location.backend, model::Backend::Denied(_)))
}

/// Objects of the Gateway API, with the class that is ours.
pub(crate) fn of_gateways(text: &str) -> Snapshot {
    const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway}
spec: {controllerName: fairway/gateway-controller}
---
";
    objects::snapshot_of([(std::path::Path::new("in.yaml"), format!("{CLASS}{text}").as_str())])
}

/// A route of any kind that leads to these backends, as text; `fields` are the others of its spec, in lines.
pub(crate) fn route(
    [kind, namespace, name, day]: [&str; 4],
    parents: &str,
    fields: &str,
    backends: &str,
) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{namespace: {namespace}, name: {name}, creationTimestamp: '2026-01-0{day}T00:00:00Z'}}
spec:
  parentRefs: [{parents}]
  {fields}
  rules: [{{backendRefs: [{backends}]}}]
"
    )
}
