//! Secrets that were renewed badly: what the version before was good for, it stays good for (compat/decisions.md).

use super::Finder;
use crate::certificate;
use crate::problems::Ledger;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use model::{Kind, Message, Origin, Problem, Severity};
use objects::{ObjectKey, Secret, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fields of a Secret that are used together, and what is wrong with them.
struct Part {
    /// What stays in use, as the end of a sentence.
    stays: &'static str,
    fields: [&'static str; 2],
    fault: fn(&Secret) -> Option<Message>,
}

const PAIR: Part = Part {
    stays: "certificate stays",
    fields: ["tls.crt", "tls.key"],
    fault: |secret| certificate::served(secret).err(),
};

const AUTHORITIES: Part = Part {
    stays: "authorities stay",
    fields: ["ca.crt", "ca.crl"],
    fault: |secret| certificate::authorities(secret).err(),
};

/// The Secrets of the cluster as they were seen, and what is used in place of those that cannot be.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    seen: OrdMap<ObjectKey, Arc<Secret>>,
    instead: BTreeMap<ObjectKey, Arc<Secret>>,
}

impl Secrets {
    /// The Snapshot with the last good version of what was renewed badly.
    pub(super) fn follow(&mut self, new: &Snapshot, ledger: &mut Ledger<Finder>) -> Snapshot {
        let seen = std::mem::replace(&mut self.seen, new.secrets.clone());
        for item in seen.diff(&new.secrets) {
            match item {
                DiffItem::Add(..) => {}
                DiffItem::Remove(key, _) => {
                    self.instead.remove(key);
                    ledger.set(Finder::Secret(key.clone()), Vec::new());
                }
                DiffItem::Update { old: (key, old), new: (_, new) } => {
                    let used = self.instead.remove(key).unwrap_or_else(|| Arc::clone(old));
                    let (instead, problems) = renewed(&used, new);
                    self.instead.extend(instead.map(|secret| (key.clone(), Arc::new(secret))));
                    ledger.set(Finder::Secret(key.clone()), problems);
                }
            }
        }
        let mut used = new.clone();
        for (key, secret) in &self.instead {
            used.secrets.insert(key.clone(), Arc::clone(secret));
        }
        used
    }
}

/// What is used of a new version where it is not used as it is, and why.
fn renewed(used: &Secret, new: &Secret) -> (Option<Secret>, Vec<Problem>) {
    let (Some(before), Some(now)) = (&used.data, &new.data) else { return (None, Vec::new()) };
    let mut merged = new.clone();
    let mut problems = Vec::new();
    for (part, other) in [(PAIR, AUTHORITIES), (AUTHORITIES, PAIR)] {
        let same = part.fields.iter().all(|field| before.get(*field) == now.get(*field));
        let removed = part.fields.iter().all(|field| !now.contains_key(*field));
        if same || (part.fault)(used).is_some() || removed && (other.fault)(new).is_none() {
            continue;
        }
        let Some(fault) = (part.fault)(new) else { continue };
        let data = merged.data.get_or_insert_default();
        for field in part.fields {
            match before.get(field) {
                Some(value) => data.insert(field.to_owned(), value.clone()),
                None => data.remove(field),
            };
        }
        let origin = Origin::new(
            Kind::Secret,
            Arc::clone(&new.meta.key.namespace),
            Arc::clone(&new.meta.key.name),
        );
        problems.push(Problem {
            origin,
            key: Some(part.fields[0].to_owned()),
            severity: Severity::Error,
            message: format!(
                "the renewed Secret {fault}; its last good {} in use until then, but for Pods that start meanwhile",
                part.stays
            )
            .into(),
        });
    }
    ((!problems.is_empty()).then_some(merged), problems)
}
