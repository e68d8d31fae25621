//! Which Pod this process is, as the downward API says.

/// The variable with metadata.namespace.
pub(crate) const NAMESPACE: &str = "POD_NAMESPACE";
/// The variable with metadata.name.
pub(crate) const NAME: &str = "POD_NAME";

/// Namespace and name; none outside of a Pod, or where it does not say so.
pub(crate) fn find() -> Option<(String, String)> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable(NAMESPACE).zip(variable(NAME))
}
