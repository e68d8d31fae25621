//! The pages of what reviews and operators found: every test that they name exists; that of attacks is complete.

use crate::faults::exists;
use crate::tree::Tree;

/// Where the page is.
const PAGE: &str = "docs/security-findings.md";
/// The page of what kept people from moving.
const MOVE: &str = "docs/takeover.md";

/// What is wrong with the page.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let text = tree.text(PAGE).unwrap_or_default();
    let (mut complaints, mut ids) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[id, _, tests] = cells.as_slice() else {
            complaints.push(format!("{PAGE}: not three cells: {line}"));
            continue;
        };
        ids.push(id);
        let tests: Vec<&str> = tests.split('`').filter(|test| test.contains("::")).collect();
        if tests.is_empty() {
            complaints.push(format!("{PAGE}: {id} names no test"));
        }
        let missing = tests.iter().filter(|test| !exists(tree, test));
        complaints.extend(missing.map(|test| format!("{PAGE}: {id}: there is no test {test}")));
    }
    let numbers = (1..=19).map(|number| number.to_string());
    for id in numbers.chain((1..=9).map(|number| format!("D{number}"))) {
        if !ids.contains(&id.as_str()) {
            complaints.push(format!("{PAGE}: {id} is missing"));
        }
    }
    complaints
}

/// What is wrong with the page of what kept people from moving.
pub(crate) fn unshown(tree: &Tree) -> Vec<String> {
    let text = tree.text(MOVE).unwrap_or_default();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| what was wrong");
    let mut complaints = Vec::new();
    for line in text.lines().filter(is_row) {
        let shown = line.trim_matches('|').split('|').nth(2).unwrap_or_default();
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            complaints.push(format!("{MOVE}: nothing shows: {line}"));
        }
        let is_there = |name: &str| {
            let cases = format!("{name}/");
            cases.starts_with("tests/exchanges/")
                && tree.files().any(|path| path.starts_with(&cases))
                || exists(tree, name)
        };
        let missing = names.iter().filter(|name| !is_there(name));
        complaints.extend(missing.map(|name| format!("{MOVE}: there is no {name}")));
    }
    if text.is_empty() { vec![format!("{MOVE} is missing")] } else { complaints }
}
