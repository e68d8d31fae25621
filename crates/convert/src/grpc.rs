//! Paths as the methods of a GRPCRoute.

use crate::paths::Path;
use serde_json::{Value, json};

/// The match of a path; none for all calls, an error where the path is no method's.
pub(crate) fn matches(path: &Path) -> Result<Option<Value>, &'static str> {
    const NONE: &str = "its path is neither /, nor /SERVICE, nor /SERVICE/METHOD";
    let (text, is_exact) = match path {
        Path::Prefix(text) => (text, false),
        Path::Exact(text) => (text, true),
        Path::Regex(_) => return Err(NONE),
    };
    let parts: Vec<&str> = text.split('/').skip(1).filter(|part| !part.is_empty()).collect();
    match (parts.as_slice(), is_exact) {
        ([], false) => Ok(None),
        ([service, more @ ..], _)
            if !is_service(service) || !more.iter().all(|one| is_word(one)) =>
        {
            Err("a GRPCRoute has services and methods of letters, digits and _ alone")
        }
        ([service], false) => Ok(Some(json!({"type": "Exact", "service": service}))),
        ([service, method], _) => {
            Ok(Some(json!({"type": "Exact", "service": service, "method": method})))
        }
        _ => Err(NONE),
    }
}

/// Whether the API server takes it for a service: words with dots between them.
fn is_service(text: &str) -> bool {
    text.strip_prefix('.').unwrap_or(text).split('.').all(is_word)
}

fn is_word(text: &str) -> bool {
    let is_one = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(is_one) && text.starts_with(|c: char| !c.is_ascii_digit())
}
