//! All named folders as they are now: reads what was touched, and nothing else.

use super::tree::{Touched, Tree, Version};
use crate::Error;
use inotify::{EventOwned, Watches};
use objects::manifests::{FileId, Files, parse};
use objects::{Malformed, ObjectKey, Snapshot, Unread};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use system::breaks::between_pieces;

/// Larger files are refused, so that a stray one cannot take all memory.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// All named folders as they are now.
pub(super) struct Folders {
    tree: Tree,
    files: Files,
    versions: BTreeMap<FileId, Option<Version>>,
    /// Roots that cannot be read now, with the report about each. Their objects stay.
    missing: BTreeMap<usize, Arc<str>>,
}

impl Folders {
    /// Reads everything for the first time; a folder that cannot be read is an error then.
    pub(super) fn read(roots: Vec<PathBuf>, watches: Watches) -> Result<Self, Error> {
        let mut folders = Self {
            tree: Tree::new(roots, watches),
            files: Files::default(),
            versions: BTreeMap::new(),
            missing: BTreeMap::new(),
        };
        for root in folders.tree.roots() {
            folders.root(root)?;
        }
        Ok(folders)
    }

    pub(super) fn publish(&mut self) -> Option<Snapshot> {
        self.files.store().publish()
    }

    pub(super) fn note(&mut self, event: &EventOwned, touched: &mut Touched) {
        self.tree.note(event, touched);
    }

    /// Whether a root cannot be read now, and is to be looked for.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Reads what was touched.
    pub(super) fn refresh(&mut self, touched: Touched) {
        if touched.everything {
            for root in self.tree.roots() {
                match self.root(root) {
                    Ok(()) => self.found(root),
                    Err(error) => self.lost(root, &error),
                }
            }
        }
        for file in touched.files {
            self.file(file);
        }
    }

    /// Finds out which files a root holds, and reads those that changed.
    fn root(&mut self, root: usize) -> Result<(), Error> {
        let found = self.tree.walk(root)?;
        let known = self.versions.keys().filter(|file| file.root == root);
        let gone: Vec<_> = known.filter(|file| !found.contains_key(file)).cloned().collect();
        for file in gone {
            self.versions.remove(&file);
            self.files.remove(&file);
        }
        for (file, version) in found {
            if self.versions.get(&file) != Some(&Some(version)) {
                self.file(file);
            }
        }
        Ok(())
    }

    fn file(&mut self, file: FileId) {
        between_pieces();
        match read(&file.path) {
            Ok((version, text)) => {
                if self.tree.is_root(&file) {
                    self.found(file.root);
                }
                self.files.set(&file, parse(&file.path, &text));
                self.versions.insert(file, Some(version));
            }
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && (self.tree.is_root(&file) || !is_link(&file.path)) =>
            {
                if self.tree.is_root(&file) {
                    let root = file.root;
                    self.lost(root, &Error::Manifests { path: file.path, source: error });
                } else {
                    self.versions.remove(&file);
                    self.files.remove(&file);
                }
            }
            Err(error) => {
                let then = if self.files.holds(&file) { "; its last content counts" } else { "" };
                let message = match error.kind() {
                    io::ErrorKind::NotFound => {
                        format!("it is a link that leads nowhere: leave it out, or mend it{then}")
                    }
                    _ => format!("the file cannot be read: {error}{then}"),
                };
                self.files.unreadable(&file, message);
                self.versions.insert(file, None);
            }
        }
    }

    fn found(&mut self, root: usize) {
        if let Some(report) = self.missing.remove(&root) {
            self.files.store().withdraw(&report);
        }
    }

    fn lost(&mut self, root: usize, error: &Error) {
        self.found(root);
        let path = self.tree.root(root).display().to_string();
        let message = format!("{error}; what it held before still counts");
        let id: Arc<str> = format!("{path} {message}").into();
        let key = ObjectKey::new("", path);
        self.files.store().report(
            id.clone(),
            Malformed { kind: None, key, of: None, why: Unread::Wrong, message },
        );
        self.missing.insert(root, id);
    }
}

/// Whether there is a link, wherever it leads.
fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink())
}

fn read(path: &Path) -> io::Result<(Version, String)> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > MAX_FILE {
        return Err(io::Error::other("it is larger than 256 MiB; split it"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_FILE).read_to_end(&mut bytes)?;
    let text = objects::manifests::text_of(bytes).map_err(io::Error::other)?;
    Ok((Version::of(&metadata), text))
}
