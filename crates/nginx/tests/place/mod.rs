//! A place for nginx on a machine like any other, for tests that write or run an nginx.conf.

use nginx::Place;
use std::path::PathBuf;

/// The usual ports of all addresses, one worker, nothing that the machine would have to have.
pub fn place(directory: impl Into<PathBuf>) -> Place {
    Place {
        directory: directory.into(),
        modules: PathBuf::from("/usr/lib/nginx/modules"),
        addresses: Vec::new(),
        http_port: 80,
        https_port: 443,
        passthrough: false,
        health_path: "/healthz".to_owned(),
        workers: 1,
        open_files: 1 << 16,
        backlog: 511,
        resolvers: Vec::new(),
        geoip: None,
        root: false,
        ipv6: true,
        nobody: String::new(),
    }
}
