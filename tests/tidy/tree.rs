//! The files of the repository: those that git knows or would add, or all of them where there is no git.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository.
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

impl Tree {
    /// Lists the files of this repository.
    pub(crate) fn open() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut files = of_git(&root).unwrap_or_else(|| of_folders(&root));
        files.retain(|file| root.join(file).is_file());
        files.sort();
        assert!(
            files.iter().any(|file| file == "Cargo.toml"),
            "no files found under {}",
            root.display()
        );
        Self { root, files }
    }

    /// All files, as paths from the root with `/`.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// All Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|file| file.ends_with(".rs"))
    }

    /// The text of a file; none if it is not UTF-8.
    pub(crate) fn text(&self, file: &str) -> Option<String> {
        let bytes =
            std::fs::read(self.root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        String::from_utf8(bytes).ok()
    }

    /// The names right below `folder` that hold files.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> Vec<&'a str> {
        let mut names: Vec<&str> = self
            .files()
            .filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/'))
            .filter_map(|rest| Some(rest.split_once('/')?.0))
            .collect();
        names.dedup();
        names
    }

    /// Whether there is such a file.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.files.binary_search_by(|known| known.as_str().cmp(file)).is_ok()
    }
}

fn of_git(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).expect("names of committed files are UTF-8");
    Some(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn of_folders(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a folder that opened can be read").path();
            let relative = path.strip_prefix(root).expect("found below the root");
            let name = relative.to_str().expect("names of files are UTF-8").to_owned();
            if path.is_dir() && !name.ends_with("target") && name != ".git" {
                folders.push(path);
            } else if path.is_file() {
                files.push(name);
            }
        }
    }
    files
}
