//! Unix sockets of ours that nginx's workers speak to.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::net::UnixListener;

/// Listens at a path; what stood there before is removed.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // Workers may run as another user; the folder keeps everybody else out.
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666))?;
    Ok(listener)
}
