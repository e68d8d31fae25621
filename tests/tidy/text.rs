//! Rules for names and text.

use crate::tree::Tree;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 10] =
    ["util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "data", "info"];

/// Columns of a line of Rust; rustfmt keeps code within 100, this is for comments and text.
const COLUMNS: usize = 120;

/// Files or folders whose name says nothing.
pub(crate) fn names(tree: &Tree) -> Vec<String> {
    let says_nothing =
        |part: &&str| EMPTY_NAMES.contains(&part.split('.').next().unwrap_or_default());
    tree.files()
        .filter(|file| file.ends_with(".rs") || file.ends_with(".go"))
        .filter_map(|file| Some((file, file.split('/').find(says_nothing)?)))
        .map(|(file, part)| format!("{file}: `{part}` says nothing; name what it is about"))
        .collect()
}

/// Lines of Rust that are too long.
pub(crate) fn lines(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        let text = tree.text(file).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                complaints
                    .push(format!("{file}:{}: {columns} columns, at most {COLUMNS}", index + 1));
            }
        }
    }
    complaints
}

/// Paths of somebody's machine.
pub(crate) fn machine_paths(tree: &Tree) -> Vec<String> {
    // In pieces, or this file would be the first complaint.
    let roots = ["home", "root", "work", "Users", "tmp"].map(|folder| format!("/{folder}/"));
    let mut complaints = Vec::new();
    for file in tree.files() {
        for (index, line) in tree.text(file).unwrap_or_default().lines().enumerate() {
            if let Some(root) = roots.iter().find(|root| starts_a_path(line, root)) {
                complaints.push(format!(
                    "{file}:{}: a path below {root} exists on one machine only",
                    index + 1
                ));
            }
        }
    }
    complaints
}

/// Whether an absolute path below `root` begins somewhere in `line`: not in the middle of a longer path or URL.
fn starts_a_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"./-_}~>$".contains(before))
    })
}

#[test]
fn a_path_is_told_from_the_middle_of_one() {
    let root = format!("/{}/", "work");
    assert!(starts_a_path(&format!("cd {root}x"), &root));
    assert!(starts_a_path(&format!("\"{root}x\""), &root));
    assert!(!starts_a_path(&format!("https://host.test{root}x"), &root));
    assert!(!starts_a_path(&format!("../shared{root}x"), &root));
}
