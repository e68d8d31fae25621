//! Where an Ingress is served otherwise than by ingress-nginx, on purpose (compat/decisions.md, docs/migration.md).

use super::remark::{OF_ANOTHER, Remark, named_of_config_map};
use super::sent;
use crate::annotations::FAMILIES;
use crate::host::not_heard;
use crate::ingress::{Age, Role, Target, annotation_of, origin};
use crate::settings::{About, Form, OnBad, parse, quote};
use crate::tenancy::Item;
use crate::{Options, Translation};
use ipnet::IpNet;
use model::{Configuration, Problem, ServerName};
use objects::{Ingress, IngressBackend, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Annotations that ingress-nginx takes from the oldest Ingress of a Service port, for all of them (controller.go,
/// createUpstreams), and what none means unless the ConfigMap says otherwise.
const OF_THE_OLDEST: &[(&str, &str)] =
    &[("load-balance", "round_robin"), ("upstream-hash-by", ""), ("service-upstream", "false")];
/// It has its cookie on the paths of its own host alone (sticky.lua), which cover those of others there.
const AFFINITY: &str = "affinity";
/// It hangs on the Service port of the Ingress that it stands beside.
const CANARY: &str = "canary";
/// Numbers that ingress-nginx reads without the space around them.
const SPACED: [&str; 2] = ["session-cookie-expires", "session-cookie-max-age"];
/// Words of `backend-protocol`. Any other one is ignored, in whatever letters.
const PROTOCOLS: [&str; 6] = ["HTTP", "HTTPS", "AUTO_HTTP", "GRPC", "GRPCS", "FCGI"];

/// Which Ingresses have settings that reached others of the same Service port.
#[derive(Debug, Default)]
pub(super) struct Shared<'a> {
    oldest: BTreeMap<Target, &'a Ingress>,
    sticky: BTreeMap<(&'a str, Target), BTreeSet<ObjectKey>>,
    canaries: BTreeMap<Target, BTreeSet<ObjectKey>>,
    /// The Ingresses that each canary stands beside: it is meant for them.
    beside: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl<'a> Shared<'a> {
    pub(super) fn among(ingresses: &[&'a Ingress], options: &Options) -> Self {
        let has = |ingress: &Ingress, name: &str| annotation_of(ingress, name, options).is_some();
        let mut shared = Self::default();
        let mut routes: BTreeMap<(&str, &str), Vec<(&Ingress, Target)>> = BTreeMap::new();
        for ingress in ingresses.iter().filter(|ingress| !has(ingress, CANARY)) {
            for target in targets(ingress) {
                let oldest = shared.oldest.entry(target).or_insert(ingress);
                if Age::of(ingress) < Age::of(oldest) {
                    *oldest = ingress;
                }
            }
            let is_sticky = has(ingress, AFFINITY);
            for (host, path, target) in routed(ingress) {
                if is_sticky {
                    let sticky = shared.sticky.entry((host, target.clone())).or_default();
                    sticky.insert(ingress.meta.key.clone());
                }
                routes.entry((host, path)).or_default().push((ingress, target));
            }
        }
        for canary in ingresses.iter().filter(|ingress| has(ingress, CANARY)) {
            for (host, path, _) in routed(canary) {
                for (main, target) in routes.get(&(host, path)).into_iter().flatten() {
                    let canaries = shared.canaries.entry(target.clone()).or_default();
                    canaries.insert(canary.meta.key.clone());
                    let beside = shared.beside.entry(canary.meta.key.clone()).or_default();
                    beside.insert(main.meta.key.clone());
                }
            }
        }
        shared
    }

    /// The settings of others that used to reach this one, and those of its own that did not count.
    fn differing(
        &self,
        ingress: &Ingress,
        snapshot: &Snapshot,
        options: &Options,
    ) -> BTreeMap<&'static str, String> {
        let key = &ingress.meta.key;
        let mut found = BTreeMap::new();
        let has = |name: &str| annotation_of(ingress, name, options).is_some();
        let is_canary = has(CANARY);
        for (host, _, target) in routed(ingress) {
            let sticky = self.sticky.get(&(host, target.clone()));
            let sticky = sticky.filter(|_| !has(AFFINITY));
            let is_meant =
                |owner: &&ObjectKey| self.beside.get(*owner).is_some_and(|all| all.contains(key));
            let canaries = self.canaries.get(&target).filter(|_| !is_canary).into_iter().flatten();
            let canaries: Vec<_> = canaries.filter(|owner| !is_meant(owner)).collect();
            if let Some(owner) = sticky.and_then(BTreeSet::first).filter(|_| !is_canary) {
                found.entry(AFFINITY).or_insert_with(|| leak(owner, 0));
            }
            if let Some(owner) = canaries.first() {
                found.entry(CANARY).or_insert_with(|| leak(owner, canaries.len() - 1));
            }
        }
        for target in targets(ingress).filter(|_| !is_canary) {
            let Some(oldest) = self.oldest.get(&target).filter(|oldest| oldest.meta.key != *key)
            else {
                continue;
            };
            for (name, default) in OF_THE_OLDEST {
                let default = of_config_map(name, snapshot, options).unwrap_or(default);
                let of = |ingress: &Ingress| annotation_of(ingress, name, options);
                let (own, counted) = (of(ingress), of(oldest));
                let means = |text: &Option<String>| text.clone().unwrap_or(default.to_owned());
                if means(&own) != means(&counted) {
                    let owner = &oldest.meta.key;
                    let message = if own.is_none() { leak(owner, 0) } else { unheard(owner) };
                    found.entry(name).or_insert(message);
                }
            }
        }
        found
    }
}

/// A key of the ConfigMap, as it is written.
pub(super) fn of_config_map<'a>(
    name: &str,
    snapshot: &'a Snapshot,
    options: &Options,
) -> Option<&'a str> {
    let config_map = snapshot.config_maps.get(options.config_map.as_ref()?)?;
    config_map.data.get(name).map(String::as_str)
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
    let backends = paths.map(|path| &path.backend).chain(ingress.default_backend.as_deref());
    backends.filter_map(|backend| target(ingress, backend))
}

/// Where one Ingress is served otherwise.
pub(super) fn of(
    ingress: &Ingress,
    snapshot: &Snapshot,
    options: &Options,
    shared: &Shared<'_>,
) -> Vec<Remark> {
    let mut found: Vec<Remark> = Vec::new();
    let value = |name: &str| annotation_of(ingress, name, options);
    let mut say = |name: &str, message: String| {
        let key = Some(format!("{}/{name}", options.annotations_prefix));
        found.push(Remark { key, message });
    };
    for (name, message) in shared.differing(ingress, snapshot, options) {
        say(name, message);
    }
    if value("backend-protocol").is_some_and(|text| text.eq_ignore_ascii_case("FCGI")) {
        let timeouts = ["proxy-connect-timeout", "proxy-read-timeout", "proxy-send-timeout"];
        let is_set =
            |name: &&str| value(name).is_some() || of_config_map(name, snapshot, options).is_some();
        for name in timeouts.into_iter().filter(is_set) {
            say(name, "counts with FastCGI, too; ingress-nginx had 60 seconds there".to_owned());
        }
    }
    if value("auth-realm").is_some_and(|realm| realm == "off") {
        say(
            "auth-realm",
            "is a realm called off; ingress-nginx served without asking for a password".to_owned(),
        );
    }
    if value("backend-protocol").is_some_and(|text| is_protocol_in_lower_case(&text)) {
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
    let is_status = |text: &str| text.trim().parse().is_ok_and(|code| matches!(code, 400..600u16));
    // Anything but numbers is no list: ingress-nginx does not take it, either.
    let is_list = errors.chars().all(|c| c.is_ascii_digit() || c == ',' || c.is_whitespace());
    if !errors.is_empty() && is_list && !errors.split(',').all(is_status) {
        say(
            "custom-http-errors",
            "is served without the numbers that are none from 400 to 599; ingress-nginx did not take the Ingress at all"
                .to_owned(),
        );
    }
    let is = |name: &str, wanted: bool| {
        let text =
            value(name).or_else(|| of_config_map(name, snapshot, options).map(str::to_owned));
        text.is_some_and(|text| parse::boolean(&text) == Ok(wanted))
    };
    let redirects =
        is("force-ssl-redirect", true) || !ingress.tls.is_empty() && !is("ssl-redirect", false);
    if value("auth-tls-secret").is_some()
        && !redirects
        && value("auth-tls-verify-client").is_none_or(|mode| mode == "on")
    {
        let message = "plain HTTP is answered with 403; ingress-nginx served it without a certificate \
            where it was not redirected";
        say("auth-tls-secret", message.to_owned());
    }
    found.extend(sent::of(ingress, snapshot, options));
    found.extend([spaced, addresses].into_iter().flat_map(|of| of(ingress, snapshot, options)));
    found
}

/// Booleans and numbers with space around them, which Go reads as none. Where that shuts a guard, they are none here,
/// too (`About::exact`).
fn spaced(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let keys = FAMILIES.iter().flat_map(|family| family.keys);
    let keys = keys.filter(|key| {
        let About { name, form, exact, .. } = key.about();
        *form != Form::Other && !exact && !SPACED.contains(name)
    });
    let said = keys.flat_map(|key| {
        let about = key.about();
        let names = std::iter::once(about.name).chain(about.aliases.iter().copied());
        names.filter(|_| about.in_annotations()).filter_map(|name| {
            let full = format!("{}/{name}", options.annotations_prefix);
            let written = ingress.meta.annotations.get(full.as_str())?;
            let text = written.trim();
            let is_spaced = !text.is_empty() && text != written;
            let instead = about.in_config_map().and_then(|it| of_config_map(it, snapshot, options));
            let instead = instead.map(str::trim).filter(|text| !text.is_empty());
            let same = about.on_bad == OnBad::Default
                && means_the_same(text, instead.unwrap_or(about.default));
            let counts = is_spaced && !same && key.reads(text, !options.validate_annotations);
            counts.then(|| Remark {
                key: Some(full),
                message: format!(
                    "{} is no value to ingress-nginx, for the space around it; it counts here: write it without",
                    quote(written)
                ),
            })
        })
    });
    said.collect()
}

/// Whether two texts are the same boolean or the same number.
fn means_the_same(one: &str, other: &str) -> bool {
    match (parse::boolean(one), parse::boolean(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Whether it means a protocol in letters with which ingress-nginx chose it and forgot its headers.
fn is_protocol_in_lower_case(text: &str) -> bool {
    let word = text.to_ascii_uppercase();
    word != text && PROTOCOLS.contains(&word.trim())
}

/// `use-forwarded-headers` with a network: ingress-nginx believes the scheme, host and port of any peer.
pub(super) fn of_peers(configuration: &Configuration, options: &Options) -> Option<Remark> {
    let map = options.config_map.as_ref()?;
    let real_ip = &configuration.global.real_ip;
    let everybody = |network: &IpNet| network.prefix_len() == 0;
    let is_told = real_ip.forwarded_headers && !real_ip.trusted.iter().any(everybody);
    is_told.then(|| Remark {
        key: Some(named_of_config_map(map, "proxy-real-ip-cidr")),
        message: "X-Forwarded-Proto, -Host and -Port count from these networks alone; ingress-nginx took them from any peer. \
            Make sure that the addresses of all load balancers in front are among them, or clients are redirected to HTTPS \
            again and again"
            .to_owned(),
    })
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
        "{OF_ANOTHER}{}/{}{more} for the same Service; ingress-nginx let it reach this Ingress, too, Fairway does not",
        owner.namespace, owner.name
    )
}

/// What is heard here and was not there.
fn unheard(oldest: &ObjectKey) -> String {
    format!(
        "counts here; ingress-nginx took what the oldest Ingress of the same Service says, {}/{}",
        oldest.namespace, oldest.name
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
