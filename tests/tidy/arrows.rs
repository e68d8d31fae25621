//! The table "Arrows" of ARCHITECTURE.md against every Cargo.toml.

use crate::dependencies::Packages;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// One row: what a crate may use of this workspace, and which crates it must never see.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    uses: BTreeSet<String>,
    never: BTreeSet<String>,
}

/// What a Cargo.toml says.
struct Manifest {
    dependencies: BTreeSet<String>,
    dev_dependencies: BTreeSet<String>,
    takes_lints: bool,
}

/// Crates that must never become part of the binary.
const TOOLS: [&str; 3] = ["testkit", "hostile", "bench"];

/// Differences between the table and the Cargo.tomls, in both directions.
pub(crate) fn complaints(tree: &Tree, packages: &Packages) -> Vec<String> {
    let rows = rows(&tree.text("ARCHITECTURE.md").expect("ARCHITECTURE.md is text"));
    let crates: BTreeSet<String> = tree.below("crates").into_iter().map(str::to_owned).collect();
    let in_table: BTreeSet<String> = rows.keys().cloned().collect();
    assert!(in_table.len() > 10, "the table of ARCHITECTURE.md was not understood: {in_table:?}");
    let mut complaints: Vec<String> = crates
        .difference(&in_table)
        .map(|name| format!("crates/{name} has no row in the table of ARCHITECTURE.md"))
        .chain(
            in_table
                .difference(&crates)
                .map(|name| format!("ARCHITECTURE.md has a row for {name}: no such crate")),
        )
        .collect();
    for name in crates.intersection(&in_table) {
        let file = format!("crates/{name}/Cargo.toml");
        let manifest = manifest(&tree.text(&file).expect("Cargo.toml is text"), &file);
        complaints.extend(of_crate(name, &rows[name], &manifest, &crates, &packages.seen_by(name)));
    }
    let binary = manifest(&tree.text("Cargo.toml").expect("Cargo.toml is text"), "Cargo.toml");
    let tools = TOOLS.iter().filter(|tool| binary.dependencies.contains(**tool));
    complaints.extend(tools.map(|tool| format!("the binary must not be built with {tool}")));
    complaints
}

fn of_crate(
    name: &str,
    row: &Row,
    manifest: &Manifest,
    crates: &BTreeSet<String>,
    seen: &BTreeSet<&str>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    let used: BTreeSet<String> = manifest.dependencies.intersection(crates).cloned().collect();
    for extra in used.difference(&row.uses) {
        complaints.push(format!("{name} uses {extra}, which ARCHITECTURE.md does not allow"));
    }
    for missing in row.uses.difference(&used) {
        complaints.push(format!("ARCHITECTURE.md lets {name} use {missing}, which it does not"));
    }
    let direct = manifest.dependencies.union(&manifest.dev_dependencies).map(String::as_str);
    let all: BTreeSet<&str> = direct.chain(seen.iter().copied()).collect();
    for seen in all.into_iter().filter(|dependency| row.never.contains(*dependency)) {
        complaints.push(format!("{name} must never see {seen}"));
    }
    if !manifest.takes_lints {
        complaints.push(format!("crates/{name}/Cargo.toml lacks `[lints] workspace = true`"));
    }
    complaints
}

/// The rows whose first cell is the name of a crate in code quotes.
fn rows(text: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [name, _what, uses, never] = cells[..] {
            rows.insert(
                name.trim_matches('`').to_owned(),
                Row { uses: quoted(uses), never: quoted(never) },
            );
        }
    }
    rows
}

/// The words in code quotes.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn manifest(text: &str, file: &str) -> Manifest {
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
    let names = |section: &str| -> BTreeSet<String> {
        let of = |table: &toml::Table| {
            Some(table.get(section)?.as_table()?.keys().cloned().collect::<Vec<_>>())
        };
        let targets = table.get("target").and_then(toml::Value::as_table);
        let for_targets = targets.into_iter().flat_map(|targets| targets.values());
        let for_targets = for_targets.filter_map(toml::Value::as_table).filter_map(of).flatten();
        of(&table).into_iter().flatten().chain(for_targets).collect()
    };
    Manifest {
        dependencies: names("dependencies").union(&names("build-dependencies")).cloned().collect(),
        dev_dependencies: names("dev-dependencies"),
        takes_lints: table.get("lints").and_then(|lints| lints.get("workspace")?.as_bool())
            == Some(true),
    }
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn rows_are_read_from_the_table() {
    let rows = rows(
        "| crate | what |\n|---|---|\n| `a` | text, `code` | `b`, `c` | `tokio` |\n| `b` | x | – | – |\n",
    );
    assert_eq!(rows["a"], Row { uses: set(&["b", "c"]), never: set(&["tokio"]) });
    assert_eq!(rows["b"], Row { uses: set(&[]), never: set(&[]) });
}

#[test]
fn every_kind_of_difference_is_a_complaint() {
    let row = Row { uses: set(&["b"]), never: set(&["h2", "kube", "tokio"]) };
    let text = [
        "[dependencies]",
        "c = '1'",
        "[target.'cfg(unix)'.dependencies]",
        "tokio = '1'",
        "[dev-dependencies]",
        "kube = '1'",
    ];
    let manifest = manifest(&text.join("\n"), "a");
    let complaints = of_crate("a", &row, &manifest, &set(&["a", "b", "c"]), &["h2"].into());
    let expected = [
        "a uses c, which ARCHITECTURE.md does not allow",
        "ARCHITECTURE.md lets a use b, which it does not",
        "a must never see h2",
        "a must never see kube",
        "a must never see tokio",
        "crates/a/Cargo.toml lacks `[lints] workspace = true`",
    ];
    assert_eq!(complaints, expected);
}
