//! Which Ingresses are ours by their class, and classes of ours that do not exist: nobody else says that their
//! Ingresses are not served.

use super::{Finder, Translator, Work};
use crate::Options;
use crate::ingress::{Classes, is_ours, is_watched};
use model::{Kind, Origin, Problem, Severity};
use objects::{Ingress, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The IngressClasses that watched Ingresses name.
#[derive(Debug, Default)]
pub(super) struct NamedClasses {
    /// How many Ingresses name each.
    named: BTreeMap<Arc<str>, usize>,
    /// Those that are ours, or were before they went.
    ours: BTreeSet<Arc<str>>,
    /// Ingresses whose class is ours and does not exist.
    pub(super) without: usize,
}

impl NamedClasses {
    /// Counts anew the Ingresses that differ between two Snapshots.
    fn follow(
        &mut self,
        touched: &BTreeSet<ObjectKey>,
        [old, new]: [&Snapshot; 2],
        options: &Options,
    ) {
        let named = |snapshot: &Snapshot, key| {
            let ingress = snapshot.ingresses.get(key).filter(|it| is_watched(it, options))?;
            ingress.class.as_deref().map(Arc::<str>::from)
        };
        for key in touched {
            if let Some(before) = named(old, key)
                && let Some(count) = self.named.get_mut(&before)
            {
                *count -= 1;
                if *count == 0 {
                    self.named.remove(&before);
                }
            }
            if let Some(now) = named(new, key) {
                *self.named.entry(now).or_default() += 1;
            }
        }
    }

    /// The classes of ours that do not exist and that Ingresses name. A class that was never ours is for others to
    /// miss, unless it is called as `--ingress-class` says.
    fn missing(
        &mut self,
        classes: &Classes,
        snapshot: &Snapshot,
        options: &Options,
    ) -> Vec<Problem> {
        self.without = 0;
        let (Some(accepted), Some(there)) = (classes.names(), &snapshot.classes) else {
            self.ours.clear();
            return Vec::new();
        };
        self.ours.extend(accepted.iter().cloned());
        self.ours.retain(|name| accepted.contains(name) || self.named.contains_key(name));
        let told = Arc::<str>::from(options.ingress_class.as_str());
        let ours: BTreeSet<&Arc<str>> = self.ours.iter().chain([&told]).collect();
        let gone =
            ours.into_iter().filter(|name| !there.contains_key(&ObjectKey::new("", &***name)));
        let mut problems = Vec::new();
        for name in gone {
            let Some(count) = self.named.get(name) else { continue };
            self.without += count;
            let who = match count {
                1 => "1 Ingress names it and is".to_owned(),
                count => format!("{count} Ingresses name it and are"),
            };
            let message = format!(
                "does not exist; {who} not served: create it with spec.controller {}",
                options.controller_class
            );
            problems.push(Problem {
                origin: Origin::new(Kind::IngressClass, "", Arc::clone(name)),
                key: None,
                severity: Severity::Error,
                message: message.into(),
            });
        }
        problems
    }
}

impl Translator {
    /// Ingresses whose class is ours now, or no more, are touched.
    pub(super) fn take_classes(&mut self, old: &Snapshot, work: &mut Work) {
        self.named_classes.follow(&work.ingresses, [old, &self.snapshot], &self.options);
        let now = Classes::accepted(&self.snapshot, &self.options);
        let missing = self.named_classes.missing(&now, &self.snapshot, &self.options);
        self.ledger.set(Finder::Classes, missing);
        if now == self.classes {
            return;
        }
        let before = std::mem::replace(&mut self.classes, now);
        let ours = |ingress: &Ingress, classes| is_ours(ingress, classes, &self.options);
        let changed = self
            .snapshot
            .ingresses
            .iter()
            .filter(|(_, ingress)| ours(ingress, &before) != ours(ingress, &self.classes));
        work.ingresses.extend(changed.map(|(key, _)| key.clone()));
    }
}
