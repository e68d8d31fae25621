//! Why the engine cannot start: each names what is in the way.

use crate::directory::DirectoryError;
use std::io;
use std::path::PathBuf;

/// Why the engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The private folder cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The self-signed certificate could not be made.
    #[error("cannot make the default certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// There are no random bytes to be had.
    #[error("the system has no random bytes")]
    Random,
    /// The Lua could not be written.
    #[error("cannot write the Lua modules: {0}")]
    Scripts(io::Error),
    /// A socket that nginx's workers speak to could not be made.
    #[error("cannot listen on {}: {source}", socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The port in front is not to be had.
    #[error("cannot listen on --https-port {0}: {1}")]
    Bind(u16, io::Error),
}
