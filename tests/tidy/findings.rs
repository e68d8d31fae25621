//! The page of what attack reviews found: complete, and every test that it names exists.

use crate::faults::exists;
use crate::tree::Tree;

/// Where the page is.
const PAGE: &str = "docs/security-findings.md";

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
