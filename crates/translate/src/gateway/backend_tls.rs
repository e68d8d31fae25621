//! BackendTLSPolicies: which backends are spoken to under TLS, and whose certificates they must have. A backend whose
//! policy cannot be kept to, or that wants TLS without one, is closed, and never spoken to in clear.

use super::authorities::{Referring, config_maps};
use super::authority_files::AuthorityFiles;
use super::backends::{Port, port_of};
use super::index::{put, take_out};
use super::status::Condition;
use super::unlisted;
use model::Backend;
use model::policy::{Policy, Protocol, SubjectName, UpstreamTls};
use objects::gateway::{BackendRef, BackendTlsPolicy, PolicyTarget};
use objects::{ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Certificates at most between a backend's and its authority.
const DEPTH: u32 = 9;

/// Reason and message.
type Why = (&'static str, String);

/// A Service, or a port of it.
type Target = (ObjectKey, Option<String>);

/// All policies, as they were read.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) read: BTreeMap<ObjectKey, Read>,
    /// Which policies have a Service for a target.
    pub(super) by_service: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// They could not be listed: nobody knows what they say, and whose.
    pub(super) unlisted: bool,
    /// The policies for a Service, or for a port of it, in the order in which they count.
    by_target: BTreeMap<Target, BTreeSet<(i64, ObjectKey)>>,
}

/// A policy as it was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) policy: Arc<BackendTlsPolicy>,
    /// How TLS is to be spoken, or why that cannot be.
    asks: Result<Arc<UpstreamTls>, Why>,
    /// The first reference that leads nowhere.
    unresolved: Option<Why>,
}

/// What is touched by policies that changed.
#[derive(Default)]
pub(super) struct Touched {
    /// Services that are reached in another way now.
    pub(super) services: BTreeSet<ObjectKey>,
    /// Policies that may be told otherwise, because they or their Services changed.
    pub(super) policies: BTreeSet<ObjectKey>,
}

impl Read {
    fn new(
        policy: &Arc<BackendTlsPolicy>,
        snapshot: &Snapshot,
        files: &mut AuthorityFiles,
    ) -> Self {
        let (asks, unresolved) = asked(policy, snapshot, files);
        Self { policy: policy.clone(), asks: asks.map(Arc::new), unresolved }
    }

    pub(super) fn services(&self) -> impl Iterator<Item = (ObjectKey, Option<&str>)> {
        let namespace = &self.policy.meta.key.namespace;
        let services = self.policy.targets.iter().filter(|target| is_service(target));
        services.map(|target| {
            let key = ObjectKey::new(namespace.clone(), target.object.name.as_str());
            (key, target.section.as_deref())
        })
    }

    /// Of two policies for the same the older one counts, then the one of the lesser name.
    fn rank(&self) -> (i64, ObjectKey) {
        (self.policy.meta.created, self.policy.meta.key.clone())
    }

    fn is_as(&self, other: &Self) -> bool {
        self.asks == other.asks
            && self.policy.targets == other.policy.targets
            && self.policy.meta.created == other.policy.meta.created
    }
}

impl Policies {
    /// Follows to another Snapshot, in which these policies and ConfigMaps differ.
    pub(super) fn follow(
        &mut self,
        mut touched: BTreeSet<ObjectKey>,
        changed: &BTreeSet<ObjectKey>,
        snapshot: &Snapshot,
        files: &mut AuthorityFiles,
    ) -> Touched {
        if !changed.is_empty() {
            let names = |(_, read): &(&ObjectKey, &Read)| {
                let (policy, own) = (&read.policy, &read.policy.meta.key.namespace);
                config_maps(&policy.authorities, own).any(|key| changed.contains(&key))
            };
            touched.extend(self.read.iter().filter(names).map(|(key, _)| key.clone()));
        }
        let mut services = BTreeSet::new();
        for key in &touched {
            let before = self.read.remove(key);
            let policy = snapshot.backend_tls.get(key);
            let now = policy.map(|policy| Read::new(policy, snapshot, files));
            let is_same = matches!((&before, &now), (Some(before), Some(now)) if before.is_as(now));
            before.iter().for_each(|read| self.take_out(read));
            now.iter().for_each(|read| self.put(read));
            if !is_same {
                let both = before.iter().chain(&now).flat_map(Read::services);
                services.extend(both.map(|(service, _)| service));
            }
            self.read.extend(now.map(|read| (key.clone(), read)));
        }
        Touched { services, policies: touched }
    }

