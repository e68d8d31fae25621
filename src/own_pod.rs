//! Which Pod this process is, as the downward API says.

/// The variable with metadata.namespace.
pub(crate) const NAMESPACE: &str = "POD_NAMESPACE";
/// The variable with metadata.name.
pub(crate) const NAME: &str = "POD_NAME";

/// Namespace and name; none outside of a Pod, or where it does not say so.
pub(crate) fn find() -> Option<(String, String)> {
    variable(NAMESPACE).zip(variable(NAME))
}

/// What one of them says; an empty one says nothing.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
