//! The parts of Kubernetes objects that Fairway reads; everything else is dropped before it is cached.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Namespace and name; the namespace is empty for what has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// A key in the order of the texts `namespace/name`, by which it is decided who goes before of two objects that are as
/// old. The order of keys themselves is another one: a namespace whose name goes on with `-` stands behind, not before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InText<K>(pub K);

impl<K: Borrow<ObjectKey> + Eq> Ord for InText<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other): (&ObjectKey, &ObjectKey) = (self.0.borrow(), other.0.borrow());
        // No name has a slash, so that it ends the namespace in either text.
        let order = with_slash(&one.namespace).cmp(with_slash(&other.namespace));
        order.then_with(|| one.name.cmp(&other.name))
    }
}

fn with_slash(namespace: &str) -> impl Iterator<Item = u8> {
    namespace.bytes().chain([b'/'])
}

impl<K: Borrow<ObjectKey> + Eq> PartialOrd for InText<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`, for Events; empty if a file has none.
    pub uid: Arc<str>,
    /// `metadata.creationTimestamp` in seconds since the epoch; zero if absent.
    pub created: i64,
    /// `metadata.generation`; zero if absent.
    pub generation: i64,
    /// `metadata.resourceVersion`; empty if a file has none.
    pub resource_version: Arc<str>,
    /// `metadata.annotations`, without `kubectl.kubernetes.io/last-applied-configuration`.
    pub annotations: BTreeMap<String, String>,
}

/// networking.k8s.io/v1 Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// Name, annotations and so on.
    pub meta: Meta,
    /// `spec.ingressClassName`.
    pub class: Option<String>,
    /// `spec.defaultBackend`.
    pub default_backend: Option<Box<IngressBackend>>,
    /// `spec.rules`.
    pub rules: Vec<IngressRule>,
    /// `spec.tls`.
    pub tls: Vec<IngressTls>,
    /// `status.loadBalancer.ingress`: (hostname, ip), needed to write only real changes.
    pub addresses: Vec<(Option<String>, Option<String>)>,
}

/// Bytes that a TLS section counts for besides: hosts that nobody lists are looked for in the certificate of each.
const SECTION: usize = 64;

impl Ingress {
    /// The bytes of it that take time to read: annotations, hosts, paths and TLS sections.
    pub fn said(&self) -> usize {
        let annotations =
            self.meta.annotations.iter().map(|(name, value)| name.len() + value.len());
        let rules = self.rules.iter().map(|rule| {
            let paths = rule.paths.iter().flatten().map(|path| path.path.len());
            rule.host.as_ref().map_or(0, String::len) + paths.sum::<usize>()
        });
        let sections = self.tls.iter().map(|section| {
            let texts = section.hosts.iter().chain(&section.secret);
            SECTION + texts.map(String::len).sum::<usize>()
        });
        annotations.chain(rules).chain(sections).sum()
    }
}

/// One of `spec.rules`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRule {
    /// `host`; none is the catch-all.
    pub host: Option<String>,
    /// `http.paths`; none if the rule has no `http`.
    pub paths: Option<Vec<IngressPath>>,
}

/// One of `http.paths`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPath {
    /// `path`, as written; empty if absent.
    pub path: String,
    /// `pathType`.
    pub kind: PathType,
    /// `backend`.
    pub backend: IngressBackend,
}

/// `pathType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathType {
    /// `Exact`.
    Exact,
    /// `Prefix`.
    Prefix,
    /// `ImplementationSpecific`, absent or unknown.
    ImplementationSpecific,
}

/// A backend of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngressBackend {
    /// A Service and one of its ports; no port if neither number nor name is given.
    Service {
        /// Name of the Service.
        name: String,
        /// Its port.
        port: Option<PortRef>,
    },
    /// `resource`, or nothing at all: not a Service.
    Other,
}

/// A port by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortRef {
    /// Its number.
    Number(u16),
    /// Its name.
    Name(String),
}

/// One of `spec.tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressTls {
    /// `hosts`.
    pub hosts: Vec<String>,
    /// `secretName`.
    pub secret: Option<String>,
}

/// networking.k8s.io/v1 IngressClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressClass {
    /// Name and so on.
    pub meta: Meta,
    /// `spec.controller`.
    pub controller: String,
}

