//! The Gateway: a listener for HTTP, one for each host and certificate, and the grants that Secrets elsewhere need.

use crate::lost::{Ledger, Weight};
use crate::made::{API, Made};
use crate::{names, redirects};
use model::{Alias, CertificateId, Configuration, Server};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use translate::Options;

/// The GatewayClass of Fairway, unless another one is wanted.
pub const CLASS: &str = "fairway";

/// How the new objects are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GatewayClass; written, too, if it is [`CLASS`] and not there.
    pub class: String,
    /// Namespace and name of the Gateway; a second one has `-2` behind its name.
    pub gateway: ObjectKey,
}

/// Listeners that a Gateway may have.
const MOST: usize = 64;
/// The name of the listener without TLS.
const HTTP: &str = "http";

/// What a listener does with TLS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tls {
    Terminate(ObjectKey),
    Passthrough,
}

/// All listeners, with the Gateway that each is of.
#[derive(Debug)]
pub(crate) struct Listeners {
    gateway: ObjectKey,
    /// By host name; those with TLS.
    by_host: BTreeMap<String, Tls>,
}

/// The host as the Gateway API writes it; none is any.
pub(crate) fn host_name(server: &str) -> Option<&str> {
    (server != "_").then_some(server)
}

/// All host names of a server: its own, and its aliases as far as they are names.
pub(crate) fn host_names(server: &Server) -> Vec<String> {
    let own = host_name(server.name.as_str()).map(str::to_owned);
    let alias = |alias: &Alias| match alias {
        Alias::Name(name) => Some(name.to_string()),
        Alias::Below(parent) => Some(format!("*.{parent}")),
        Alias::Beginning(_) | Alias::Pattern(_) => None,
    };
    // An alias of the catch-all is caught anyway.
    let aliases = server.aliases.iter().filter_map(alias).filter(|_| own.is_some());
    own.iter().cloned().chain(aliases).collect()
}

/// Who owns a server: the Ingress of its first location.
pub(crate) fn owner(server: &Server) -> Option<ObjectKey> {
    let origin = server.locations.iter().find_map(|location| location.origin.as_deref())?;
    Some(ObjectKey::new(origin.namespace.clone(), origin.name.clone()))
}

/// The listeners that the servers need.
pub(crate) fn listeners(
    configuration: &Configuration,
    options: &Options,
    target: &Target,
    ledger: &mut Ledger<'_>,
) -> Listeners {
    let mut by_host = BTreeMap::new();
    let mut without = Vec::new();
    for server in configuration.servers.values() {
        let Some(owner) = owner(server) else { continue };
        let mut hosts = host_names(server);
        hosts.extend(server.www.as_ref().map(ToString::to_string));
        if hosts.is_empty() {
            hosts.push(String::new());
        }
        let tls = if server.passthrough.is_some() {
            Some(Tls::Passthrough)
        } else {
            certificate(configuration, server, options).map(Tls::Terminate)
        };
        match tls {
            Some(tls) => by_host.extend(hosts.into_iter().map(|host| (host, tls.clone()))),
            None => without.push((server, owner, hosts)),
        }
    }
    let listeners = Listeners { gateway: target.gateway.clone(), by_host };
    for (server, owner, hosts) in without {
        ledger.stand_at(Some((server, "")));
        let covering = hosts.iter().find_map(|host| listeners.serving(host));
        without_certificate((configuration, server), &owner, covering, ledger);
    }
    ledger.stand_at(None);
    listeners
}

/// Notes that a host has no listener for HTTPS of its own: a loss where its Ingresses ask for TLS.
fn without_certificate(
    (configuration, server): (&Configuration, &Server),
    owner: &ObjectKey,
    covering: Option<&str>,
    ledger: &mut Ledger<'_>,
) {
    let mut reason = format!("{} has no Secret with a certificate, and ", server.name);
    let mut locations = server.locations.iter();
    let is_sent = covering.is_none()
        && locations.any(|location| redirects::is_to_tls(configuration, server, &location.policy));
    match covering {
        None => reason += "a listener has no other",
        Some("") => reason += "over HTTPS its routes answer under that of all other hosts",
        Some(host) => reason += &format!("over HTTPS its routes answer under that of {host}"),
    }
    if is_sent {
        reason += ": its routes redirect to HTTPS, which nobody serves";
    }
    let weight = if is_sent || ledger.asks_for_tls(owner) {
        Weight::LostOverTls
    } else {
        Weight::NoteOverTls
    };
    let remedy = "name a Secret in spec.tls or by --default-ssl-certificate";
    ledger.add(Some(owner), "spec.tls", weight, reason, remedy);
}

/// The certificate that is shown for a server: its own, or that of the wildcard above it.
pub(crate) fn certificate_of<'c>(
    configuration: &'c Configuration,
    server: &'c Server,
) -> Option<&'c CertificateId> {
    let above = || {
        let (_, parent) = server.name.as_str().split_once('.')?;
        configuration.servers.get(format!("*.{parent}").as_str())?.certificate.as_ref()
    };
    server.certificate.as_ref().or_else(above)
}

/// The Secret with the certificate of a server.
fn certificate(
    configuration: &Configuration,
    server: &Server,
    options: &Options,
) -> Option<ObjectKey> {
    let named = certificate_of(configuration, server);
    let named = named.and_then(|named| named.as_str().split_once('/'));
    let named = named.map(|(namespace, name)| ObjectKey::new(namespace, name));
    named.or_else(|| options.default_ssl_certificate.clone())
}

