//! What an API server puts into an empty etcd, made once for each version of the control plane: its roles, namespaces
//! and classes take a sixth of what a start computes. Every plane begins with a copy of it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::plane::Plane;
use super::program::{self, Programs};

/// What decides how a plane begins, besides its program.
const SOURCES: [&str; 3] =
    [include_str!("plane.rs"), include_str!("seed.rs"), include_str!("definitions.rs")];

/// What a plane begins with.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum Seed {
    /// What an API server makes by itself.
    Bare,
    /// The definitions of the Gateway API, too.
    GatewayApi,
}

/// Puts etcd's files into `place`, as a plane of these programs begins with. Whoever is first makes them, in `folder`.
pub(super) async fn sow(
    programs: &Programs,
    folder: &Path,
    place: &Path,
    wanted: Seed,
) -> Result<()> {
    let seed = path(programs, wanted);
    let lock = seed.with_extension("lock");
    let lock = File::create(&lock).with_context(|| format!("create {}", lock.display()))?;
    lock.lock().context("wait for somebody else who makes the same seed")?;
    if !seed.exists() {
        let folder = folder.join("seed");
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Plane::first(programs, &folder, wanted).await.context("make what planes begin with")?;
        // Copied beside and renamed, so that what is interrupted leaves nothing half done.
        let fresh = seed.with_extension("fresh");
        let _absent = fs::remove_dir_all(&fresh);
        copy(&folder.join("etcd"), &fresh)?;
        fs::rename(&fresh, &seed).with_context(|| format!("put {} in place", seed.display()))?;
        fs::remove_dir_all(&folder).context("remove what was copied")?;
    }
    drop(lock);
    copy(&seed, place)
}

fn path(programs: &Programs, seed: Seed) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (&programs.control_plane, &programs.gateway_api, SOURCES, seed).hash(&mut hasher);
    program::cache().join(format!("seed-{:016x}", hasher.finish()))
}

/// Copies a folder. etcd reserves 64 MB for its log, of which nearly all is holes.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut copied = Command::new("cp");
    copied.args(["--recursive", "--preserve=mode", "--sparse=always", "--no-target-directory"]);
    let status = copied.arg(from).arg(to).status().context("start `cp`")?;
    ensure!(status.success(), "`cp` from {} ended with {status}", from.display());
    Ok(())
}
