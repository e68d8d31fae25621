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
        ([service], false) => Ok(Some(json!({"type": "Exact", "service": service}))),
        ([service, method], _) => {
            Ok(Some(json!({"type": "Exact", "service": service, "method": method})))
        }
        _ => Err(NONE),
    }
}
