//! Whatever stands in a Secret that Ingresses name, both sides of TLS take what is made of it or close the locations of
//! that Ingress alone, what is said about it ends no line, and no other Ingress changes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use objects::{Ingress, IngressTls, ObjectKey, Secret, Snapshot};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use translate::{Options, translate};

const OBJECTS: &str = include_str!("../objects.yaml");
const FIELDS: [(&str, &str); 4] = [
    ("ca.crt", "CERTIFICATE"),
    ("ca.crl", "X509 CRL"),
    ("tls.crt", "CERTIFICATE"),
    ("tls.key", "PRIVATE KEY"),
];
static BASE: LazyLock<Snapshot> =
    LazyLock::new(|| objects::snapshot_of([(Path::new("base.yaml"), OBJECTS)]));

/// Bytes as the text of a field, or as what the text encodes.
fn field(bytes: &[u8], label: &str) -> Vec<u8> {
    match bytes {
        [b'!', der @ ..] => {
            let lines = proxy::parsers::base64(der);
            format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n").into_bytes()
        }
        text => text.to_vec(),
    }
}

/// An Ingress that names the Secret everywhere.
fn naming(ingress: &Ingress) -> Ingress {
    let mut named = ingress.clone();
    for (name, value) in [
        ("auth-tls-secret", "demo/fuzzed"),
        ("proxy-ssl-secret", "demo/fuzzed"),
        ("proxy-ssl-verify", "on"),
        ("backend-protocol", "HTTPS"),
    ] {
        let name = format!("{}/{name}", Options::default().annotations_prefix);
        named.meta.annotations.insert(name, value.to_owned());
    }
    named.tls = vec![IngressTls { hosts: Vec::new(), secret: Some("fuzzed".to_owned()) }];
    named
}

/// The next of several pieces, each behind its length in two bytes.
fn piece<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let [high, low, rest @ ..] = *bytes else { return &[] };
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let (piece, rest) = rest.split_at(length);
    *bytes = rest;
    piece
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let mut snapshot = BASE.clone();
    let key = ObjectKey::new("demo", "fuzzed");
    let parts = FIELDS.map(|(name, label)| (name.to_owned(), field(piece(&mut bytes), label)));
    let data: BTreeMap<String, Vec<u8>> =
        parts.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let meta = objects::Meta { key: key.clone(), ..objects::Meta::default() };
    let secret = Secret { meta, kind: "Opaque".to_owned(), data: Some(data) };
    snapshot.secrets.insert(key.clone(), Arc::new(secret));
    let ingress = naming(&snapshot.ingresses[&key]);
    snapshot.ingresses.insert(key.clone(), Arc::new(ingress));
    let options = Options::default();
    let made = translate(&snapshot, &options);
    for closed in proxy::parsers::trust(&made.configuration) {
        let closed = closed.map(|origin| ObjectKey::new(origin.namespace, origin.name));
        assert_eq!(closed.as_ref(), Some(&key), "only who names the Secret may be closed");
    }
    for problem in made.problems.iter() {
        assert!(!problem.to_string().chars().any(char::is_control), "{problem:?}");
    }
    let plain = translate(&BASE, &options).configuration;
    let other = model::ServerName::new("other.test");
    assert_eq!(made.configuration.servers.get(&other), plain.servers.get(&other));
});
