//! The page of the directives is current, and the table is sound. `UPDATE=1` writes the page anew.

use snippet::{TABLE, markdown};
use std::collections::HashMap;
use std::path::Path;

#[test]
fn the_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/snippets.md");
    let page = markdown();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/snippets.md is stale: UPDATE=1 cargo test -p snippet documentation"
    );
}

#[test]
fn a_directive_is_declared_once_for_each_level_and_says_what_it_does() {
    let mut seen: HashMap<&str, u8> = HashMap::new();
    for row in TABLE.iter().flat_map(|rows| rows.iter()) {
        assert!(row.doc.ends_with('.') && row.doc.len() > 3, "{}: {}", row.name, row.doc);
        assert!(row.arguments.0 <= row.arguments.1, "{}", row.name);
        let levels = seen.entry(row.name).or_default();
        assert_eq!(*levels & row.levels.bits(), 0, "{} is declared twice for one level", row.name);
        *levels |= row.levels.bits();
    }
    assert!(seen.len() > 300, "{} directives", seen.len());
}
