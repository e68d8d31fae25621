//! Files of a folder that look like manifests and are not read as such.

use objects::Kind;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How deep folders are looked into.
const DEEPEST: usize = 32;
/// So much of a file is looked at to see whether it holds objects.
const BEGINNING: u64 = 64 << 10;
/// Endings of texts that people write about manifests.
const TEXTS: [&str; 5] = ["md", "markdown", "adoc", "rst", "html"];
const OTHER_END: &str = "is passed over, as its name ends neither in .yaml, .yml nor .json: rename it, unpack it, or take it away";
const HIDDEN: &str =
    "holds objects and is passed over, as its name begins with a dot: rename it, or take it away";

/// All of them, each with what is said of it.
pub(crate) fn files(folder: &Path, depth: usize) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && depth < DEEPEST && !name.starts_with('.') {
            found.extend(files(&entry.path(), depth + 1));
        } else if kind.is_file() {
            found.extend(said(&name, &entry.path()).map(|said| (entry.path(), said)));
        }
    }
    found
}

/// What is said of a file that is not read.
fn said(name: &str, path: &Path) -> Option<&'static str> {
    let is_end = |end: &str| ["yaml", "yml", "json"].contains(&end.to_ascii_lowercase().as_str());
    let last = name.rsplit('.').next().unwrap_or_default();
    if let Some(name) = name.strip_prefix('.') {
        // Tools keep their settings in such files: only objects are worth a word.
        let looks_like_one = name.contains('.') && is_end(last);
        return (looks_like_one && holds_objects(path)).then_some(HIDDEN);
    }
    if is_end(last) {
        return None;
    }
    let is_backup = last.strip_suffix('~').is_some_and(is_end);
    let has_other_end = name.rsplit('.').skip(1).any(is_end);
    let looks_like_one = is_backup
        || has_other_end
        || if name.contains('.') { is_manifest(last, path) } else { holds_objects(path) };
    looks_like_one.then_some(OTHER_END)
}

/// Whether a file with an ending of its own is a manifest all the same. Texts and scripts may quote objects.
fn is_manifest(end: &str, path: &Path) -> bool {
    if TEXTS.contains(&end.to_ascii_lowercase().as_str()) {
        return false;
    }
    let text = beginning(path);
    let is_remark = |line: &&str| {
        let line = line.trim();
        line.is_empty()
            || line == "---"
            || ["#", "{{", "{%"].iter().any(|sign| line.starts_with(sign))
    };
    let first = text.lines().find(|line| !is_remark(line)).unwrap_or_default();
    let begins = ["apiVersion:", "kind:", "metadata:"].iter().any(|field| first.starts_with(field));
    let kinds = text.lines().filter_map(|line| line.strip_prefix("kind:"));
    let is_ours = |kind: &str| {
        let kind = kind.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        Kind::named(kind.strip_suffix("List").unwrap_or(kind)).is_some() || kind == "List"
    };
    begins && is_versioned(&text) && kinds.into_iter().any(is_ours)
}

fn is_versioned(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("apiVersion:"))
}

/// Whether a file begins with objects of Kubernetes, as YAML.
fn holds_objects(path: &Path) -> bool {
    let text = beginning(path);
    is_versioned(&text) && text.lines().any(|line| line.starts_with("kind:"))
}

/// The begin of a file; nothing where it cannot be read.
fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    let file = fs::File::open(path);
    match file.and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes)) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{HIDDEN, OTHER_END, files};
    use std::fs;

    #[test]
    fn files_that_look_like_manifests_and_are_not_read_are_named() {
        const OBJECT: &str = "# one\napiVersion: v1\nkind: Service\n";
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("below")).expect("a folder");
        for (name, text) in [
            ("a.yaml", ""),
            ("b.yml", ""),
            ("c.json", ""),
            ("README.md", OBJECT),
            (".x.yaml.swp", OBJECT),
            (".gitlab-ci.yml", "stages: [test]\n"),
            ("LICENSE", "a text\n"),
            ("x.YAML", ""),
            ("x.YAML.old", ""),
            ("backup.yaml~", ""),
            (".hidden.yaml", OBJECT),
            ("ingress", OBJECT),
            ("below/x.yaml.gz", ""),
            ("web.ymal", OBJECT),
            ("all.txt", "# all\n---\napiVersion: v1\nitems: []\nkind: \"IngressList\" # of shop\n"),
            ("web.tpl", "{{- if .on }}\napiVersion: networking.k8s.io/v1\nkind: Ingress\n"),
            ("admin.conf", "apiVersion: v1\nkind: Config\n"),
            ("apply.sh", "#!/bin/sh\nkubectl apply -f - <<E\napiVersion: v1\nkind: Service\nE\n"),
            ("pod.txt", "apiVersion: v1\nkind: Pod\n"),
            ("NOTES.txt", "Write this:\napiVersion: v1\nkind: Service\n"),
            ("about.rst", OBJECT),
            ("Chart.lock", "dependencies: []\n"),
        ] {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let mut found = files(folder.path(), 0);
        found.sort();
        let mut wanted = [
            (".hidden.yaml", HIDDEN),
            ("backup.yaml~", OTHER_END),
            ("below/x.yaml.gz", OTHER_END),
            ("ingress", OTHER_END),
            ("x.YAML.old", OTHER_END),
            ("web.ymal", OTHER_END),
            ("all.txt", OTHER_END),
            ("web.tpl", OTHER_END),
        ]
        .map(|(name, said)| (folder.path().join(name), said));
        wanted.sort();
        assert_eq!(found, wanted);
    }
}
