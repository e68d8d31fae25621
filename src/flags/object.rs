//! Objects that flags name.

use objects::ObjectKey;

/// `namespace/name`.
pub(crate) fn object(text: &str) -> Result<Option<ObjectKey>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(Some(ObjectKey::new(namespace, name)))
        }
        _ => Err("expected namespace/name".to_owned()),
    }
}
