//! Names of the new objects: each is there once, is short enough, and takes the place of nothing unsaid.

use crate::lost::{Ledger, Weight};
use crate::made::Made;
use objects::{Kind, ObjectKey, Snapshot};
use serde_json::json;
use std::collections::BTreeSet;

/// The longest name that the API server takes.
pub(crate) const LONGEST: usize = 253;

/// Gives objects of one name others, and says which are there already.
pub(crate) fn settle(all: &mut [Made], snapshot: &Snapshot, ledger: &mut Ledger<'_>) {
    let mut taken = BTreeSet::new();
    for made in all {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, meta) = (text(&made.value["kind"]), &made.value["metadata"]);
        let (namespace, wanted) = (text(&meta["namespace"]), text(&meta["name"]));
        let mut name = within(&wanted, LONGEST);
        let mut number = 2;
        while !taken.insert((kind.clone(), namespace.clone(), name.clone())) {
            let end = format!("-{number}");
            name = within(&wanted, LONGEST - end.len()) + &end;
            number += 1;
        }
        if is_there(&kind, &ObjectKey::new(namespace.as_str(), name.as_str()), snapshot) {
            let reason = "an object of this name is there, and is replaced when this is applied";
            let key = format!("{kind} {namespace}/{name}");
            let remedy =
                "nothing, if it is of an earlier conversion; else give one of them another name";
            ledger.add(made.of.as_ref(), &key, Weight::Note, reason, remedy);
        }
        if name != wanted {
            made.value["metadata"]["name"] = json!(name);
        }
    }
}

/// A name that is short enough, and still one of its own: the end of a long one is a number that stands for it.
pub(crate) fn within(name: &str, most: usize) -> String {
    if name.len() <= most {
        return name.to_owned();
    }
    // FNV-1a: the same for the same name, whoever converts.
    let digest = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let end = format!("-{digest:016x}");
    let start: String = name.chars().take(most - end.len()).collect();
    start.trim_end_matches(['-', '.']).to_owned() + &end
}

fn is_there(kind: &str, key: &ObjectKey, snapshot: &Snapshot) -> bool {
    let http = |kind| snapshot.http_routes.contains_key(&(kind, key.clone()));
    match kind {
        "HTTPRoute" => http(Kind::HttpRoute),
        "GRPCRoute" => http(Kind::GrpcRoute),
        "TLSRoute" => snapshot.stream_routes.contains_key(&(Kind::TlsRoute, key.clone())),
        "Gateway" => snapshot.gateways.contains_key(key),
        "ConfigMap" => snapshot.config_maps.contains_key(key),
        "BackendTLSPolicy" => snapshot.backend_tls.contains_key(key),
        "ReferenceGrant" => snapshot.grants.contains_key(key),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        assert_eq!(within("short", 253), "short");
        let (a, b) = (within(&"a.".repeat(200), 253), within(&"a.".repeat(201), 253));
        assert!(a.len() <= 253 && b.len() <= 253 && a != b);
        assert_eq!(a, within(&"a.".repeat(200), 253));
    }
}
