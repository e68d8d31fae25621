//! Builds the Go programs of `tests/cluster/` once per version of their sources, and says where they are.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The version of the Gateway API whose definitions tests use.
const GATEWAY_API: &str = "v1.6.3";

/// The programs of a test cluster, built and ready to start.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// etcd, kube-apiserver and kube-controller-manager as sub-commands.
    pub(super) control_plane: PathBuf,
    /// The HTTP server that runs in Pods.
    pub(super) pod: PathBuf,
    /// The definitions of the Gateway API, a folder of YAML.
    pub(super) gateway_api: PathBuf,
}

impl Programs {
    /// The programs, built first if these sources were never built: about six minutes on two cores.
    pub(super) fn ready() -> Result<Self> {
        let sources = workspace().join("tests/cluster");
        let folder = cache().join(fingerprint(&sources)?);
        let programs = Self {
            control_plane: folder.join("controlplane"),
            pod: folder.join("pod"),
            gateway_api: cache().join(format!("gateway-api-{GATEWAY_API}")),
        };
        if programs.exist() {
            return Ok(programs);
        }
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let lock = File::create(folder.join("lock")).context("create the build lock")?;
        lock.lock().context("wait for another build of the same sources")?;
        if !(programs.control_plane.exists() && programs.pod.exists()) {
            programs.build(&sources, &folder)?;
        }
        if !programs.gateway_api.exists() {
            programs.fetch(&sources)?;
        }
        Ok(programs)
    }

    fn exist(&self) -> bool {
        self.control_plane.exists() && self.pod.exists() && self.gateway_api.exists()
    }

    /// Puts the definitions of the Gateway API's standard channel in their place, from the Go module that has them.
    fn fetch(&self, sources: &Path) -> Result<()> {
        let module = format!("sigs.k8s.io/gateway-api@{GATEWAY_API}");
        let mut asked = Command::new("go");
        asked.args(["mod", "download", "-json", &module]).current_dir(sources);
        let output = asked.output().context("start `go`")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let told: serde_json::Value = serde_json::from_str(&said).context("read what `go` says")?;
        let folder = told["Dir"].as_str().with_context(|| format!("no {module}: {said}"))?;
        let fresh = cache().join("gateway-api.fresh");
        fs::create_dir_all(&fresh).with_context(|| format!("create {}", fresh.display()))?;
        let from = Path::new(folder).join("config/crd/standard");
        for entry in fs::read_dir(&from).with_context(|| format!("read {}", from.display()))? {
            let path = entry.context("read a folder")?.path();
            let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            let name = path.file_name().expect("entries have names");
            fs::write(fresh.join(name), text).context("copy a definition")?;
        }
        fs::rename(&fresh, &self.gateway_api).context("put the definitions in their place")
    }

    /// Builds beside the final place and renames, so that an interrupted build leaves nothing half done.
    fn build(&self, sources: &Path, folder: &Path) -> Result<()> {
        // Straight to the terminal: the test harness would hide a print until the test ends.
        let told = writeln!(
            std::io::stderr(),
            "building the test control plane into {} (minutes when Go has built nothing yet)",
            folder.display()
        );
        told.context("write to stderr")?;
        let fresh = folder.join("fresh");
        fs::create_dir_all(&fresh).with_context(|| format!("create {}", fresh.display()))?;
        let output = Command::new("go")
            .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly"])
            .args(["-ldflags", "-s -w", "-o"])
            .arg(format!("{}/", fresh.display()))
            .args(["./controlplane", "./pod"])
            .current_dir(sources)
            .output()
            .context("start `go`: the cluster tests need Go 1.26 or later on PATH (go.dev/dl)")?;
        if !output.status.success() {
            bail!(
                "`go build` in {} ended with {}; it needs Go 1.26 or later and a Go module proxy:\n{}",
                sources.display(),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        for place in [&self.control_plane, &self.pod] {
            let name = place.file_name().expect("both paths end in a program's name");
            fs::rename(fresh.join(name), place)
                .with_context(|| format!("put {} in its place", place.display()))?;
        }
        Ok(())
    }
}

/// Root of the workspace.
pub(super) fn workspace() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("this crate lies in crates/ of the workspace").to_path_buf()
}

/// Where builds are kept: `cluster/` in cargo's target folder.
pub(super) fn cache() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace().join(target).join("cluster")
}

/// A name for the present state of the sources.
fn fingerprint(sources: &Path) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for name in ["go.mod", "go.sum", "controlplane/main.go", "pod/main.go"] {
        let path = sources.join(name);
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        (name, text).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}
