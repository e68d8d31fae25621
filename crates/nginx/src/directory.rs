//! The private folder: nobody else's, one process at a time, with the Lua and the files that nginx.conf names.

use crate::conf::{Environment, Written, fingerprint};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the path of a socket (sockaddr_un).
const LONGEST: usize = 100;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Something in it cannot be made or written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It belongs to somebody else.
    #[error(
        "{path} belongs to another user: remove it, or name another folder with --nginx-directory"
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// Another process uses it.
    #[error("another fairway uses {path}: end it, or name another folder with --nginx-directory")]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// Sockets cannot have such a path.
    #[error(
        "{path} is too long for a socket: name a folder with a shorter path with --nginx-directory"
    )]
    Long {
        /// The folder.
        path: PathBuf,
    },
}

/// The folder, ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    environment: Environment,
    _lock: File,
}

impl Directory {
    /// Takes the folder of an environment.
    pub(crate) fn take(environment: &Environment) -> Result<Self, DirectoryError> {
        let path = &environment.directory;
        if environment.control().as_os_str().len() > LONGEST {
            return Err(DirectoryError::Long { path: path.clone() });
        }
        make(path)?;
        let found = fs::symlink_metadata(path).map_err(failed(path))?;
        if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
            return Err(DirectoryError::Foreign { path: path.clone() });
        }
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed(path))?;
        let lock = path.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(failed(&lock))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| DirectoryError::Taken { path: path.clone() })?;
        for folder in [environment.files(), environment.lua(), environment.temporary("auth")] {
            make(&folder)?;
        }
        let directory = Self { environment: environment.clone(), _lock: file };
        // The folder may outlive a machine that lost its power, with files that are there and not whole.
        directory.sweep(|name| is_whole(&environment.files().join(name)));
        Ok(directory)
    }

    /// Makes the folder that nginx writes to, without what one before it left there: bodies, and what authenticators
    /// said. No nginx may run.
    pub(crate) fn clear_temporary(&self) -> Result<(), DirectoryError> {
        let path = self.environment.temporary("");
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path)(error)),
            _ => make(&self.environment.temporary("auth")),
        }
    }

    /// Adds files; those that are there already are what they are called.
    pub(crate) fn add(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<(), DirectoryError> {
        for (name, content) in files {
            let path = self.environment.files().join(name);
            if !path.exists() {
                replace(&path, content)?;
            }
        }
        Ok(())
    }

    /// Removes the files that nobody reads any more.
    pub(crate) fn sweep(&self, is_read: impl Fn(&str) -> bool) {
        let entries = fs::read_dir(self.environment.files()).into_iter().flatten().flatten();
        for entry in entries {
            if !entry.file_name().to_str().is_some_and(&is_read) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Removes what authenticators of namespaces said that none asks any more.
    pub(crate) fn sweep_remembered(&self, is_kept: impl Fn(&str) -> bool) {
        let folder = self.environment.temporary("auth");
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_name().to_str().is_some_and(&is_kept) {
                drop(fs::remove_dir_all(entry.path()));
            }
        }
    }

    /// Writes a configuration beside the one that runs, for a test.
    pub(crate) fn try_out(&self, written: &Written) -> Result<PathBuf, DirectoryError> {
        self.add(&written.files)?;
        let path = self.environment.directory.join("next.conf");
        replace(&path, written.text.text.as_bytes())?;
        Ok(path)
    }

    /// Makes a configuration the one that nginx reads.
    pub(crate) fn install(&self, written: &Written) -> Result<(), DirectoryError> {
        self.add(&written.files)?;
        replace(&self.environment.conf(), written.text.text.as_bytes())
    }
}

/// Whether what is in a file is what its name says.
fn is_whole(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    fs::read(path).is_ok_and(|content| Some(&*fingerprint(&content)) == name)
}

/// Writes a file as a whole, or not at all.
fn replace(path: &Path, content: &[u8]) -> Result<(), DirectoryError> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
        file.write_all(content)?;
        fs::rename(&beside, path)
    };
    write().map_err(failed(path))
}

fn make(path: &Path) -> Result<(), DirectoryError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError + use<'_> {
    move |source| DirectoryError::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::{Directory, Environment, fingerprint};
    use std::fs;

    #[test]
    fn a_file_that_is_not_what_its_name_says_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("nginx");
        let environment = Environment { directory, ..Environment::default() };
        let (good, rules) = (b"a good file".to_vec(), b"SecRuleEngine On".to_vec());
        let names = [&good, &rules].map(|content| format!("{}.modsecurity", fingerprint(content)));
        let files = names.clone().into_iter().zip([good, rules.clone()]).collect();
        let directory = Directory::take(&environment).expect("it is ours");
        directory.add(&files).expect("they are written");
        drop(directory);
        // As a machine does that loses its power.
        let paths = names.map(|name| environment.files().join(name));
        fs::write(&paths[1], "").expect("it is cut off");
        let directory = Directory::take(&environment).expect("it is ours");
        assert!(paths[0].exists() && !paths[1].exists());
        directory.add(&files).expect("they are written");
        assert_eq!(fs::read(&paths[1]).expect("it is there"), rules);
    }
}
