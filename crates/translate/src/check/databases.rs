//! What hangs on databases about clients' addresses: ingress-nginx may have downloaded them, and nobody does here.

use super::config_map::data;
use super::remark::{Remark, named_of_config_map};
use crate::snippets::database_variable;
use crate::{Options, Translation};
use objects::{Ingress, ObjectKey, Snapshot};

/// Keys of the ConfigMap that only make lines of logs.
const OF_LOGS: &str = "log-format-";
/// Keys of it that name a ConfigMap whose values are those of header fields.
const OF_FIELDS: [&str; 3] = ["proxy-set-headers", "add-headers", "auth-proxy-set-headers"];

/// Whether databases are asked for that may not be there.
fn may_lack(translation: &Translation, options: &Options) -> bool {
    translation.configuration.global.geoip2 && !options.has_databases
}

/// What is said of a text with a variable of a database.
fn said(key: String, name: &str, text: &str) -> Option<Remark> {
    let variable = database_variable(name, text)?;
    let message = format!(
        "${variable} has a value only with its database in --geoip-directory, and nothing is downloaded: without it the \
         variable is empty, and what hangs on it is the same for everybody, be it a guard. Put the .mmdb there, and tell \
         `check` by --geoip-directory"
    );
    Some(Remark { key: Some(key), message })
}

/// What the annotations of an Ingress have of such variables.
pub(super) fn of_ingress(
    ingress: &Ingress,
    translation: &Translation,
    options: &Options,
) -> Vec<Remark> {
    if !may_lack(translation, options) {
        return Vec::new();
    }
    let own = ingress.meta.annotations.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(options.annotations_prefix.as_str())?.strip_prefix('/')?;
        said(key.to_string(), name, text)
    });
    own.collect()
}

/// What the ConfigMap has of them, and those whose fields it sends.
pub(super) fn of_all(
    snapshot: &Snapshot,
    translation: &Translation,
    options: &Options,
) -> Vec<Remark> {
    let lacks = may_lack(translation, options);
    let Some((map, data)) = data(snapshot, options).filter(|_| lacks) else { return Vec::new() };
    let own = data.iter().filter(|(name, _)| !name.starts_with(OF_LOGS));
    let own = own.filter_map(|(name, text)| said(named_of_config_map(map, name), name, text));
    let named = OF_FIELDS.iter().filter_map(|name| data.get(*name)?.trim().split_once('/'));
    let named = named.filter_map(|(namespace, name)| {
        snapshot.config_maps.get_key_value(&ObjectKey::new(namespace, name))
    });
    let fields = named.flat_map(|(key, map)| {
        map.data.iter().filter_map(|(name, text)| said(named_of_config_map(key, name), "", text))
    });
    own.chain(fields).collect()
}
