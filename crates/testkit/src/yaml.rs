//! YAML files as JSON values.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// All documents of a text; plain scalars that only look like numbers or booleans (`0123`, `tRUE`) are strings.
///
/// # Errors
/// When it is not YAML.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let options =
        serde_saphyr::options! { strict_booleans: true, leading_zero_numbers_as_strings: true };
    Ok(serde_saphyr::from_multiple_with_options(text, options)?)
}

/// All documents of a file.
///
/// # Errors
/// When it cannot be read or is not YAML.
pub fn file(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn strings_are_read_byte_for_byte() {
        let text = "- \"\\x01\\u00ff\\r\\n\"\n- 0123456789\n- tRUE\n- 'yes'\n- 1.5\n- true\n- |\n  a\n  b\n";
        let want = json!(["\u{1}\u{ff}\r\n", "0123456789", "tRUE", "yes", 1.5, true, "a\nb\n"]);
        assert_eq!(super::documents(text).unwrap(), [want]);
        assert_eq!(super::documents("a: 1\n---\nb: 2\n").unwrap().len(), 2);
    }
}
