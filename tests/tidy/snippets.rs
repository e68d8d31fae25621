//! The table of directives and what obeys them: whatever a directive that is called native is read into, the native
//! engine looks at.

use crate::tree::Tree;
use std::collections::BTreeSet;

/// Where directives are declared.
const TABLE: &str = "crates/snippet/src/table/";
/// Who obeys them. Others look at settings of the ConfigMap, which have the same names.
const OBEYED: [&str; 4] = ["snippet/", "phases/", "variables/", "authenticator/"];

/// What is wrong between the table and the engine.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let is_engine = |file: &str| {
        file.strip_prefix("crates/proxy/src/")
            .is_some_and(|file| OBEYED.iter().any(|folder| file.starts_with(folder)))
    };
    let table = text(tree, |file| file.starts_with(TABLE));
    let engine = text(tree, is_engine);
    let words: BTreeSet<&str> = words(&engine).collect();
    let fields: BTreeSet<&str> = table.lines().filter_map(native).collect();
    assert!(fields.len() > 70, "the table is not written as this test reads it: {fields:?}");
    let unseen = fields.into_iter().filter(|field| {
        let name = field.rsplit('.').next().unwrap_or(field);
        !words.contains(name)
    });
    unseen
        .map(|field| {
            format!("{TABLE}: {field} is called native, and the engine does not look at it")
        })
        .collect()
}

/// All that is no test of the Rust files that are wanted.
fn text(tree: &Tree, wanted: impl Fn(&str) -> bool) -> String {
    let files = tree.rust().filter(|file| wanted(file)).filter_map(|file| tree.text(file));
    files.map(|text| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()).collect()
}

/// The words of code, without comments and texts in quotes.
fn words(code: &str) -> impl Iterator<Item = &str> {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let pieces = lines.flat_map(|line| line.split('"').step_by(2));
    pieces.flat_map(|piece| piece.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

/// The field that a native row is read into, such as `client.max_body_size`.
fn native(row: &str) -> Option<&str> {
    let kinds = [" once(", " whole(", " add(", " some(", " more("];
    let rest = kinds.iter().find_map(|kind| Some(row.split_once(kind)?.1))?;
    rest.split([',', ')']).next()
}
