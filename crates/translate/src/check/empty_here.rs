//! Variables of snippets that have a value in nginx and none here: a condition on one of them is never true.

use super::config_map::data;
use super::remark::{Remark, named_of_config_map};
use crate::Options;
use crate::snippets::empty_variable;
use objects::{Ingress, Snapshot};

/// What is said of a snippet with such a variable.
fn said(key: String, name: &str, text: &str) -> Option<Remark> {
    let (variable, why) = empty_variable(name, text)?;
    let message = format!(
        "${variable} is always empty here, since {why}; it has a value in ingress-nginx. What hangs on it is otherwise, be \
         it a guard that is never closed: let it hang on something else"
    );
    Some(Remark { key: Some(key), message })
}

/// Of the snippets of an Ingress.
pub(super) fn of_ingress(ingress: &Ingress, options: &Options) -> Vec<Remark> {
    let own = ingress.meta.annotations.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(options.annotations_prefix.as_str())?.strip_prefix('/')?;
        said(key.to_string(), name, text)
    });
    own.collect()
}

/// Of those of the ConfigMap, which count for every Ingress.
pub(super) fn of_all(snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let Some((map, data)) = data(snapshot, options) else { return Vec::new() };
    let own = data.iter();
    own.filter_map(|(name, text)| said(named_of_config_map(map, name), name, text)).collect()
}
