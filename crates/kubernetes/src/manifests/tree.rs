//! Which files the named folders hold, and which of them an event of the file system touches.

use crate::Error;
use inotify::{EventMask, EventOwned, WatchDescriptor, WatchMask, Watches};
use objects::manifests::{FileId, is_kustomization};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Deep enough for any folder of manifests, and an end to folders that contain themselves.
const MAX_DEPTH: usize = 32;

/// Device and inode: what a folder is, by whatever path.
type Identity = (u64, u64);

/// The named folders and files.
pub(super) struct Tree {
    roots: Vec<PathBuf>,
    watches: Watches,
    /// The paths under which a watched folder is reached: links and roots may lead to it more than once.
    folders: HashMap<WatchDescriptor, BTreeSet<PathBuf>>,
}

/// What must be looked at again.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Touched {
    /// Files that were written, renamed or removed.
    pub(super) files: BTreeSet<FileId>,
    /// Folders came, went or were renamed: which files there are is to be found out again.
    pub(super) everything: bool,
}

impl Touched {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.everything
    }
}

/// What tells one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    /// Of what is not read.
    const NONE: Self = Self { device: 0, inode: 0, size: 0, modified: (0, 0), changed: (0, 0) };

    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Tree {
    pub(super) fn new(roots: Vec<PathBuf>, watches: Watches) -> Self {
        Self { roots, watches, folders: HashMap::new() }
    }

    pub(super) fn roots(&self) -> Range<usize> {
        0..self.roots.len()
    }

    pub(super) fn root(&self, root: usize) -> &Path {
        &self.roots[root]
    }

    /// Whether a file was named itself, not a folder around it.
    pub(super) fn is_root(&self, file: &FileId) -> bool {
        self.roots[file.root] == file.path
    }

    /// All manifests below one of the roots. Every folder is watched before it is read: nothing slips in between.
    pub(super) fn walk(&mut self, root: usize) -> Result<BTreeMap<FileId, Version>, Error> {
        let path = self.roots[root].clone();
        let unreadable = |source| Error::Manifests { path: path.clone(), source };
        let metadata = fs::metadata(&path).map_err(unreadable)?;
        if !metadata.is_dir() {
            let parent = path.parent().unwrap_or(Path::new(""));
            self.watch(parent).map_err(|error| watch_error(&path, error))?;
            let file = FileId { root, path };
            return Ok(BTreeMap::from([(file, Version::of(&metadata))]));
        }
        let mut found = BTreeMap::new();
        let mut seen = HashSet::from([(metadata.dev(), metadata.ino())]);
        let mut pending = vec![(path.clone(), 0)];
        while let Some((folder, depth)) = pending.pop() {
            match self.folder(root, &folder, &mut found) {
                Ok(subfolders) => {
                    let new = subfolders.into_iter().filter(|(_, identity)| seen.insert(*identity));
                    if depth < MAX_DEPTH {
                        pending.extend(new.map(|(path, _)| (path, depth + 1)));
                    } else {
                        // Told of like a file that cannot be read.
                        let unread = new.map(|(path, _)| (FileId { root, path }, Version::NONE));
                        found.extend(unread);
                    }
                }
                // It went away between being seen and being read.
                Err(Error::Manifests { source, .. })
                    if depth > 0 && source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Adds the manifests of one folder, and returns its sub-folders.
    fn folder(
        &mut self,
        root: usize,
        folder: &Path,
        found: &mut BTreeMap<FileId, Version>,
    ) -> Result<Vec<(PathBuf, Identity)>, Error> {
        let unreadable = |source| Error::Manifests { path: folder.to_owned(), source };
        self.watch(folder).map_err(|error| watch_error(folder, error))?;
        let mut subfolders = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if is_hidden(&entry.file_name()) {
                continue;
            }
            let path = entry.path();
            let metadata = match (fs::metadata(&path), fs::symlink_metadata(&path)) {
                (Ok(metadata), _) => metadata,
                // A link that leads nowhere is told of, like a file that cannot be read.
                (Err(_), Ok(link)) if link.is_symlink() => link,
                // Gone already.
                (Err(_), _) => continue,
            };
            if metadata.is_dir() {
                subfolders.push((path, (metadata.dev(), metadata.ino())));
            } else if is_manifest(&path) {
                found.insert(FileId { root, path }, Version::of(&metadata));
            }
        }
        Ok(subfolders)
    }

    fn watch(&mut self, folder: &Path) -> io::Result<()> {
        let mask = WatchMask::CLOSE_WRITE
            | WatchMask::CREATE
            | WatchMask::MOVE
            | WatchMask::DELETE
            | WatchMask::ATTRIB
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF;
        // The parent of a bare file name is empty.
        let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let watch = self.watches.add(place, mask | WatchMask::ONLYDIR)?;
        self.folders.entry(watch).or_default().insert(folder.to_owned());
        Ok(())
    }

    /// Adds what an event touches.
    pub(super) fn note(&mut self, event: &EventOwned, touched: &mut Touched) {
        let lost = EventMask::Q_OVERFLOW
            | EventMask::DELETE_SELF
            | EventMask::MOVE_SELF
            | EventMask::IGNORED
            | EventMask::UNMOUNT;
        if event.mask.intersects(lost) {
            touched.everything = true;
            if event.mask.contains(EventMask::IGNORED) {
                self.folders.remove(&event.wd);
            } else if event.mask.contains(EventMask::MOVE_SELF)
                && self.folders.remove(&event.wd).is_some()
            {
                // It still tells of its files, under a path that is no longer theirs. Already gone is as good.
                drop(self.watches.remove(event.wd.clone()));
            }
            return;
        }
        let (Some(folders), Some(name)) = (self.folders.get(&event.wd), &event.name) else {
            return;
        };
        for path in folders.iter().map(|folder| folder.join(name)) {
            for (root, named) in self.roots.iter().enumerate() {
                if *named == path && !event.mask.contains(EventMask::ISDIR) {
                    if !is_being_written(&path, event.mask) {
                        touched.files.insert(FileId { root, path: path.clone() });
                    }
                } else if path.starts_with(named) {
                    note_inside(root, &path, name, event.mask, touched);
                }
            }
        }
    }
}

fn note_inside(root: usize, path: &Path, name: &OsStr, mask: EventMask, touched: &mut Touched) {
    if is_hidden(name) {
        // The way in which Kubernetes swaps the files of a mounted ConfigMap: all of them at once.
        touched.everything |= name == "..data" && mask.contains(EventMask::MOVED_TO);
    } else if mask.contains(EventMask::ISDIR) {
        touched.everything |= !mask.contains(EventMask::ATTRIB);
    } else if is_manifest(path) && !is_being_written(path, mask) {
        touched.files.insert(FileId { root, path: path.to_owned() });
    } else if mask.contains(EventMask::CREATE) || mask.intersects(EventMask::MOVED_TO) {
        // A link to a folder is not marked as a folder.
        touched.everything |= fs::metadata(path).is_ok_and(|target| target.is_dir());
    }
}

/// A file that was just created says more when its writer closes it; a link is complete at once.
fn is_being_written(path: &Path, mask: EventMask) -> bool {
    mask.contains(EventMask::CREATE)
        && fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.nlink() == 1)
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    let is_one = |extension: &str| {
        ["yaml", "yml", "json"].iter().any(|known| known.eq_ignore_ascii_case(extension))
    };
    extension.is_some_and(is_one) || is_kustomization(path)
}

fn watch_error(folder: &Path, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::StorageFull {
        Error::TooManyWatches { path: folder.to_owned() }
    } else {
        Error::Manifests { path: folder.to_owned(), source }
    }
}
