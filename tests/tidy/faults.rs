//! The table of faults: complete, and every test that it names exists.

use crate::tree::Tree;
use std::collections::BTreeSet;

/// Where the table is.
const TABLE: &str = "tests/faults/table.tsv";

/// What is wrong with the table.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let text = tree.text(TABLE).unwrap_or_default();
    let (mut complaints, mut ids) = (Vec::new(), BTreeSet::new());
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[id, _, _, tests, remark] = cells.as_slice() else {
            complaints.push(format!("{TABLE}: not five cells: {line}"));
            continue;
        };
        ids.insert(id);
        if tests.is_empty() && remark.is_empty() {
            complaints.push(format!("{TABLE}: {id} names neither a test nor a reason"));
        }
        for test in tests.split("; ").filter(|test| !test.is_empty()) {
            if !exists(tree, test) {
                complaints.push(format!("{TABLE}: {id}: there is no test {test}"));
            }
        }
    }
    for id in ["CP", "DP"].iter().flat_map(|plane| (1..=50).map(move |n| format!("{plane}{n:02}")))
    {
        if !ids.contains(id.as_str()) {
            complaints.push(format!("{TABLE}: {id} is missing"));
        }
    }
    complaints
}

/// `package/target::path::to::test`, or `make floods: what is sent`.
pub(crate) fn exists(tree: &Tree, test: &str) -> bool {
    if let Some(sent) = test.strip_prefix("make floods: ") {
        let quoted = format!("\"{sent}\"");
        return tree.files().any(|path| {
            path.starts_with("crates/hostile/src/flood/") && holds(tree, path, &quoted)
        });
    }
    let Some((package, rest)) = test.split_once('/') else { return false };
    let Some((target, path)) = rest.split_once("::") else { return false };
    let name = path.rsplit("::").next().unwrap_or(path);
    let base = if package == "fairway" { String::new() } else { format!("crates/{package}/") };
    // The modules of `fairway/suite` stand beside it, not below.
    let module = path.split("::").next().filter(|_| target == "suite" && base.is_empty());
    let places = match target {
        "lib" => [format!("{base}src/"), String::from("-")],
        target => ["/", ".rs"].map(|end| format!("{base}tests/{}{end}", module.unwrap_or(target))),
    };
    let function = format!("fn {name}(");
    tree.files().any(|path| {
        places.iter().any(|place| path.starts_with(place)) && holds(tree, path, &function)
    })
}

fn holds(tree: &Tree, path: &str, text: &str) -> bool {
    tree.text(path).is_some_and(|file| file.contains(text))
}
