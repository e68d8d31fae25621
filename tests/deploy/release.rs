//! What `make release` assembles: images that say what they are, the same bytes each time.

use crate::root;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small program stands for Fairway: what is put around it is looked at here.
const PROGRAM: &str = "/bin/true";

fn run(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output()?;
    ensure!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    Ok(String::from_utf8(stdout)?)
}

/// As little of an unpacked Debian as an image needs, made of this machine's. Its loader is an absolute link, as in
/// Debian.
fn system(folder: &Path) -> Result<()> {
    let libraries = run(Command::new("ldd").arg(PROGRAM))?;
    let place = folder.join("lib/any-linux-gnu");
    fs::create_dir_all(&place)?;
    for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let name = Path::new(library).file_name().context("a name")?;
        fs::copy(library, place.join(name))?;
        let link = folder.join(library.trim_start_matches('/'));
        if name.to_string_lossy().starts_with("ld-") {
            fs::create_dir_all(link.parent().context("a folder")?)?;
            symlink(folder.join("victim"), link)?;
        }
    }
    fs::write(folder.join("victim"), "of this machine")?;
    let certificates = folder.join("usr/share/ca-certificates/mozilla");
    let packages = folder.join("var/lib/dpkg/status.d");
    for path in [&certificates, &packages, &folder.join("usr/lib")] {
        fs::create_dir_all(path)?;
    }
    fs::write(certificates.join("a.crt"), "an authority\n")?;
    fs::write(packages.join("libc6"), "Package: libc6\nVersion: 2.36-9\n")?;
    Ok(fs::write(folder.join("usr/lib/os-release"), "ID=debian\n")?)
}

/// Assembles a variant for two architectures.
fn assemble(folder: &Path, variant: &str, name: &str) -> Result<PathBuf> {
    for architecture in ["amd64", "arm64"] {
        let (program, of) = (folder.join("programs"), folder.join("systems").join(architecture));
        if !of.exists() {
            system(&of)?;
            fs::create_dir_all(program.join(architecture))?;
            fs::copy(PROGRAM, program.join(architecture).join("fairway"))?;
        }
    }
    let archive = folder.join(name);
    let mut command = Command::new(root().join("scripts/release/image"));
    command.args([variant, "9.9.9"]).arg(folder.join("programs")).arg(&archive);
    command.env("SYSTEM", folder.join("systems")).env("NGINX", "");
    command.env("SOURCE_DATE_EPOCH", "1700000000").env("FAIRWAY_COMMIT", "abc");
    run(&mut command)?;
    Ok(archive)
}

/// The blob that a descriptor names, of the size and the digest that it says.
fn blob(layout: &Path, descriptor: &Value) -> Result<PathBuf> {
    let digest = descriptor["digest"].as_str().context("a digest")?;
    let digest = digest.strip_prefix("sha256:").context("of SHA-256")?;
    let path = layout.join("blobs/sha256").join(digest);
    ensure!(descriptor["size"] == fs::metadata(&path)?.len(), "{descriptor}");
    let sum = run(Command::new("sha256sum").arg(&path))?;
    ensure!(sum.starts_with(digest), "{descriptor} is {sum}");
    Ok(path)
}

fn json(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn is_as_it_says(layout: &Path, variant: &str) -> Result<()> {
    let index = json(&layout.join("index.json"))?;
    let named = &index["manifests"][0];
    let name = if variant == "plain" { "fairway:9.9.9" } else { "fairway:9.9.9-nginx" };
    ensure!(named["annotations"]["org.opencontainers.image.ref.name"] == name, "{named}");
    let all = json(&blob(layout, named)?)?;
    for (number, architecture) in ["amd64", "arm64"].into_iter().enumerate() {
        let manifest = &all["manifests"][number];
        ensure!(manifest["platform"]["architecture"] == architecture, "{manifest}");
        let manifest = json(&blob(layout, manifest)?)?;
        let config = json(&blob(layout, &manifest["config"])?)?;
        ensure!(config["config"]["User"] == "101:82", "{config}");
        ensure!(config["architecture"] == architecture && config["os"] == "linux", "{config}");
        ensure!(config["created"] == "2023-11-14T22:13:20Z", "{config}");
        let layer = blob(layout, &manifest["layers"][0])?;
        let script = "gunzip --stdout \"$0\" | sha256sum";
        let sum = run(Command::new("sh").args(["-c", script]).arg(&layer))?;
        let unpacked = config["rootfs"]["diff_ids"][0].as_str().context("a digest")?;
        ensure!(unpacked.ends_with(sum.split(' ').next().context("a sum")?), "{unpacked}");
        let bytes =
            run(Command::new("sh").args(["-c", "gunzip --stdout \"$0\" | strings"]).arg(&layer))?;
        ensure!(bytes.contains("SCHILY.xattr.security.capability"), "port 80 needs it");
        let tar = ["--list", "--verbose", "--numeric-owner", "--gzip", "--file"];
        let files = run(Command::new("tar").args(tar).arg(&layer))?;
        for expected in [
            "./fairway",
            "./nginx-ingress-controller -> fairway",
            "./wait-shutdown -> fairway",
            "./dbg -> fairway",
        ] {
            ensure!(files.lines().any(|line| line.ends_with(expected)), "{expected}:\n{files}");
        }
        for expected in
            ["ca-certificates.crt", "etc/passwd", "etc/os-release", "status.d/libc6", "libc.so.6"]
        {
            ensure!(files.contains(expected), "{expected}:\n{files}");
        }
        let is_roots = |line: &str| line.contains(" 0/0 ") && line.contains("2023-11-14");
        ensure!(files.lines().all(is_roots), "{files}");
    }
    Ok(())
}

#[test]
fn images_are_assembled_without_a_daemon_and_are_the_same_bytes_each_time() -> Result<()> {
    for variant in ["plain", "nginx"] {
        let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let archive = assemble(one.path(), variant, "a.tar")?;
        if variant == "plain" {
            let again = assemble(other.path(), variant, "b.tar")?;
            ensure!(fs::read(&archive)? == fs::read(again)?, "two builds differ");
        }
        let layout = one.path().join("layout");
        fs::create_dir(&layout)?;
        run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&layout))?;
        is_as_it_says(&layout, variant)?;
        let packages = fs::read_to_string(one.path().join("a.tar.packages"))?;
        ensure!(packages == "libc6 2.36-9 amd64\nlibc6 2.36-9 arm64\n", "{packages}");
        for architecture in ["amd64", "arm64"] {
            let victim = one.path().join("systems").join(architecture).join("victim");
            ensure!(fs::read(victim)? == b"of this machine", "written through a link");
        }
    }
    Ok(())
}

#[test]
fn what_is_missing_ends_the_assembling() -> Result<()> {
    let folder = tempfile::tempdir()?;
    assemble(folder.path(), "plain", "a.tar")?;
    fs::remove_dir_all(folder.path().join("systems/arm64/lib"))?;
    fs::create_dir_all(folder.path().join("systems/arm64/lib/any-linux-gnu"))?;
    let refused = assemble(folder.path(), "plain", "b.tar").err().context("half an image")?;
    ensure!(format!("{refused:#}").contains("which is not in"), "{refused:#}");
    ensure!(!folder.path().join("b.tar").exists());
    let refused = assemble(folder.path(), "other", "c.tar").err().context("no such variant")?;
    ensure!(format!("{refused:#}").contains("plain or nginx"), "{refused:#}");
    Ok(())
}
