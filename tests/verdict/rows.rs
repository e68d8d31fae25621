//! The causes of verdicts are rows of the page that users read.

use std::path::Path;

#[test]
fn every_cause_is_a_row_of_the_page_about_the_move() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/migration.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows = verdict::ROWS.iter().map(|(_, row)| row).chain(verdict::OTHERS);
    for row in rows {
        assert!(page.contains(&format!("\n| {row}")), "docs/migration.md has no row {row:?}");
    }
}
