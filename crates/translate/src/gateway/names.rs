//! Host names that mean others.

/// Whether a host name, which may be a wildcard, means every name that another one does.
pub fn covers(wide: &str, narrow: &str) -> bool {
    match wide.strip_prefix('*') {
        Some(suffix) => {
            narrow == wide
                || narrow.trim_start_matches('*').ends_with(suffix) && narrow.len() > suffix.len()
        }
        None => wide == narrow,
    }
}