    fn put(&mut self, read: &Read) {
        for (service, section) in read.services() {
            let at = (service.clone(), section.map(str::to_owned));
            put(&mut self.by_target, &at, read.rank());
            put(&mut self.by_service, &service, read.policy.meta.key.clone());
        }
    }

    fn take_out(&mut self, read: &Read) {
        for (service, section) in read.services() {
            let at = (service.clone(), section.map(str::to_owned));
            take_out(&mut self.by_target, &at, &read.rank());
            take_out(&mut self.by_service, &service, &read.policy.meta.key);
        }
    }

    /// How a port of a Service is reached under TLS, or why it cannot be; none: in clear.
    fn of(&self, service: &ObjectKey, port: Option<&str>) -> Option<Result<Arc<UpstreamTls>, Why>> {
        let named = || port.and_then(|port| self.first(service, Some(port)));
        let read = named().or_else(|| self.first(service, None))?;
        let ObjectKey { namespace, name } = &read.policy.meta.key;
        let closed = |(_, why): Why| format!("BackendTLSPolicy {namespace}/{name}: {why}");
        Some(read.asks.clone().map_err(|why| ("InvalidBackendTLSPolicy", closed(why))))
    }

    /// How a port of a Service is reached, by its number. Whose certificate one must have that wants TLS says a policy
    /// alone: without one it is not reached.
    pub(super) fn of_port(
        &self,
        (service, port): &Port,
        snapshot: &Snapshot,
    ) -> Option<Result<Arc<UpstreamTls>, Why>> {
        if self.unlisted {
            return Some(Err(("Pending", unlisted::POLICIES.to_owned())));
        }
        let found = snapshot.services.get(service);
        let found = found.and_then(|service| port_of(service, *port, "TCP"));
        if self.targets(service) {
            let asked = self.of(service, found.and_then(|port| port.name.as_deref()));
            if asked.is_some() {
                return asked;
            }
        }
        found.filter(|found| found.tls).map(|_| {
            let ObjectKey { namespace, name } = service;
            let message = format!(
                "appProtocol of port {port} of Service {namespace}/{name} wants TLS, and no BackendTLSPolicy says whose \
                 certificate it has: write one, or take appProtocol away if it is spoken to in clear"
            );
            Err(("UnsupportedProtocol", message))
        })
    }

    /// A backend of a route in this namespace as its policy wants it: under TLS, or closed, with reason and message.
    pub(super) fn secure(
        &self,
        (backend, named): (Backend, &BackendRef),
        own: &Arc<str>,
        snapshot: &Snapshot,
        policy: &mut Policy,
    ) -> Result<Backend, Why> {
        let (Backend::Upstream(_), Some(port)) = (&backend, named.port) else { return Ok(backend) };
        if let Some(tls) = self.of_port(&(named.object.key(own), port), snapshot) {
            policy.upstream_tls = UpstreamTls::clone(&*tls?);
            policy.protocol = match policy.protocol {
                Protocol::Grpc | Protocol::Grpcs => Protocol::Grpcs,
                _ => Protocol::Https,
            };
        }
        Ok(backend)
    }

    /// Whether a Service is the target of a policy.
    pub(super) fn targets(&self, service: &ObjectKey) -> bool {
        self.by_service.contains_key(service)
    }

    /// The policy that counts for a Service, or for one of its ports.
    fn first(&self, service: &ObjectKey, section: Option<&str>) -> Option<&Read> {
        let at = (service.clone(), section.map(str::to_owned));
        let (_, first) = self.by_target.get(&at)?.first()?;
        self.read.get(first)
    }

    /// What a policy is told.
    pub(super) fn conditions(&self, read: &Read, snapshot: &Snapshot) -> Vec<Condition> {
        let accepted = match &read.asks {
            Err((reason, message)) => Some((*reason, message.clone())),
            Ok(_) => self.beaten(read).or_else(|| not_found(read, snapshot)),
        };
        let condition = |kind, wrong: Option<Why>| match wrong {
            Some((reason, message)) => Condition::fails(kind, reason, message),
            None => Condition::holds(kind, kind),
        };
        vec![condition("Accepted", accepted), condition("ResolvedRefs", read.unresolved.clone())]
    }

