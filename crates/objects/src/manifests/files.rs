//! What every file says, which file counts where two say different things, and what stays of a file that broke.

use super::document::Place;
use super::kustomization::{Kustomization, plainly};
use super::parse::{Fault, Parsed};
use crate::{Kind, Malformed, Object, ObjectKey, Store, Unread};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file. The order of files is the order in which they count: the later one wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The place of its folder among those that were named.
    pub root: usize,
    /// Its path.
    pub path: PathBuf,
}

type Identity = (Kind, ObjectKey);

/// What all files say.
#[derive(Debug)]
pub struct Files {
    store: Store,
    contents: BTreeMap<FileId, Content>,
    /// The files that have an object.
    holders: HashMap<Identity, BTreeSet<FileId>>,
    /// Reports about files whose version of an object does not count.
    shadowed: HashMap<Identity, Vec<Arc<str>>>,
    kustomizations: BTreeMap<FileId, Vec<(Place, Kustomization)>>,
    /// The files that they name as patches: what is in them are parts of objects, and none counts.
    patches: BTreeSet<PathBuf>,
    /// Reports about kustomizations without which something is not read.
    not_applied: Vec<(Arc<str>, Malformed)>,
}

#[derive(Debug, Default)]
struct Content {
    objects: BTreeMap<Identity, (Place, Object)>,
    reports: Vec<Arc<str>>,
}

impl Default for Files {
    fn default() -> Self {
        let mut store = Store::default();
        store.set_classes_known(true);
        Self {
            store,
            contents: BTreeMap::new(),
            holders: HashMap::new(),
            shadowed: HashMap::new(),
            kustomizations: BTreeMap::new(),
            patches: BTreeSet::new(),
            not_applied: Vec::new(),
        }
    }
}

impl Files {
    /// What the files make together.
    pub fn store(&mut self) -> &mut Store {
        self.judge_kustomizations();
        &mut self.store
    }

    /// Finds out which kustomizations lose something, now that it is known which files are read.
    fn judge_kustomizations(&mut self) {
        let mut reports = Vec::new();
        if !self.kustomizations.is_empty() {
            let read: BTreeSet<PathBuf> =
                self.contents.keys().map(|file| plainly(&file.path)).collect();
            // What is below a folder stands right behind it.
            let is_read = |path: &Path| {
                read.range(path.to_owned()..).next().is_some_and(|next| next.starts_with(path))
            };
            for (file, found) in &self.kustomizations {
                let losses = found.iter().filter_map(|(place, it)| {
                    let message = it.loss(&file.path, is_read)?;
                    let fault = Fault { place: *place, object: None, message };
                    Some(report_of(&file.path, Unread::Kustomization, &fault))
                });
                reports.extend(losses);
            }
        }
        if reports != self.not_applied {
            for (id, _) in &self.not_applied {
                self.store.withdraw(id);
            }
            for (id, malformed) in &reports {
                self.store.report(id.clone(), malformed.clone());
            }
            self.not_applied = reports;
        }
    }

    /// Takes a file as it is now. Objects that cannot be read keep the version that the file had before; if a
    /// document is so broken that nobody can tell its object, everything stays that the rest of the file lacks.
    pub fn set(&mut self, file: &FileId, parsed: Parsed) {
        let before = self.contents.remove(file).unwrap_or_default();
        for report in &before.reports {
            self.store.withdraw(report);
        }
        let mut content = Content::default();
        let Parsed { objects, issuers, faults, passed, kustomizations } = parsed;
        let mut repeated = Vec::new();
        self.set_kustomizations(file, kustomizations);
        for issuer in issuers {
            self.store.put_issuer(issuer);
        }
        for (place, object) in objects {
            let identity = (object.kind(), object.key().clone());
            let before = content.objects.insert(identity.clone(), (place, object));
            let is_same = |before: &Object| {
                content.objects.get(&identity).is_some_and(|(_, object)| object == before)
            };
            if let Some((first, before)) = before
                && !is_same(&before)
            {
                repeated.push(again(&identity, first, place));
            }
        }
        keep_last_good(&before, &faults, &mut content);
        let wrong = faults.iter().map(|fault| (Unread::Wrong, fault));
        let passed = passed.iter().map(|fault| (Unread::Passed, fault));
        let repeated = repeated.iter().map(|fault| (Unread::Twice, fault));
        for (why, fault) in wrong.chain(passed).chain(repeated) {
            let (id, malformed) = report_of(&file.path, why, fault);
            self.store.report(id.clone(), malformed);
            content.reports.push(id);
        }
        let touched: BTreeSet<_> =
            before.objects.keys().chain(content.objects.keys()).cloned().collect();
        self.contents.insert(file.clone(), content);
        for identity in touched {
            self.settle(identity, file);
        }
    }

