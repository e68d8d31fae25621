//! What hangs on databases about clients' addresses: ingress-nginx may have downloaded them, and nobody does here. And
//! where they are not switched on, nginx knows no such variable, while here it is empty.

use super::config_map::data;
use super::remark::{Remark, named_of_config_map};
use crate::snippets::database_variable;
use crate::{Options, Translation};
use objects::{Ingress, ObjectKey, Snapshot};

/// Keys of the ConfigMap that only make lines of logs.
const OF_LOGS: &str = "log-format-";
/// Keys of it that name a ConfigMap whose values are those of header fields.
const OF_FIELDS: [&str; 3] = ["proxy-set-headers", "add-headers", "auth-proxy-set-headers"];

/// Why variables of databases may be empty.
#[derive(Clone, Copy)]
enum Empty {
    /// Nothing switches them on.
    Off,
    /// Databases are asked for that may not be there.
    Lacking,
}

impl Empty {
    fn of(translation: &Translation, options: &Options) -> Option<Self> {
        if !translation.configuration.global.geoip2 {
            return Some(Self::Off);
        }
        (!options.has_databases).then_some(Self::Lacking)
    }

    /// What is said of a text with a variable of a database.
    fn said(self, key: String, name: &str, text: &str) -> Option<Remark> {
        let variable = database_variable(name, text)?;
        let message = match self {
            Self::Off => format!(
                "${variable} is a variable that only use-geoip2 of the ConfigMap brings, which is not true: ingress-nginx's \
                 nginx knows no such variable and takes no configuration with it. Here it is empty, and what hangs on it \
                 is the same for everybody, be it a guard. Set use-geoip2, or remove it"
            ),
            Self::Lacking => format!(
                "${variable} has a value only with its database in --geoip-directory, and nothing is downloaded: without it \
                 the variable is empty, and what hangs on it is the same for everybody, be it a guard. Put the .mmdb \
                 there, and tell `check` by --geoip-directory"
            ),
        };
        Some(Remark { key: Some(key), message })
    }
}

/// What the annotations of an Ingress have of such variables.
pub(super) fn of_ingress(
    ingress: &Ingress,
    translation: &Translation,
    options: &Options,
) -> Vec<Remark> {
    let Some(empty) = Empty::of(translation, options) else { return Vec::new() };
    let own = ingress.meta.annotations.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(options.annotations_prefix.as_str())?.strip_prefix('/')?;
        empty.said(key.to_string(), name, text)
    });
    own.collect()
}

/// What the ConfigMap has of them, and those whose fields it sends.
pub(super) fn of_all(
    snapshot: &Snapshot,
    translation: &Translation,
    options: &Options,
) -> Vec<Remark> {
    let Some(empty) = Empty::of(translation, options) else { return Vec::new() };
    let Some((map, data)) = data(snapshot, options) else { return Vec::new() };
    let own = data.iter().filter(|(name, _)| !name.starts_with(OF_LOGS));
    let own = own.filter_map(|(name, text)| empty.said(named_of_config_map(map, name), name, text));
    let named = OF_FIELDS.iter().filter_map(|name| data.get(*name)?.trim().split_once('/'));
    let named = named.filter_map(|(namespace, name)| {
        snapshot.config_maps.get_key_value(&ObjectKey::new(namespace, name))
    });
    let fields = named.flat_map(|(key, map)| {
        map.data
            .iter()
            .filter_map(|(name, text)| empty.said(named_of_config_map(key, name), "", text))
    });
    own.chain(fields).collect()
}
