//! Variables that nginx has a value for in snippets, and that are empty here.

use super::databases::variables;
use super::names::context;
use super::parse;
use model::snippet::{Knowledge, OtherRow};

/// Of those that are empty here, the ones that are empty in ingress-nginx as well, unless it is told to take early data
/// or has a listener of HTTP/3, and those that are its own affair.
const NEITHER_THERE: [&str; 5] =
    ["ssl_early_data", "http3", "quic", "proxy_internal_body_length", "proxy_internal_chunked"];

/// The first such variable of a snippet that an object has under this name, and why it is empty.
pub(crate) fn variable_in(name: &str, text: &str) -> Option<(String, &'static str)> {
    let snippet = parse(context(name)?, text).ok()?;
    snippet.words().flat_map(variables).find_map(|variable| {
        let variable = variable.to_ascii_lowercase();
        let row = OtherRow::of(&variable)?;
        let is_empty = row.fate == Knowledge::Empty && !NEITHER_THERE.contains(&row.name);
        is_empty.then_some((variable, row.doc))
    })
}
