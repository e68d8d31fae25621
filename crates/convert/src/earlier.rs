//! What an earlier conversion has written into objects that this one replaces, and what is not written again.

use crate::lost::{Ledger, Weight};
use crate::made::Made;
use objects::{ObjectKey, Snapshot};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many names are told.
const SHOWN: usize = 5;

/// Says which listeners and Secrets will be gone: routes whose Ingresses are gone may still need them.
pub(crate) fn note(all: &[Made], snapshot: &Snapshot, ledger: &mut Ledger<'_>) {
    for made in all {
        let (kind, meta) = (made.value["kind"].as_str(), &made.value["metadata"]);
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let key = ObjectKey::new(text("namespace"), text("name"));
        let spec = &made.value["spec"];
        let (word, gone) = match kind {
            Some("Gateway") => {
                let Some(former) = snapshot.gateways.get(&key) else { continue };
                let names = former.listeners.iter().map(|listener| listener.name.as_str());
                ("listeners", missing(names, &spec["listeners"]))
            }
            Some("ReferenceGrant") => {
                let Some(former) = snapshot.grants.get(&key) else { continue };
                let names = former.to.iter().filter_map(|to| to.name.as_deref());
                ("Secrets", missing(names, &spec["to"]))
            }
            _ => continue,
        };
        if gone.is_empty() {
            continue;
        }
        let more = match gone.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let reason = format!(
            "{word} that are there are not written again, and routes of an earlier conversion may need them: {}{more}",
            gone[..gone.len().min(SHOWN)].join(", ")
        );
        let name = format!("{} {}/{}", kind.unwrap_or_default(), key.namespace, key.name);
        let remedy = "take another --gateway-name, or put them in before this is applied, if they are needed";
        ledger.add(None, &name, Weight::Lost, reason, remedy);
    }
}

/// Names that are not among those of a list.
fn missing<'n>(names: impl Iterator<Item = &'n str>, list: &Value) -> Vec<&'n str> {
    let written = list.as_array().into_iter().flatten();
    let written: BTreeSet<&str> = written.filter_map(|one| one["name"].as_str()).collect();
    names.filter(|name| !written.contains(name)).collect()
}