impl Listeners {
    /// Whether a host is served under TLS that ends here.
    pub(crate) fn is_secure(&self, hosts: &[String]) -> bool {
        let is_ended = |host: &str| matches!(self.by_host.get(host), Some(Tls::Terminate(_)));
        names(hosts).filter_map(|host| self.serving(host)).any(is_ended)
    }

    /// The listener that requests for a host over TLS come to: its own, or the most special one that covers it, which
    /// has them whether or not the host is meant. What is attached there under a more special name goes first.
    fn serving(&self, host: &str) -> Option<&str> {
        let own = self.by_host.get_key_value(host);
        let covers = |(name, tls): &(&String, &Tls)| {
            let end = name.strip_prefix('*');
            let is_below = name.is_empty() || end.is_some_and(|end| host.ends_with(end));
            is_below && matches!(tls, Tls::Terminate(_))
        };
        let above = || self.by_host.iter().filter(covers).max_by_key(|(name, _)| name.len());
        own.or_else(above).map(|(name, _)| name.as_str())
    }

    /// What a route over HTTP is attached to.
    pub(crate) fn plain(&self) -> Vec<Value> {
        vec![self.parent(0, HTTP)]
    }

    /// What a route of these hosts over TLS is attached to.
    pub(crate) fn secure(&self, hosts: &[String]) -> Vec<Value> {
        let wanted: BTreeSet<&str> = names(hosts).filter_map(|host| self.serving(host)).collect();
        let all = self.by_host.keys().enumerate();
        let all = all.filter(|(_, host)| wanted.contains(host.as_str()));
        all.map(|(index, host)| self.parent(index + 1, &listener_name(host))).collect()
    }

    /// The listener of this number is of the Gateway of its own number.
    fn parent(&self, index: usize, section: &str) -> Value {
        let ObjectKey { namespace, .. } = &self.gateway;
        json!({"name": self.name(index / MOST), "namespace": &**namespace, "sectionName": section})
    }

    fn name(&self, number: usize) -> String {
        match number {
            0 => self.gateway.name.to_string(),
            more => format!("{}-{}", self.gateway.name, more + 1),
        }
    }

    fn all(&self) -> Vec<Value> {
        let routes = json!({"namespaces": {"from": "All"}});
        let plain = json!({"name": HTTP, "protocol": "HTTP", "port": 80, "allowedRoutes": routes});
        let secure = self.by_host.iter().map(|(host, tls)| {
            let mut listener =
                json!({"name": listener_name(host), "port": 443, "allowedRoutes": routes});
            if !host.is_empty() {
                listener["hostname"] = json!(host);
            }
            let (protocol, settings) = match tls {
                Tls::Passthrough => ("TLS", json!({"mode": "Passthrough"})),
                Tls::Terminate(secret) => {
                    let mut reference = json!({"name": &*secret.name});
                    if secret.namespace != self.gateway.namespace {
                        reference["namespace"] = json!(&*secret.namespace);
                    }
                    ("HTTPS", json!({"mode": "Terminate", "certificateRefs": [reference]}))
                }
            };
            listener["protocol"] = json!(protocol);
            listener["tls"] = settings;
            listener
        });
        std::iter::once(plain).chain(secure).collect()
    }
}

/// The names of hosts; that of any host is empty.
fn names(hosts: &[String]) -> impl Iterator<Item = &str> {
    hosts.iter().map(String::as_str).chain(hosts.is_empty().then_some(""))
}

/// A name for the listener of a host: no other host has the same.
fn listener_name(host: &str) -> String {
    let name = match host.strip_prefix("*.") {
        _ if host.is_empty() => "https".to_owned(),
        Some(parent) => format!("any-https-{parent}"),
        None => format!("https-{host}"),
    };
    names::within(&name, names::LONGEST)
}

/// GatewayClass, Gateways and grants.
pub(crate) fn objects(listeners: &Listeners, target: &Target, snapshot: &Snapshot) -> Vec<Made> {
    let class = ObjectKey::new("", target.class.as_str());
    // One of another name may be another implementation's: ours would take it away.
    let is_missing = target.class == CLASS && !snapshot.gateway_classes.contains_key(&class);
    let class = is_missing.then(|| {
        json!({
            "apiVersion": API, "kind": "GatewayClass",
            "metadata": {"name": target.class},
            "spec": {"controllerName": translate::GATEWAY_CONTROLLER},
        })
    });
    let all = listeners.all();
    let gateways = all.chunks(MOST).enumerate().map(|(number, some)| {
        json!({
            "apiVersion": API, "kind": "Gateway",
            "metadata": {"name": listeners.name(number), "namespace": &*listeners.gateway.namespace},
            "spec": {"gatewayClassName": target.class, "listeners": some},
        })
    });
    let mut elsewhere: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for tls in listeners.by_host.values() {
        if let Tls::Terminate(secret) = tls
            && secret.namespace != listeners.gateway.namespace
        {
            elsewhere.entry(&secret.namespace).or_default().insert(&secret.name);
        }
    }
    let grants = elsewhere.into_iter().map(|(namespace, secrets)| {
        let to = secrets.into_iter().map(|name| json!({"group": "", "kind": "Secret", "name": name}));
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
            "metadata": {"name": format!("{}-certificates", target.gateway.name), "namespace": namespace},
            "spec": {
                "from": [{
                    "group": "gateway.networking.k8s.io", "kind": "Gateway",
                    "namespace": &*listeners.gateway.namespace,
                }],
                "to": to.collect::<Vec<_>>(),
            },
        })
    });
    let all = class.into_iter().chain(gateways).chain(grants);
    all.map(|value| Made { value, of: None }).collect()
}
