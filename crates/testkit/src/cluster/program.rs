//! Builds Go programs of this repository once per version of their sources, and says where they are.

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
    /// nginx with the identity and the manners of ingress-nginx.
    pub(super) former: PathBuf,
    /// The definitions of the Gateway API, a folder of YAML.
    pub(super) gateway_api: PathBuf,
}

impl Programs {
    /// The programs, built first if these sources were never built: about six minutes on two cores.
    pub(super) fn ready() -> Result<Self> {
        let folder = go_programs("tests/cluster")?;
        let [control_plane, pod, former] =
            ["controlplane", "pod", "former"].map(|name| folder.join(name));
        let gateway_api = cache().join(format!("gateway-api-{GATEWAY_API}"));
        if !gateway_api.exists() {
            fetch(&gateway_api)?;
        }
        Ok(Self { control_plane, pod, former, gateway_api })
    }
}

/// Puts the definitions of the Gateway API's standard channel into a folder, from the Go module that has them.
fn fetch(place: &Path) -> Result<()> {
    let lock = place.with_extension("lock");
    let lock = File::create(&lock).with_context(|| format!("create {}", lock.display()))?;
    lock.lock().context("wait for somebody else who gets the same definitions")?;
    if place.exists() {
        return Ok(());
    }
    let module = format!("sigs.k8s.io/gateway-api@{GATEWAY_API}");
    let mut asked = Command::new("go");
    asked
        .args(["mod", "download", "-json", &module])
        .current_dir(workspace().join("tests/cluster"));
    let output = asked.output().context("start `go`")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let told: serde_json::Value = serde_json::from_str(&said).context("read what `go` says")?;
    let folder = told["Dir"].as_str().with_context(|| format!("no {module}: {said}"))?;
    let fresh = place.with_extension("fresh");
    fs::create_dir_all(&fresh).with_context(|| format!("create {}", fresh.display()))?;
    let from = Path::new(folder).join("config/crd/standard");
    for entry in fs::read_dir(&from).with_context(|| format!("read {}", from.display()))? {
        let path = entry.context("read a folder")?.path();
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let name = path.file_name().expect("entries have names");
        fs::write(fresh.join(name), text).context("copy a definition")?;
    }
    fs::rename(&fresh, place).context("put the definitions in their place")
}

/// The folder with every program of the Go module in a folder of this repository, and those of others that its go.mod
/// names as tools, built first if these sources never were.
pub fn go_programs(module: &str) -> Result<PathBuf> {
    let sources = workspace().join(module);
    let folder = cache().join(fingerprint(&sources)?);
    if folder.exists() {
        return Ok(folder);
    }
    let fresh = folder.with_extension("fresh");
    fs::create_dir_all(&fresh).with_context(|| format!("create {}", fresh.display()))?;
    let lock = File::create(folder.with_extension("lock")).context("create the build lock")?;
    lock.lock().context("wait for another build of the same sources")?;
    if !folder.exists() {
        build(&sources, &fresh)?;
        // Built beside and renamed, so that an interrupted build leaves nothing half done.
        fs::rename(&fresh, &folder)
            .with_context(|| format!("put {} in its place", folder.display()))?;
    }
    Ok(folder)
}

fn build(sources: &Path, fresh: &Path) -> Result<()> {
    // Straight to the terminal: the test harness would hide a print until the test ends.
    let told = writeln!(
        std::io::stderr(),
        "building the programs of {} (minutes when Go has built nothing yet)",
        sources.display()
    );
    told.context("write to stderr")?;
    let output = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly"])
        .args(["-ldflags", "-s -w", "-o"])
        .arg(format!("{}/", fresh.display()))
        .args(packages(sources)?)
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
    Ok(())
}

/// What there is to build in a module; `tool` stands for all that go.mod names with that word.
fn packages(sources: &Path) -> Result<&'static [&'static str]> {
    let path = sources.join("go.mod");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let tools = text.lines().any(|line| line.starts_with("tool "));
    Ok(if tools { &["./...", "tool"] } else { &["./..."] })
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
    let mut paths = Vec::new();
    let mut folders = vec![sources.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if matches!(kind, Some("go" | "mod" | "sum")) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let mut hasher = DefaultHasher::new();
    for path in paths {
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        (path.strip_prefix(sources).unwrap_or(&path), text).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}
