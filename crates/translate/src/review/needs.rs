//! What Ingresses need of Services, Secrets and ConfigMaps, as warnings for whoever changes either side. ingress-nginx
//! never said so; nothing is refused for it, since objects that belong together may come in any order.

use crate::ingress::{Role, Target, annotation_of, named, names_by_annotation, references};
use crate::{Options, certificate};
use objects::{
    Ingress, IngressBackend, ObjectKey, PortRef, Reference, ReverseIndex, Secret, Service, Snapshot,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Warnings of a kind at most; the API server keeps few.
const MOST: usize = 8;
/// Ingresses that are looked at for one changed object: no change costs more than so many.
const USERS: usize = 64;

/// What of the things that an Ingress refers to is not there.
pub fn missing(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<String> {
    let mut warnings = Warnings::default();
    let led = Led { ports: ports(ingress), unless: unless(ingress, None, snapshot, options) };
    let by_annotations = named(ingress, options);
    for reference in references(ingress, options) {
        // What other namespaces have or lack is for nobody to ask here.
        if is_own(&reference, ingress) && is_seen(&reference, snapshot, options) {
            let is_by_annotation = by_annotations.contains(&reference);
            lack(&reference, is_by_annotation, &led, snapshot, &mut warnings);
        }
    }
    warnings.shortened()
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
        Reference::Service(service)
            if users.any(|user| !unless(user, Some(service), snapshot, options).is_empty()) =>
        {
            "paths that lead to it answer 503 without it, unless a default-backend stands in"
        }
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
pub fn lost_ports(
    service: &Service,
    snapshot: &Snapshot,
    index: &ReverseIndex,
    options: &Options,
) -> Vec<String> {
    let key = &service.meta.key;
    let users = Users::of(&Reference::Service(key.clone()), snapshot, index);
    let mut warnings = Warnings::default();
    let has = PortsOf::of(service);
    for user in users.looked_at.iter().filter(|user| user.meta.key.namespace == key.namespace) {
        let (wanted, unless) = (ports(user), unless(user, None, snapshot, options));
        let wanted = wanted.get(&*key.name).into_iter().flat_map(Wanted::ports);
        for port in wanted.filter(|port| !has.has(port)) {
            let ObjectKey { namespace, name } = &user.meta.key;
            warnings.add(|| {
                format!(
                    "{}, which Ingress {namespace}/{name} leads to: it answers 503 then{unless}",
                    no_port(service, port)
                )
            });
        }
    }
    warnings.shortened()
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

/// What follows a 503 where the `default-backend` of an Ingress, unless it is `gone`, answers in its stead.
fn unless(
    ingress: &Ingress,
    gone: Option<&ObjectKey>,
    snapshot: &Snapshot,
    options: &Options,
) -> &'static str {
    let stands_in = annotation_of(ingress, "default-backend", options).is_some_and(|name| {
        let service = ObjectKey::new(Arc::clone(&ingress.meta.key.namespace), name);
        gone != Some(&service) && snapshot.services.contains_key(&service)
    });
    if stands_in { ", unless its default-backend stands in" } else { "" }
}

/// Where the paths of an Ingress lead, and what follows a 503 there.
struct Led<'a> {
    ports: HashMap<&'a str, Wanted<'a>>,
    unless: &'static str,
}

/// What is wrong with a reference of an Ingress, whose paths lead to these ports.
fn lack(
    reference: &Reference,
    is_by_annotation: bool,
    Led { ports, unless }: &Led<'_>,
    snapshot: &Snapshot,
    warnings: &mut Warnings,
) {
    let there = match reference {
        Reference::Service(key) => match snapshot.services.get(key) {
            Some(service) => {
                let wanted = ports.get(&*key.name).into_iter().flat_map(Wanted::ports);
                let has = PortsOf::of(service);
                for port in wanted.filter(|port| !has.has(port)) {
                    warnings.add(|| {
                        let no_port = no_port(service, port);
                        format!("{no_port}: its paths answer 503 until it has{unless}")
                    });
                }
                true
            }
            None => false,
        },
        Reference::Secret(key) => snapshot.secrets.contains_key(key),
        Reference::ConfigMap(key) => snapshot.config_maps.contains_key(key),
    };
    if there {
        return;
    }
    let consequence = match reference {
        Reference::Service(key) if !ports.contains_key(&*key.name) => {
            "until it does nothing stands in for errors (annotation default-backend)"
        }
        Reference::Service(_) => &format!("its paths answer 503 until it does{unless}"),
        Reference::Secret(_) if is_by_annotation => "what it guards answers 503 until it does",
        Reference::Secret(_) => "its hosts get the default certificate until it does",
        Reference::ConfigMap(_) => "what names it waits until it does",
    };
    warnings.add(|| format!("{} does not exist: {consequence}", name(reference)));
}

/// The ports of a Service that the paths of an Ingress lead to, each once, in the order written.
#[derive(Default)]
struct Wanted<'a> {
    ports: Vec<&'a PortRef>,
    seen: BTreeSet<&'a PortRef>,
}

impl<'a> Wanted<'a> {
    fn ports(&self) -> impl Iterator<Item = &'a PortRef> {
        self.ports.iter().copied()
    }
}

/// Where the paths of an Ingress and its default backend lead, by Service.
fn ports(ingress: &Ingress) -> HashMap<&str, Wanted<'_>> {
    let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    let backends = paths.map(|path| &path.backend).chain(ingress.default_backend.as_deref());
    let mut all: HashMap<&str, Wanted<'_>> = HashMap::new();
    for backend in backends {
        let IngressBackend::Service { name, port } = backend else { continue };
        let wanted = all.entry(name).or_default();
        if let Some(port) = port
            && wanted.seen.insert(port)
        {
            wanted.ports.push(port);
        }
    }
    all
}

/// The ports of a Service.
struct PortsOf<'a> {
    /// One without ports, such as one of type ExternalName, takes any.
    takes_any: bool,
    numbers: HashSet<u16>,
    names: HashSet<&'a str>,
}

impl<'a> PortsOf<'a> {
    fn of(service: &'a Service) -> Self {
        Self {
            takes_any: service.kind == "ExternalName",
            numbers: service.ports.iter().map(|port| port.port).collect(),
            names: service.ports.iter().filter_map(|port| port.name.as_deref()).collect(),
        }
    }

    fn has(&self, wanted: &PortRef) -> bool {
        self.takes_any
            || match wanted {
                PortRef::Number(number) => self.numbers.contains(number),
                PortRef::Name(name) => self.names.contains(name.as_str()),
            }
    }
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

/// Warnings of a kind: the first are said, the others counted.
#[derive(Default)]
struct Warnings {
    said: Vec<String>,
    more: usize,
}

impl Warnings {
    fn add(&mut self, warning: impl FnOnce() -> String) {
        if self.said.len() < MOST {
            self.said.push(warning());
        } else {
            self.more += 1;
        }
    }

    fn shortened(self) -> Vec<String> {
        let Self { mut said, more } = self;
        said.extend((more > 0).then(|| format!("and {more} more of the kind")));
        said
    }
}

pub(super) fn shortened(all: Vec<String>) -> Vec<String> {
    let mut warnings = Warnings::default();
    all.into_iter().for_each(|warning| warnings.add(|| warning));
    warnings.shortened()
}