    /// Takes the kustomizations of a file; what they name as patches begins to count no more, or ends to.
    fn set_kustomizations(&mut self, file: &FileId, found: Vec<(Place, Kustomization)>) {
        let before = self.kustomizations.remove(file);
        if found.is_empty() && before.is_none() {
            return;
        }
        if !found.is_empty() {
            self.kustomizations.insert(file.clone(), found);
        }
        let all = self.kustomizations.iter();
        let patches = all.flat_map(|(file, found)| {
            found.iter().flat_map(|(_, kustomization)| kustomization.patches(&file.path))
        });
        let before = std::mem::replace(&mut self.patches, patches.collect());
        let changed: BTreeSet<_> = before.symmetric_difference(&self.patches).collect();
        let files = self.contents.iter().filter(|(file, _)| changed.contains(&plainly(&file.path)));
        let touched = files.flat_map(|(file, content)| {
            content.objects.keys().map(|identity| (identity.clone(), file.clone()))
        });
        let touched: Vec<_> = touched.collect();
        for (identity, file) in touched {
            self.settle(identity, &file);
        }
    }

    /// Whether a file holds an object.
    pub fn holds(&self, file: &FileId) -> bool {
        self.contents.get(file).is_some_and(|content| !content.objects.is_empty())
    }

    /// A file that cannot be read at all keeps what it held.
    pub fn unreadable(&mut self, file: &FileId, message: String) {
        self.set(
            file,
            Parsed {
                faults: vec![Fault { place: Place::START, object: None, message }],
                ..Parsed::default()
            },
        );
    }

    /// Forgets a file that is gone.
    pub fn remove(&mut self, file: &FileId) {
        if self.contents.contains_key(file) {
            self.set(file, Parsed::default());
            self.contents.remove(file);
        }
    }

    /// Decides again which version of an object counts, after one file changed.
    fn settle(&mut self, identity: Identity, file: &FileId) {
        let has = self.contents.get(file).is_some_and(|c| c.objects.contains_key(&identity));
        let holders = self.holders.entry(identity.clone()).or_default();
        if has {
            holders.insert(file.clone());
        } else {
            holders.remove(file);
        }
        for report in self.shadowed.remove(&identity).unwrap_or_default() {
            self.store.withdraw(&report);
        }
        let patches = &self.patches;
        let counts = |file: &&FileId| patches.is_empty() || !patches.contains(&plainly(&file.path));
        let is_held = !holders.is_empty();
        let Some(winner) = holders.iter().rfind(counts) else {
            if !is_held {
                self.holders.remove(&identity);
            }
            self.store.remove(identity.0, &identity.1);
            return;
        };
        let version_of = |file: &FileId| {
            let content = self.contents.get(file)?;
            content.objects.get(&identity).cloned()
        };
        let counted = version_of(winner);
        let mut reports = Vec::new();
        // A file that was named twice, or beside its folder, is no second one.
        for loser in holders.iter().filter(counts).filter(|holder| holder.path != winner.path) {
            let Some((place, object)) = version_of(loser) else { continue };
            // The same twice: whichever counts, nothing is lost.
            if counted.as_ref().is_some_and(|(_, counted)| *counted == object) {
                continue;
            }
            let message = format!(
                "{} is also in {}, which counts because it comes later; remove one of the two",
                identity.0.label(&identity.1),
                winner.path.display()
            );
            let fault = Fault { place, object: Some(identity.clone()), message };
            reports.push(report_of(&loser.path, Unread::Twice, &fault));
        }
        if let Some((_, object)) = counted {
            self.store.put(object);
        }
        if !reports.is_empty() {
            let ids = reports.iter().map(|(id, _)| id.clone()).collect();
            self.shadowed.insert(identity, ids);
        }
        for (id, malformed) in reports {
            self.store.report(id, malformed);
        }
    }
}

fn keep_last_good(before: &Content, faults: &[Fault], content: &mut Content) {
    let everything = faults.iter().any(|fault| fault.object.is_none());
    for (identity, version) in &before.objects {
        let named = faults.iter().any(|fault| fault.object.as_ref() == Some(identity));
        if (everything || named) && !content.objects.contains_key(identity) {
            content.objects.insert(identity.clone(), version.clone());
        }
    }
}

fn again(identity: &Identity, first: Place, second: Place) -> Fault {
    let message = format!(
        "{} is also in line {} of this file, which counts because it comes later; remove one of the two",
        identity.0.label(&identity.1),
        second.line
    );
    Fault { place: first, object: Some(identity.clone()), message }
}

/// A fault as the Snapshot reports it: under the object, where it is known, and the path, line and column where it is.
fn report_of(path: &Path, why: Unread, fault: &Fault) -> (Arc<str>, Malformed) {
    let Place { line, column } = fault.place;
    let place = format!("{}:{line}:{column}", path.display());
    let message = match &fault.object {
        Some((kind, key)) if !fault.message.starts_with(kind.name()) => {
            format!("{}: {}", kind.label(key), fault.message)
        }
        _ => fault.message.clone(),
    };
    let mut id = format!("{place} {message}");
    if let Some((kind, key)) = &fault.object {
        id.insert_str(0, &format!("{} ", kind.label(key)));
    }
    let (key, of) = (ObjectKey::new("", place), fault.object.clone());
    (id.into(), Malformed { kind: None, key, of, why, message })
}
