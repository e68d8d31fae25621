//! YAML files as JSON values.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// All documents of a text.
///
/// # Errors
/// When it is not YAML.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(text)?)
}

/// All documents of a file.
///
/// # Errors
/// When it cannot be read or is not YAML.
pub fn file(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    documents(&text).with_context(|| format!("{}: is not YAML", path.display()))
}

/// The only document of a file as a type; nothing if there is no such file.
///
/// # Errors
/// When it is not YAML or not of that type.
pub fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let Some(document) = file(path)?.into_iter().next() else { return Ok(None) };
    let value = serde_json::from_value(document);
    Ok(Some(value.with_context(|| format!("{}: not in the exchange format", path.display()))?))
}
