//! Circles of files within a crate: files of which each needs all the others.
//!
//! A file needs another one if its code names something that is defined there. What a name means is looked up as the
//! compiler does, through `use` and through re-exports, down to the file with the definition. So a `mod x;` and a
//! `pub use` need nothing by themselves: they pass a name on, and whoever uses it needs its definition.

mod knots;
mod modules;
mod names;
#[cfg(test)]
mod tests;

use crate::tree::Tree;
use modules::Modules;
use std::collections::{BTreeMap, BTreeSet};

/// The largest circle that a crate may have, in files.
const LIMIT: usize = 6;

/// Crates with a larger one: how large it was when it was last measured. A number may only fall, and a line that is no
/// longer needed must go.
const LARGER: &[(&str, usize)] = &[];

/// Which file needs which, with the places that say so: line and name.
pub(crate) type Edges = BTreeMap<(String, String), BTreeSet<(usize, String)>>;

/// Circles that are too large, and lines of the list of exceptions that are too generous.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let mut circles: BTreeMap<String, (Vec<String>, Edges)> = BTreeMap::new();
    for (name, root) in roots(tree) {
        let text = |file: &str| if tree.has(file) { tree.text(file) } else { None };
        let edges = Modules::read(&root, &text).edges();
        let largest = knots::largest(&edges);
        let known = circles.entry(name).or_default();
        if largest.len() > known.0.len() {
            *known = (largest, edges);
        }
    }
    assert!(circles.len() > 10, "crates were not found: {:?}", circles.keys());
    judge(&circles, &LARGER.iter().copied().collect())
}

/// The first file of each program and library that the workspace builds, with the folder of its crate.
fn roots(tree: &Tree) -> Vec<(String, String)> {
    let is_root = |inside: &str| {
        matches!(inside, "src/lib.rs" | "src/main.rs")
            || inside.strip_prefix("src/bin/").is_some_and(|file| !file.contains('/'))
    };
    let of_file = |file: &str| {
        let at = if file.starts_with("src/") { 0 } else { file.find("/src/")? + 1 };
        let name = if at == 0 { "." } else { file[..at].trim_end_matches('/') };
        is_root(&file[at..]).then(|| name.to_owned())
    };
    let in_workspace = tree.rust().filter(|file| !file.starts_with("fuzz/"));
    in_workspace.filter_map(|file| Some((of_file(file)?, file.to_owned()))).collect()
}

fn judge(
    circles: &BTreeMap<String, (Vec<String>, Edges)>,
    larger: &BTreeMap<&str, usize>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, (files, edges)) in circles {
        let now = files.len();
        match larger.get(name.as_str()) {
            Some(&known) if now <= LIMIT => {
                complaints.push(format!("{name}: no circle is too large; take its {known} off"));
            }
            Some(&known) if now < known => {
                complaints.push(format!("{name}: {now} files now; lower its {known} in the list"));
            }
            known if now > known.copied().unwrap_or(LIMIT) => complaints.push(format!(
                "{name}: {now} files need one another, at most {}:\n{}",
                known.unwrap_or(&LIMIT),
                knots::told(files, edges)
            )),
            _ => {}
        }
    }
    let gone = larger.keys().filter(|name| !circles.contains_key(**name));
    complaints.extend(gone.map(|name| format!("{name}: on the list, but there is no such crate")));
    complaints
}
