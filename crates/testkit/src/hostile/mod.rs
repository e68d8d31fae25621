//! Objects of tenants who mean harm or know no better, beside one honest neighbour: a random cluster for every seed.
//! Whatever is made of them, an engine has to take it, and the neighbour has to be served.
//!
//! ```text
//! let objects = testkit::hostile::objects(seed, &Keys { annotations, settings }, backend);
//! // translate them, apply what comes out, and ask for HONEST
//! ```

mod secrets;
mod values;

use fastrand::Rng;
use serde_json::{Value, json};
use std::net::SocketAddr;

use crate::builders::{self, Ingress, config_map, endpoint_slice, ingress, ingress_class, service};

/// The host of the honest neighbour: nobody else writes a rule for it.
pub const HONEST: &str = "honest.test";

/// The namespaces of the others. Each has the same Services, Secrets and ConfigMaps.
const TENANTS: [&str; 2] = ["a", "b"];
/// Hosts of tenants; the first two are shared.
const HOSTS: [&str; 6] =
    ["shared.test", "regex.test", "*.wild.test", "own.test", "sub.wild.test", ""];
/// Ingresses of tenants at most.
const INGRESSES: usize = 8;
/// Annotations of an Ingress at most, besides those that go with them.
const ANNOTATIONS: usize = 7;
/// Settings of the ConfigMap at most.
const SETTINGS: usize = 5;

/// The names of all keys that the program knows: the generator does not.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Annotations, without their prefix.
    pub annotations: &'a [&'a str],
    /// Settings of the ConfigMap `ingress-nginx/ingress-nginx-controller`. Where there are any, one seed in four
    /// has a ConfigMap as bad as everything else.
    pub settings: &'a [&'a str],
}

/// Every object of the cluster of a seed. The Service of the honest neighbour has `backend` as its endpoint, and so
/// have those of tenants.
///
/// # Panics
/// When there is no annotation to choose from.
#[must_use]
pub fn objects(seed: u64, keys: &Keys<'_>, backend: SocketAddr) -> Vec<Value> {
    let mut rng = Rng::with_seed(seed);
    let honest = ingress("honest/web").host(HONEST).path("/", "echo:80");
    let mut all = vec![
        ingress_class("nginx", "k8s.io/ingress-nginx"),
        settings(&mut rng, keys.settings),
        honest.created("2026-06-01T00:00:00Z").build(),
    ];
    for namespace in TENANTS.into_iter().chain(["honest"]) {
        let echo = format!("{namespace}/echo");
        all.push(service(&echo).port("http", 80, backend.port()).build());
        let slice = endpoint_slice(&echo).port("http", backend.port());
        all.push(slice.ready(&backend.ip().to_string()).build());
    }
    for namespace in TENANTS {
        let elsewhere = service(&format!("{namespace}/elsewhere")).port("http", 80, 80);
        all.push(elsewhere.external("elsewhere.invalid").build());
        let headers: Vec<_> = (0..rng.usize(..3)).map(|_| values::header(&mut rng)).collect();
        let headers: Vec<_> =
            headers.iter().map(|(name, it)| (name.as_str(), it.as_str())).collect();
        all.push(config_map(&format!("{namespace}/headers"), &headers));
        all.extend(secrets::of(&mut rng, namespace));
    }
    all.extend((0..rng.usize(1..=INGRESSES)).map(|number| tenant(&mut rng, number, keys).build()));
    all
}

/// The ConfigMap: mostly as it ought to be.
fn settings(rng: &mut Rng, keys: &[&str]) -> Value {
    let mut data = vec![("annotations-risk-level".to_owned(), "Critical".to_owned())];
    if rng.u8(..3) == 0 {
        data.push(("allow-snippet-annotations".to_owned(), "true".to_owned()));
    }
    if !keys.is_empty() && rng.u8(..4) == 0 {
        for _ in 0..rng.usize(1..=SETTINGS) {
            let key = keys[rng.usize(..keys.len())];
            data.push((key.to_owned(), values::of(rng, key)));
        }
    }
    let data: Vec<_> = data.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    config_map("ingress-nginx/ingress-nginx-controller", &data)
}

/// An Ingress of a tenant. Some are older than that of the honest neighbour.
fn tenant(rng: &mut Rng, number: usize, keys: &Keys<'_>) -> Ingress {
    let namespace = TENANTS[rng.usize(..TENANTS.len())];
    let created = format!("2026-{:02}-01T00:00:00Z", rng.u8(1..=12));
    let mut own = ingress(&format!("{namespace}/i{number}")).created(&created);
    for _ in 0..rng.usize(1..3) {
        let host = HOSTS[rng.usize(..HOSTS.len())];
        if !host.is_empty() {
            own = own.host(host);
        }
        for _ in 0..rng.usize(1..4) {
            let kind = ["Exact", "Prefix", "ImplementationSpecific"][rng.usize(..3)];
            let to = ["echo:80", "echo:80", "elsewhere:80", "missing:80"][rng.usize(..4)];
            own = own.typed_path(kind, &values::path(rng), to);
        }
        if rng.u8(..3) == 0 && !host.is_empty() {
            own = own.tls(["pair", "flipped", "mismatched"][rng.usize(..3)], &[host]);
        }
    }
    if rng.u8(..3) == 0 {
        own = own.annotate("use-regex", "true");
    }
    for _ in 0..rng.usize(..=ANNOTATIONS) {
        let key = keys.annotations[rng.usize(..keys.annotations.len())];
        let value = values::of(rng, key);
        own = own.annotate(key, &value);
        // Most of a family counts only beside one of its keys.
        for (family, needed) in values::NEEDED {
            if key.starts_with(family) && key != *needed {
                let value = values::of(rng, needed);
                own = own.annotate(needed, &value);
            }
        }
    }
    own
}

/// A Secret whose data are bytes.
fn secret(name: &str, entries: &[(&str, Vec<u8>)]) -> Value {
    let mut object = builders::secret(name, &[]);
    for (key, bytes) in entries {
        object["data"][*key] = json!(openssl::base64::encode_block(bytes));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_names_and_the_neighbour_is_alone_on_its_host() {
        let keys = Keys { annotations: &["auth-url", "server-alias"], settings: &["hsts"] };
        let make = |seed| objects(seed, &keys, SocketAddr::from(([127, 0, 0, 1], 80)));
        for seed in 0..50 {
            let (one, two) = (make(seed), make(seed));
            let named = |all: &[Value]| -> Vec<Value> {
                let is_plain = |object: &&Value| object["kind"] != "Secret";
                all.iter().filter(is_plain).cloned().collect()
            };
            assert_eq!(named(&one), named(&two), "seed {seed}");
            let hosts = one.iter().flat_map(|object| {
                let rules = object["spec"]["rules"].as_array().cloned().unwrap_or_default();
                rules.into_iter().filter(|rule| rule["host"] == HONEST)
            });
            assert_eq!(hosts.count(), 1, "seed {seed}");
        }
    }
}
