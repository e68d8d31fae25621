//! What `scripts/deny` says and how it ends where the database of known vulnerabilities cannot be reached.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A cargo whose `cargo deny fetch db` fails, and whatever else is asked of it does not.
const CARGO: &str = "#!/bin/sh\ncase \"$*\" in *'fetch db'*) exit 1;; esac\nexit 0\n";

/// Runs the script without a database.
pub(crate) fn without_database(advisories: &str) -> Output {
    let folder = tempfile::TempDir::new().expect("a folder");
    let cargo = folder.path().join("cargo");
    fs::write(&cargo, CARGO).expect("a file");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/deny"))
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("CARGO_TARGET_DIR", folder.path())
        .env("ADVISORIES", advisories)
        .output()
        .expect("the script runs")
}