/// v1 Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name, annotations and so on.
    pub meta: Meta,
    /// `spec.type`; `ClusterIP` if absent.
    pub kind: String,
    /// `spec.clusterIP`; none for `None` and empty.
    pub cluster_ip: Option<String>,
    /// `spec.externalName`.
    pub external_name: Option<String>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<String>,
    /// `status.loadBalancer.ingress`: (hostname, ip).
    pub addresses: Vec<(Option<String>, Option<String>)>,
    /// `spec.trafficDistribution`.
    pub traffic_distribution: Option<String>,
    /// `spec.ports`.
    pub ports: Vec<ServicePort>,
    /// If Fairway made it for a Gateway: what it has because of that.
    pub made_for: Option<Box<MadeFor>>,
}

/// What a Service that was made for a Gateway has because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// `metadata.name` of the Gateway.
    pub name: Arc<str>,
    /// `metadata.uid` of the Gateway.
    pub uid: Arc<str>,
    /// `metadata.labels` of the Service.
    pub labels: BTreeMap<String, String>,
    /// `spec.loadBalancerIP`.
    pub asks_for: Option<String>,
}

/// One of `spec.ports` of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// `name`.
    pub name: Option<String>,
    /// `port`.
    pub port: u16,
    /// `targetPort`.
    pub target: Option<PortRef>,
    /// `protocol`; `TCP` if absent.
    pub protocol: String,
    /// Whether `appProtocol` is `kubernetes.io/h2c`: HTTP/2 in clear, without asking first.
    pub http2: bool,
    /// Whether `appProtocol` is one that is spoken under TLS: `https`, `kubernetes.io/wss`.
    pub tls: bool,
}

/// discovery.k8s.io/v1 EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Name and so on.
    pub meta: Meta,
    /// Label `kubernetes.io/service-name`.
    pub service: Option<Arc<str>>,
    /// Fairway wrote it for a Gateway: label `endpointslice.kubernetes.io/managed-by` is `fairway`, or it is annotated.
    pub is_ours: bool,
    /// `addressType` is `FQDN`: the addresses are names.
    pub fqdn: bool,
    /// `ports`.
    pub ports: Vec<SlicePort>,
    /// `endpoints`.
    pub endpoints: Vec<SliceEndpoint>,
}

/// One of `ports` of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePort {
    /// `name`; none if absent or empty.
    pub name: Option<String>,
    /// `port`; none means all ports.
    pub port: Option<u16>,
    /// `protocol`; `TCP` if absent.
    pub protocol: String,
}

/// One of `endpoints` of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceEndpoint {
    /// `addresses`.
    pub addresses: Vec<Arc<str>>,
    /// `conditions.ready`; true if absent.
    pub ready: bool,
    /// `conditions.serving`; as `ready` if absent.
    pub serving: bool,
    /// `conditions.terminating`; false if absent.
    pub terminating: bool,
    /// `hints.forZones`.
    pub zones: Option<Vec<String>>,
}

/// v1 Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Name and so on.
    pub meta: Meta,
    /// `type`.
    pub kind: String,
    /// `data`; none until something refers to the Secret: the Snapshot keeps no other Secret's data.
    pub data: Option<BTreeMap<String, Vec<u8>>>,
}

/// v1 ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMap {
    /// Name and so on.
    pub meta: Meta,
    /// `data`.
    pub data: BTreeMap<String, String>,
}

/// v1 Namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Name and so on.
    pub meta: Meta,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::{InText, ObjectKey};
    use std::cmp::Ordering;

    #[test]
    fn keys_can_have_the_order_of_their_texts() {
        let namespaces = ["", "team", "team-b", "team.b", "team0", "tea", "x"];
        let names = ["", "a", "b-c", "z"];
        let keys =
            || namespaces.into_iter().flat_map(|one| names.map(|name| ObjectKey::new(one, name)));
        let text = |key: &ObjectKey| format!("{}/{}", key.namespace, key.name);
        for one in keys() {
            for other in keys() {
                let order = InText(&one).cmp(&InText(&other));
                assert_eq!(order, text(&one).cmp(&text(&other)), "{one:?} {other:?}");
            }
        }
        assert!(InText(ObjectKey::new("team-b", "x")) < InText(ObjectKey::new("team", "x")));
        let (one, other) = (ObjectKey::new("a/b", "c"), ObjectKey::new("a", "b/c"));
        assert_ne!(InText(one).cmp(&InText(other)), Ordering::Equal, "two keys are never the same");
    }
}
