//! What deploy/ says is what a cluster takes, what the program knows and what the documentation tells.

mod admin_port;
mod admin_token;
mod chart;
mod cluster;
#[path = "../cluster/dns.rs"]
mod dns;
mod flags;
mod helm;
mod image;
mod keys;
#[path = "../cluster/load/mod.rs"]
mod load;
mod numbers;
mod one_namespace;
mod plain;
mod release;
mod rights;
mod takeover;
mod upgrade;
mod values;

use std::fs;
use std::path::PathBuf;

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of the files in a folder of the repository that end in `.yaml`, in order.
fn yaml_files(folder: &str) -> Vec<String> {
    let entries =
        fs::read_dir(root().join(folder)).unwrap_or_else(|_| panic!("no folder {folder}"));
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".yaml")).collect();
    names.sort();
    names
}