    /// Why it does not count, if others go before it at all of its targets.
    fn beaten(&self, read: &Read) -> Option<Why> {
        let own = &read.policy.meta.key;
        let mut winner = None;
        for (service, section) in read.services() {
            let first = self.first(&service, section).filter(|first| first.policy.meta.key != *own);
            winner = Some(first?.policy.meta.key.name.clone());
        }
        winner.map(|name| {
            let message = format!("the older BackendTLSPolicy {name} has the same target; name another target, or remove one of them");
            ("Conflicted", message)
        })
    }
}

/// What is wrong with the targets, if none of them is there.
fn not_found(read: &Read, snapshot: &Snapshot) -> Option<Why> {
    let is_there = |(service, section): (ObjectKey, Option<&str>)| {
        let found = snapshot.services.get(&service);
        found.is_some_and(|found| {
            section.is_none() || found.ports.iter().any(|port| port.name.as_deref() == section)
        })
    };
    let message = "spec.targetRefs: no such Service, or it has no port of the name in sectionName";
    (!read.services().any(is_there)).then(|| ("TargetNotFound", message.to_owned()))
}

fn is_service(target: &PolicyTarget) -> bool {
    target.object.group.is_empty() && target.object.kind == "Service"
}

/// How TLS is to be spoken, and the first reference that leads nowhere.
fn asked(
    policy: &BackendTlsPolicy,
    snapshot: &Snapshot,
    files: &mut AuthorityFiles,
) -> (Result<UpstreamTls, Why>, Option<Why>) {
    let referring = Referring {
        kind: None,
        namespace: &policy.meta.key.namespace,
        field: "spec.validation.caCertificateRefs",
        unknown_kind: "InvalidKind",
    };
    let (authorities, unresolved) = referring.authorities(&policy.authorities, snapshot, files);
    let asks = match (policy.well_known.as_deref(), &unresolved) {
        (Some("System"), None) if policy.authorities.is_empty() => Ok(true),
        (Some("System"), _) => Err(invalid(
            "spec.validation has caCertificateRefs and wellKnownCACertificates: keep one of them",
        )),
        (Some(other), _) => Err(invalid(&format!(
            "spec.validation.wellKnownCACertificates: {other} is not known; write System"
        ))),
        (None, Some((_, why))) if authorities.is_empty() => {
            Err(("NoValidCACertificate", why.clone()))
        }
        (None, None) if authorities.is_empty() => Err((
            "NoValidCACertificate",
            "spec.validation names no authority: add caCertificateRefs or wellKnownCACertificates"
                .to_owned(),
        )),
        (None, _) => Ok(false),
    };
    let asks = asks.and_then(|system| {
        let names = names(policy)?;
        let name = Some(policy.hostname.to_ascii_lowercase());
        Ok(UpstreamTls {
            authorities,
            system,
            verify: true,
            name,
            server_name: true,
            names,
            depth: DEPTH,
            ..UpstreamTls::default()
        })
    });
    (asks, unresolved)
}

/// The names of which the certificate must have one.
fn names(policy: &BackendTlsPolicy) -> Result<Vec<SubjectName>, Why> {
    let host = &policy.hostname;
    if !is_host(host) {
        let message = format!(
            "spec.validation.hostname: {host:?} is no host name; write one such as db.example"
        );
        return Err(invalid(&message));
    }
    let names = policy.names.iter().map(|(kind, value)| match kind.as_str() {
        "Hostname" if is_host(value.strip_prefix("*.").unwrap_or(value)) => {
            Ok(SubjectName::Dns(value.to_ascii_lowercase()))
        }
        "URI" if value.contains(':') => Ok(SubjectName::Uri(value.clone())),
        _ => Err(invalid(&format!(
            "spec.validation.subjectAltNames: {kind} {value:?} is no name; write a host name or a URI"
        ))),
    });
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    let own = || vec![SubjectName::Dns(host.to_ascii_lowercase())];
    Ok(if names.is_empty() { own() } else { names })
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(valid)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // What is all numbers is an address, which no handshake names.
    let is_number = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.len() <= 253 && !is_number && text.split('.').all(is_label)
}

fn invalid(message: &str) -> Why {
    ("Invalid", message.to_owned())
}
