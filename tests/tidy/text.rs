//! Rules for names and text.

use crate::tree::Tree;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 10] =
    ["util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "data", "info"];

/// Columns of a line of comment; code is rustfmt's business, and text may be as long as what it is compared with.
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

/// Lines of comment that are too long.
pub(crate) fn comments(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        let text = tree.text(file).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS && line.trim_start().starts_with("//") {
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

/// Folders of tests that ARCHITECTURE.md does not say a word of.
pub(crate) fn folders_of_tests(tree: &Tree) -> Vec<String> {
    let page = tree.text("ARCHITECTURE.md").unwrap_or_default();
    let folders = tree.below("tests").into_iter().map(|folder| format!("tests/{folder}"));
    let untold = folders.filter(|folder| !page.contains(&format!("`{folder}`")));
    untold.map(|folder| format!("{folder}: ARCHITECTURE.md does not say what it is")).collect()
}

/// Links between Markdown pages that lead nowhere.
pub(crate) fn links(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.files().filter(|file| file.ends_with(".md")) {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = tree.text(file).unwrap_or_default();
        for target in text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !target.contains("://") && !tree.has(&resolve(folder, path)) {
                complaints.push(format!("{file}: the link to {target} leads nowhere"));
            }
        }
    }
    complaints
}

/// `path` as seen from `folder`, from the root.
fn resolve(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether an absolute path below `root` begins somewhere in `line`: not in the middle of a longer path or URL.
fn starts_a_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"./-_}~>$".contains(before))
    })
}

#[test]
fn links_are_followed_from_the_folder_of_their_page() {
    assert_eq!(resolve("docs", "../README.md"), "README.md");
    assert_eq!(resolve("docs/operate", "./limits.md"), "docs/operate/limits.md");
}

#[test]
fn a_path_is_told_from_the_middle_of_one() {
    let root = format!("/{}/", "work");
    assert!(starts_a_path(&format!("cd {root}x"), &root));
    assert!(starts_a_path(&format!("\"{root}x\""), &root));
    assert!(!starts_a_path(&format!("https://host.test{root}x"), &root));
    assert!(!starts_a_path(&format!("../shared{root}x"), &root));
}
