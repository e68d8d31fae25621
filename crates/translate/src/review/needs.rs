//! What Ingresses need of Services, Secrets and ConfigMaps, as warnings for whoever changes either side. ingress-nginx
//! never said so; nothing is refused for it, since objects that belong together may come in any order.

use crate::ingress::{Role, Target, annotation_of, names_by_annotation, references};
use crate::{Options, certificate};
use objects::{
    Ingress, IngressBackend, ObjectKey, PortRef, Reference, ReverseIndex, Secret, Service, Snapshot,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Warnings of a kind at most; the API server keeps few.
const MOST: usize = 8;
/// Ingresses that are looked at for one changed object: no change costs more than so many.
const USERS: usize = 64;

/// What of the things that an Ingress refers to is not there.
pub fn missing(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    for reference in references(ingress, options) {
        // What other namespaces have or lack is for nobody to ask here.
        if is_own(&reference, ingress) && is_seen(&reference, snapshot, options) {
            warnings.extend(lack(ingress, &reference, snapshot, options));
        }
    }
    shortened(warnings)
}

/// Services of its own namespace that URLs of an Ingress name, and that are not there.
pub(super) fn behind_urls(
    ingress: &Ingress,
    targets: &BTreeSet<Target>,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<String> {
    let named = targets.iter().filter_map(|target| match target {
        Target::Service { service, role: Role::Url, .. } => Some(service.clone()),
        _ => None,
    });
    let absent = named.filter(|service| !snapshot.services.contains_key(service));
    let absent: BTreeSet<Reference> = absent.map(Reference::Service).collect();
    let ours = absent.iter().filter(|it| is_own(it, ingress) && is_seen(it, snapshot, options));
    let line = |it| {
        format!("{} does not exist: requests to it fail until it does (a URL names it)", name(it))
    };
    shortened(ours.map(line).collect())
}

/// What Ingresses lose when an object goes.
pub fn lost(
    reference: &Reference,
    snapshot: &Snapshot,
    index: &ReverseIndex,
    options: &Options,
) -> Vec<String> {
    let users = Users::of(reference, snapshot, index);
    let Some(names) = users.names(namespace(reference)) else { return Vec::new() };
    let consequence = match reference {
        Reference::Service(_) => "paths that lead to it answer 503 without it",
        Reference::Secret(secret)
            if users.any(|user| names_by_annotation(user, secret, options)) =>
        {
            "what it guards answers 503 or refuses everybody without it"
        }
        Reference::Secret(_) => "its hosts get the default certificate without it",
        Reference::ConfigMap(_) => "what names it answers 503 or does without it",
    };
    vec![format!("{} is used by {names}: {consequence}", name(reference))]
}

/// What Ingresses miss in a Service as it is about to become.
pub fn lost_ports(service: &Service, snapshot: &Snapshot, index: &ReverseIndex) -> Vec<String> {
    let key = &service.meta.key;
    let users = Users::of(&Reference::Service(key.clone()), snapshot, index);
    let mut warnings = Vec::new();
    for user in users.looked_at.iter().filter(|user| user.meta.key.namespace == key.namespace) {
        for port in ports(user, &key.name).filter(|port| !has_port(service, port)) {
            let ObjectKey { namespace, name } = &user.meta.key;
            warnings.push(format!(
                "{}, which Ingress {namespace}/{name} leads to: it answers 503 then",
                no_port(service, port)
            ));
        }
    }
    shortened(warnings)
}

/// Why a Secret, as it is about to become, cannot be used by the Ingresses that refer to it.
pub fn unusable(
    secret: &Secret,
    snapshot: &Snapshot,
    index: &ReverseIndex,
    options: &Options,
) -> Vec<String> {
    let key = &secret.meta.key;
    let users = Users::of(&Reference::Secret(key.clone()), snapshot, index);
    let Some(names) = users.names(&key.namespace) else { return Vec::new() };
    let named = |user: &Ingress, annotation| {
        let value = annotation_of(user, annotation, options);
        value.is_some_and(|value| is_named(&value, key, &user.meta.key.namespace))
    };
    let in_tls =
        |user: &Ingress| user.tls.iter().any(|tls| tls.secret.as_deref() == Some(&*key.name));
    let faults = [
        users.any(in_tls).then(|| certificate::served(secret).err()),
        users
            .any(|user| named(user, "auth-tls-secret"))
            .then(|| certificate::authorities(secret).err()),
        users.any(|user| named(user, "proxy-ssl-secret")).then(|| certificate::trust(secret).err()),
    ];
    let faults = faults.into_iter().flatten().flatten();
    let line =
        |fault| format!("Secret {}/{} {fault}; it is used by {names}", key.namespace, key.name);
    faults.map(line).collect()
}

/// The Ingresses that refer to something.
struct Users<'a> {
    looked_at: Vec<&'a Arc<Ingress>>,
    more: bool,
}

impl<'a> Users<'a> {
    fn of(reference: &Reference, snapshot: &'a Snapshot, index: &ReverseIndex) -> Self {
        let mut keys = index.touched_by(reference);
        let looked_at = keys.by_ref().take(USERS).filter_map(|key| snapshot.ingresses.get(key));
        Self { looked_at: looked_at.collect(), more: keys.next().is_some() }
    }

    fn any(&self, is_so: impl Fn(&Ingress) -> bool) -> bool {
        self.looked_at.iter().any(|user| is_so(user))
    }

    /// `Ingress demo/a, demo/b and others`; nothing if there is none in the namespace of who asks.
    fn names(&self, namespace: &str) -> Option<String> {
        const SHOWN: usize = 3;
        let own = self.looked_at.iter().filter(|user| *user.meta.key.namespace == *namespace);
        let rest = own.clone().count().saturating_sub(SHOWN);
        let shown: Vec<String> = own.take(SHOWN).map(|user| shown(&user.meta.key)).collect();
        let others = match (rest, self.more) {
            (0, false) => String::new(),
            (rest, false) => format!(" and {rest} more"),
            (_, true) => " and many more".to_owned(),
        };
        (!shown.is_empty()).then(|| format!("Ingress {}{others}", shown.join(", ")))
    }
}

fn namespace(reference: &Reference) -> &str {
    let (Reference::Secret(key) | Reference::ConfigMap(key) | Reference::Service(key)) = reference;
    &key.namespace
}

fn is_own(reference: &Reference, ingress: &Ingress) -> bool {
    *namespace(reference) == *ingress.meta.key.namespace
}

/// Whether a Snapshot would hold this, if it existed.
fn is_seen(reference: &Reference, snapshot: &Snapshot, options: &Options) -> bool {
    let (Reference::Secret(key) | Reference::ConfigMap(key) | Reference::Service(key)) = reference;
    let is_elsewhere = options.watch_namespace.as_deref().is_some_and(|own| own != &*key.namespace);
    let namespace = ObjectKey::new("", Arc::clone(&key.namespace));
    let is_hidden =
        !snapshot.namespaces.is_empty() && !snapshot.namespaces.contains_key(&namespace);
    !is_elsewhere && !is_hidden
}

/// What is wrong with a reference of an Ingress.
fn lack(
    ingress: &Ingress,
    reference: &Reference,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<String> {
    let there = match reference {
        Reference::Service(key) => match snapshot.services.get(key) {
            Some(service) => {
                let lacking = ports(ingress, &key.name).filter(|port| !has_port(service, port));
                return lacking
                    .map(|port| {
                        format!("{}: its paths answer 503 until it has", no_port(service, port))
                    })
                    .collect();
            }
            None => false,
        },
        Reference::Secret(key) => snapshot.secrets.contains_key(key),
        Reference::ConfigMap(key) => snapshot.config_maps.contains_key(key),
    };
    let consequence = match reference {
        Reference::Service(key) if !leads_to(ingress, &key.name) => {
            "until it does nothing stands in for errors (annotation default-backend)"
        }
        Reference::Service(_) => "its paths answer 503 until it does",
        Reference::Secret(key) if names_by_annotation(ingress, key, options) => {
            "what it guards answers 503 until it does"
        }
        Reference::Secret(_) => "its hosts get the default certificate until it does",
        Reference::ConfigMap(_) => "what names it waits until it does",
    };
    if there {
        Vec::new()
    } else {
        vec![format!("{} does not exist: {consequence}", name(reference))]
    }
}

/// Where its paths lead, and its default backend.
fn backends(ingress: &Ingress) -> impl Iterator<Item = &IngressBackend> {
    let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    paths.map(|path| &path.backend).chain(ingress.default_backend.as_deref())
}

fn leads_to(ingress: &Ingress, service: &str) -> bool {
    backends(ingress)
        .any(|it| matches!(it, IngressBackend::Service { name, .. } if name == service))
}

/// The ports of a Service that the paths of an Ingress lead to.
fn ports<'a>(ingress: &'a Ingress, service: &'a str) -> impl Iterator<Item = &'a PortRef> {
    let mut seen = Vec::new();
    backends(ingress).filter_map(move |backend| match backend {
        IngressBackend::Service { name, port: Some(port) }
            if name == service && !seen.contains(&port) =>
        {
            seen.push(port);
            Some(port)
        }
        _ => None,
    })
}

/// A Service without ports, such as one of type ExternalName, takes any.
fn has_port(service: &Service, wanted: &PortRef) -> bool {
    let fits = |port: &objects::ServicePort| match wanted {
        PortRef::Number(number) => port.port == *number,
        PortRef::Name(name) => port.name.as_ref() == Some(name),
    };
    service.kind == "ExternalName" || service.ports.iter().any(fits)
}

fn no_port(service: &Service, port: &PortRef) -> String {
    let wanted = match port {
        PortRef::Number(number) => number.to_string(),
        PortRef::Name(name) => format!("called {name}"),
    };
    let has: Vec<String> = service
        .ports
        .iter()
        .take(MOST)
        .map(|port| match &port.name {
            Some(name) => format!("{} ({name})", port.port),
            None => port.port.to_string(),
        })
        .collect();
    let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    format!("Service {} has no port {wanted}, only {has}", shown(&service.meta.key))
}

fn is_named(value: &str, key: &ObjectKey, own: &str) -> bool {
    let (namespace, name) = value.split_once('/').unwrap_or((own, value));
    *key.namespace == *namespace && *key.name == *name
}

fn name(reference: &Reference) -> String {
    match reference {
        Reference::Secret(key) => format!("Secret {}", shown(key)),
        Reference::ConfigMap(key) => format!("ConfigMap {}", shown(key)),
        Reference::Service(key) => format!("Service {}", shown(key)),
    }
}

fn shown(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

pub(super) fn shortened(mut warnings: Vec<String>) -> Vec<String> {
    let more = warnings.len().saturating_sub(MOST);
    warnings.truncate(MOST);
    warnings.extend((more > 0).then(|| format!("and {more} more of the kind")));
    warnings
}
