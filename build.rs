//! The commit that the program is built from: what FAIRWAY_COMMIT says, or where git's HEAD is in a clone. Git itself
//! is not asked: it need not be there, and would find the repository that a tarball was unpacked in. A debug build has
//! none: each commit would have everything linked anew.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=FAIRWAY_COMMIT");
    let told = env::var("FAIRWAY_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_debug = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let commit = told.or_else(|| {
        if is_debug {
            return None;
        }
        let head = Head::of(Path::new(&env::var_os("CARGO_MANIFEST_DIR")?))?;
        for file in &head.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        head.commit
    });
    if let Some(commit) = commit {
        println!("cargo::rustc-env=FAIRWAY_COMMIT={commit}");
    }
}

/// Where HEAD is.
pub(crate) struct Head {
    /// Its commit, if that can be told.
    pub(crate) commit: Option<String>,
    /// The files of which one changes whenever the commit does.
    pub(crate) files: Vec<PathBuf>,
}

impl Head {
    /// That of the clone, or the work tree beside one, whose root a folder is.
    pub(crate) fn of(root: &Path) -> Option<Self> {
        let git = root.join(".git");
        // A work tree beside the clone names its folder, which names that of the clone.
        let own = match fs::read_to_string(&git) {
            Ok(text) => root.join(text.trim().strip_prefix("gitdir: ")?),
            Err(_) => git,
        };
        let shared = fs::read_to_string(own.join("commondir"));
        let shared = shared.map_or_else(|_| own.clone(), |text| own.join(text.trim()));
        let head = own.join("HEAD");
        let text = fs::read_to_string(&head).ok()?;
        let Some(branch) = text.trim().strip_prefix("ref: ") else {
            return Some(Self { commit: name(&text), files: vec![head] });
        };
        let loose = shared.join(branch);
        if let Ok(text) = fs::read_to_string(&loose) {
            return Some(Self { commit: name(&text), files: vec![head, loose] });
        }
        let packed = shared.join("packed-refs");
        let lines = fs::read_to_string(&packed).unwrap_or_default();
        let commit = lines.lines().find_map(|line| name(line.strip_suffix(branch)?));
        // The next commit writes the branch into a file of its own, and into the log of HEAD.
        Some(Self { commit, files: vec![head, packed, own.join("logs/HEAD")] })
    }
}

/// The name of a commit, if a text is one.
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let is_name =
        matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| text.to_owned())
}
