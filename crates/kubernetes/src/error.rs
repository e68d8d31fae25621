//! What can keep a feed from starting, each in one line that says how to mend it.

use std::io;
use std::path::PathBuf;

/// What can keep a feed from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file of manifests cannot be read.
    #[error("cannot read the manifests in {}: {source}; create it, make it readable, or name another", path.display())]
    Manifests {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The kernel watches no more folders for us.
    #[error("cannot watch {}: too many folders are watched already; raise the sysctl fs.inotify.max_user_watches", path.display())]
    TooManyWatches {
        /// The folder.
        path: PathBuf,
    },
    /// The kernel gives us no inotify instance.
    #[error("cannot follow changes of files: {0}; raise the sysctl fs.inotify.max_user_instances")]
    Inotify(#[source] io::Error),
    /// No folder was named.
    #[error("no folder of manifests was named; name at least one")]
    NoManifests,
}
