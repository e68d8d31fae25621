//! What a text stands among: the Ingress and the host that it is of, and the ConfigMap.

use crate::Options;
use crate::check::differences::of_config_map;
use crate::ingress::{Age, annotation_of};
use crate::settings::parse;
use objects::{Ingress, ObjectKey, Snapshot};
use std::collections::BTreeMap;

pub(super) const OWN_TEXT: &str = "server-snippet";
pub(super) const CLIENTS: &str = "auth-tls-secret";
pub(super) const UPSTREAMS: &str = "proxy-ssl-secret";

/// What the server of a host has of the first Ingress that says it.
const OF_HOST: [&str; 5] =
    [OWN_TEXT, CLIENTS, UPSTREAMS, "ssl-ciphers", "ssl-prefer-server-ciphers"];

/// The oldest Ingress of each host that has an annotation of [`OF_HOST`].
pub(in crate::check) struct Hosts<'a>(BTreeMap<(&'a str, &'static str), &'a Ingress>);

impl<'a> Hosts<'a> {
    pub(in crate::check) fn among(
        ingresses: &[&'a Ingress],
        snapshot: &Snapshot,
        options: &Options,
    ) -> Self {
        let mut found = BTreeMap::new();
        for ingress in ingresses {
            let says = |name: &&str| says(ingress, name, snapshot, options);
            for name in OF_HOST.into_iter().filter(says) {
                for host in hosts(ingress) {
                    let first = found.entry((host, name)).or_insert(*ingress);
                    if Age::of(ingress) < Age::of(first) {
                        *first = ingress;
                    }
                }
            }
        }
        Self(found)
    }
}

/// Those whose rules have paths; an Ingress without a host is for everybody.
fn hosts(ingress: &Ingress) -> impl Iterator<Item = &str> {
    let rules = ingress.rules.iter().filter(|rule| rule.paths.is_some());
    rules.map(|rule| rule.host.as_deref().unwrap_or_default())
}

fn says(ingress: &Ingress, name: &str, snapshot: &Snapshot, options: &Options) -> bool {
    let Some(text) = annotation_of(ingress, name, options) else { return false };
    if [CLIENTS, UPSTREAMS].contains(&name) {
        return has_authorities(ingress, &text, snapshot);
    }
    // Canaries are heard of both all the same.
    let canary = annotation_of(ingress, "canary", options);
    canary.is_none_or(|text| parse::boolean(&text) != Ok(true))
}

/// Whether a Secret has authorities, as far as anybody knows: without them nobody is verified.
fn has_authorities(ingress: &Ingress, secret: &str, snapshot: &Snapshot) -> bool {
    let own = &*ingress.meta.key.namespace;
    let (namespace, name) = secret.split_once('/').unwrap_or((own, secret));
    let data = snapshot.secrets.get(&ObjectKey::new(namespace, name));
    let data = data.and_then(|secret| secret.data.as_ref());
    data.is_none_or(|data| data.get("ca.crt").is_some_and(|text| !text.is_empty()))
}

/// What a text stands among.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// None for what stands around all of them.
    pub(super) ingress: Option<&'a Ingress>,
    pub(super) hosts: &'a Hosts<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) options: &'a Options,
}

impl<'a> Around<'a> {
    pub(super) fn annotation(self, name: &str) -> Option<String> {
        annotation_of(self.ingress?, name, self.options)
    }

    pub(super) fn has(self, name: &str) -> bool {
        self.annotation(name).is_some()
    }

    /// What the ConfigMap says.
    pub(super) fn of_all(self, name: &str) -> Option<&'a str> {
        of_config_map(name, self.snapshot, self.options).filter(|text| !text.is_empty())
    }

    /// Of the annotation, else of the ConfigMap.
    pub(super) fn value(self, name: &str) -> Option<String> {
        let of_all = || of_config_map(name, self.snapshot, self.options).map(str::to_owned);
        self.annotation(name).or_else(of_all)
    }

    pub(super) fn switch(self, name: &str) -> Option<bool> {
        self.value(name).and_then(|text| parse::boolean(&text).ok())
    }

    /// Whether a number is more than none; what is no number counts as if it were not there.
    pub(super) fn is_above_zero(self, name: &str) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let own = self.annotation(name).as_deref().and_then(number);
        own.or_else(|| self.of_all(name).and_then(number)).is_some_and(|number| number > 0)
    }

    /// The Ingress of which a server of its hosts has what this annotation says.
    pub(super) fn of_host(self, name: &'static str) -> Option<&'a Ingress> {
        hosts(self.ingress?).find_map(|host| self.hosts.0.get(&(host, name)).copied())
    }

    /// Whether its text is that of one of its hosts: the oldest is.
    pub(super) fn is_pasted(self) -> bool {
        self.ingress.is_some_and(|own| {
            let first = |host: &str| self.hosts.0.get(&(host, OWN_TEXT)).copied();
            hosts(own).filter_map(first).any(|first| first.meta.key == own.meta.key)
        })
    }

    /// The Ingress by whose authorities the upstreams of a location are verified.
    pub(super) fn verifier(self) -> Option<&'a Ingress> {
        self.ingress.filter(|own| says(own, UPSTREAMS, self.snapshot, self.options))
    }

    /// The same of a server.
    pub(super) fn verifier_of_host(self) -> Option<&'a Ingress> {
        let is_told = self.switch("proxy-ssl-location-only") != Some(true);
        self.of_host(UPSTREAMS).filter(|_| is_told)
    }

    /// Whether it stands in the server of hosts that nobody has; the ConfigMap's stands in every one.
    pub(super) fn is_for_everybody(self) -> bool {
        self.ingress.is_none_or(|it| {
            it.default_backend.is_some() || it.rules.iter().any(|rule| rule.host.is_none())
        })
    }
}
