//! Helm itself, built from the Go module proxy once per version, and what it makes of the chart.

use crate::{read, root, yaml_files};
use serde_json::Value;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testkit::yaml;

/// The chart.
pub(crate) fn chart() -> PathBuf {
    root().join("deploy/chart/fairway")
}

/// A command of Helm, with folders of its own for whatever it keeps.
pub(crate) fn helm(arguments: &[&str]) -> Command {
    let (program, home) = (program(), folder());
    let mut command = Command::new(program);
    command.args(arguments);
    for kind in ["CACHE", "CONFIG", "DATA"] {
        command.env(format!("HELM_{kind}_HOME"), home.join(kind.to_lowercase()));
    }
    command
}

/// The objects of the chart as release `ingress-nginx` in namespace `ingress-nginx`, or what Helm says against it.
pub(crate) fn render(options: &[&str]) -> Result<Vec<Value>, String> {
    let chart = chart();
    let chart = chart.to_str().expect("a path that is text");
    let fixed = ["template", "ingress-nginx", chart, "--namespace", "ingress-nginx"];
    let mut command = helm(&[&fixed, options].concat());
    let Output { status, stdout, stderr } = command.output().expect("Helm starts");
    if !status.success() {
        return Err(String::from_utf8_lossy(&stderr).into_owned());
    }
    let text = String::from_utf8(stdout).expect("Helm writes text");
    let objects = yaml::documents(&text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}

/// The files of values that are tried out, as paths in the repository: odd ones, and those that users get.
pub(crate) fn values_files() -> Vec<String> {
    let of = |folder: &str| {
        let files = yaml_files(folder);
        files.into_iter().map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    [of("tests/deploy/values"), of("deploy/values")].concat()
}

/// As `render`, with one of them.
pub(crate) fn render_file(path: &str) -> Vec<Value> {
    let file = root().join(path);
    let objects = render(&["--values", file.to_str().expect("a path that is text")]);
    objects.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The object of a kind that has such a name.
pub(crate) fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found =
        objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let mut hasher = DefaultHasher::new();
    [read("tests/deploy/helm/go.mod"), read("tests/deploy/helm/go.sum")].hash(&mut hasher);
    root().join(target).join("helm").join(format!("{:016x}", hasher.finish()))
}

/// Builds Helm if this version was never built: three minutes on two cores.
fn program() -> PathBuf {
    let folder = folder();
    let program = folder.join("helm");
    if program.exists() {
        return program;
    }
    fs::create_dir_all(&folder).expect("a folder for Helm");
    let lock = File::create(folder.join("lock")).expect("a file to wait at");
    lock.lock().expect("a lock");
    if !program.exists() {
        build(&folder.join("fresh"));
        fs::rename(folder.join("fresh"), &program).expect("Helm can be put in its place");
    }
    program
}

fn build(program: &Path) {
    let output = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w", "-o"])
        .arg(program)
        .arg("helm.sh/helm/v3/cmd/helm")
        .current_dir(root().join("tests/deploy/helm"))
        .output()
        .expect("`go` starts: these tests need Go 1.26 or later on PATH (go.dev/dl)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Helm cannot be built, which needs a Go module proxy: {said}");
}
