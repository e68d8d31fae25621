//! Where an Ingress is served otherwise than by ingress-nginx, on purpose (compat/decisions.md, docs/migration.md).

use super::Remark;
use crate::host::not_heard;
use crate::ingress::{Role, Target, annotation_of, origin};
use crate::settings::parse;
use crate::tenancy::Item;
use crate::{Options, Translation};
use model::{Problem, ServerName};
use objects::{Ingress, IngressBackend, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Annotations that ingress-nginx keeps by Service port, so that they reach other Ingresses of the same Service.
const LEAKING: &[&str] = &["affinity", "load-balance", "upstream-hash-by", "service-upstream"];
/// It hangs on the Service port of the Ingress that it stands beside.
const CANARY: &str = "canary";

/// Which Ingresses have settings that reached others of the same Service port.
#[derive(Debug, Default)]
pub(super) struct Shared {
    owners: BTreeMap<Target, BTreeSet<(&'static str, ObjectKey)>>,
    /// The Ingresses that each canary stands beside: it is meant for them.
    beside: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Shared {
    pub(super) fn among(ingresses: &[&Ingress], options: &Options) -> Self {
        let has = |ingress: &Ingress, name: &str| annotation_of(ingress, name, options).is_some();
        let mut shared = Self::default();
        let mut routes: BTreeMap<(&str, &str), Vec<(&Ingress, Target)>> = BTreeMap::new();
        for ingress in ingresses.iter().filter(|ingress| !has(ingress, CANARY)) {
            for name in LEAKING.iter().filter(|name| has(ingress, name)) {
                for target in targets(ingress) {
                    shared.own(target, name, ingress);
                }
            }
            for (host, path, target) in routed(ingress) {
                routes.entry((host, path)).or_default().push((ingress, target));
            }
        }
        for canary in ingresses.iter().filter(|ingress| has(ingress, CANARY)) {
            for (host, path, _) in routed(canary) {
                for (main, target) in routes.get(&(host, path)).into_iter().flatten() {
                    shared.own(target.clone(), CANARY, canary);
                    let beside = shared.beside.entry(canary.meta.key.clone()).or_default();
                    beside.insert(main.meta.key.clone());
                }
            }
        }
        shared
    }

    fn own(&mut self, target: Target, name: &'static str, owner: &Ingress) {
        self.owners.entry(target).or_default().insert((name, owner.meta.key.clone()));
    }

    /// The settings of other Ingresses that used to reach this one, with who has them.
    fn reaching(&self, ingress: &Ingress) -> BTreeMap<&'static str, BTreeSet<&ObjectKey>> {
        let key = &ingress.meta.key;
        let mut found: BTreeMap<&'static str, BTreeSet<&ObjectKey>> = BTreeMap::new();
        let owners = targets(ingress).filter_map(|target| self.owners.get(&target)).flatten();
        for (name, owner) in owners {
            let is_meant = self.beside.get(owner).is_some_and(|beside| beside.contains(key));
            if owner != key && !is_meant {
                found.entry(name).or_default().insert(owner);
            }
        }
        found
    }
}

/// Host, path and backend of every path.
fn routed(ingress: &Ingress) -> impl Iterator<Item = (&str, &str, Target)> {
    ingress.rules.iter().flat_map(move |rule| {
        let host = rule.host.as_deref().unwrap_or_default();
        rule.paths.iter().flatten().filter_map(move |path| {
            Some((host, path.path.as_str(), target(ingress, &path.backend)?))
        })
    })
}

fn target(ingress: &Ingress, backend: &IngressBackend) -> Option<Target> {
    match backend {
        IngressBackend::Service { name, port } => {
            Some(Target::new(&ingress.meta.key.namespace, name, port.as_ref(), Role::Backend))
        }
        IngressBackend::Other => None,
    }
}

fn targets(ingress: &Ingress) -> impl Iterator<Item = Target> {
    let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    let backends = paths.map(|path| &path.backend).chain(&ingress.default_backend);
    backends.filter_map(|backend| target(ingress, backend))
}

/// Where one Ingress is served otherwise.
pub(super) fn of(
    ingress: &Ingress,
    snapshot: &Snapshot,
    options: &Options,
    shared: &Shared,
) -> Vec<Remark> {
    let mut found: Vec<Remark> = Vec::new();
    let value = |name: &str| annotation_of(ingress, name, options);
    let mut say = |name: &str, message: String| {
        let key = Some(format!("{}/{name}", options.annotations_prefix));
        found.push(Remark { key, message });
    };
    for (name, owners) in shared.reaching(ingress) {
        // Two routes that ask for the same behave the same.
        if value(name).is_none() {
            owners.first().into_iter().for_each(|owner| say(name, leak(owner, owners.len() - 1)));
        }
    }
    if value("auth-realm").is_some_and(|realm| realm == "off") {
        say(
            "auth-realm",
            "is a realm called off; ingress-nginx served without asking for a password".to_owned(),
        );
    }
    let has_cors = value("enable-cors").is_some_and(|text| parse::boolean(&text) == Ok(true));
    if has_cors && value("cors-allow-origin").is_some_and(|origins| origins != "*") {
        say(
            "cors-allow-origin",
            "an origin must match as a whole; ingress-nginx also allowed origins that contain one"
                .to_owned(),
        );
    }
    if value("backend-protocol").is_some_and(|text| text != text.to_ascii_uppercase()) {
        say(
            "backend-protocol",
            "means the same in lower case; ingress-nginx lost headers".to_owned(),
        );
    }
    for name in ["permanent-redirect-code", "temporal-redirect-code"] {
        if value(name).is_some_and(|code| ["300", "304", "305", "306"].contains(&code.as_str())) {
            say(name, "is no redirect with a Location: the default code is used".to_owned());
        }
    }
    let errors = value("custom-http-errors").unwrap_or_default();
    let is_status =
        |text: &str| text.trim().parse().is_ok_and(|code: u16| (300..600).contains(&code));
    if !errors.is_empty() && !errors.split(',').all(is_status) {
        say(
            "custom-http-errors",
            "only 300 to 599 count; ingress-nginx took any number".to_owned(),
        );
    }
    if value("auth-tls-secret").is_some()
        && value("auth-tls-verify-client").is_none_or(|mode| mode == "on")
    {
        let message = "plain HTTP is answered with 403; ingress-nginx served it without a certificate \
            where it was not redirected";
        say("auth-tls-secret", message.to_owned());
    }
    found.extend(addresses(ingress, snapshot, options));
    found
}

/// The owners of hosts whose certificate came from the `spec.tls` of another namespace, which does not count here.
pub(super) fn lost_certificates(
    ours: &[&Ingress],
    translation: &Translation,
) -> BTreeMap<ObjectKey, Vec<Remark>> {
    let hosts = |ingress: &Ingress| -> BTreeSet<String> {
        let hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
        hosts.map(str::to_ascii_lowercase).collect()
    };
    let mut givers: BTreeMap<String, &ObjectKey> = BTreeMap::new();
    for giver in ours.iter().filter(|ingress| !ingress.tls.is_empty()) {
        let problems = translation.problems.of(&origin(&giver.meta.key));
        for host in hosts(giver) {
            let in_vain = not_heard(&ServerName::new(&*host), Item::Certificate);
            let is_it = |problem: &Problem| *problem.message == *in_vain;
            if problems.iter().any(is_it) {
                givers.entry(host).or_insert(&giver.meta.key);
            }
        }
    }
    let mut lost: BTreeMap<ObjectKey, Vec<Remark>> = BTreeMap::new();
    for ingress in ours {
        for host in hosts(ingress) {
            let giver = givers.get(&host).filter(|key| key.namespace != ingress.meta.key.namespace);
            let Some(ObjectKey { namespace, name }) = giver else { continue };
            let message = format!(
                "host {host} had the certificate that Ingress {namespace}/{name} names, and the redirect to HTTPS with it; \
                 of another namespace it does not count, so that clients get the default certificate and plain HTTP is \
                 served: add spec.tls here, or certificate to allow-cross-namespace of the ConfigMap"
            );
            let remark = Remark { key: Some("spec.tls".to_owned()), message };
            lost.entry(ingress.meta.key.clone()).or_default().push(remark);
        }
    }
    lost
}

/// What used to reach an Ingress from others of the same Service.
fn leak(owner: &ObjectKey, others: usize) -> String {
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!(
        "is set by Ingress {}/{}{more} for the same Service; ingress-nginx let it reach this Ingress, too, Fairway does not",
        owner.namespace, owner.name
    )
}

/// Services whose ExternalName is an address: 503 in ingress-nginx, and here where it leads to this machine.
fn addresses(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let services =
        targets(ingress).filter_map(|target| snapshot.services.get(target.service()?).cloned());
    let literal = services.filter(|service| {
        let name = service.external_name.as_deref().filter(|_| service.kind == "ExternalName");
        let address = name.and_then(|name| name.parse::<IpAddr>().ok());
        address.is_some_and(|address| options.outside.permits(address))
    });
    literal
        .map(|service| Remark {
            key: Some("spec.rules".to_owned()),
            message: format!(
                "Service {} has an address as externalName: it is served; ingress-nginx answered 503",
                service.meta.key.name
            ),
        })
        .collect()
}
