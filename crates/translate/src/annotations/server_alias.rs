//! `server-alias` and `from-to-www-redirect`: names that lead to the hosts of an Ingress besides their own.

use super::{Family, upstream_vhost};
use crate::settings::{Key, OnBad, Risk, Settings, parse};
use model::Alias;
use std::collections::BTreeSet;

pub(super) const FAMILY: Family =
    Family { name: "server_alias", keys: &[&ALIASES, &WWW], apply: |_, _| {} };

static ALIASES: Key<BTreeSet<String>> = Key::annotation("server-alias", names)
    .says(
        "names, comma separated: shop.example, *.shop.example, shop.*, ~pattern",
        "none",
        "Other names of the Ingress's hosts. The first Ingress of a host that has any gives them; a name that is a host itself \
         stays that host's.",
    )
    .risk(Risk::High)
    .on_bad(OnBad::Reject);

static WWW: Key<bool> = Key::annotation("from-to-www-redirect", parse::boolean)
    .exact()
    .says(
        "true or false",
        "false",
        "The host with www. (or without, if it begins with it) is redirected to the host of the Ingress, unless that is a host itself.",
    )
    .on_bad(OnBad::Reject);

/// The names that an Ingress asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// In the order of their text.
    pub(crate) aliases: Vec<Alias>,
    /// The counterpart with or without `www.` is redirected.
    pub(crate) www: bool,
}

pub(super) fn read(settings: &mut Settings<'_>) -> Names {
    let mut aliases: Vec<Alias> = Vec::new();
    for text in settings.get(&ALIASES).unwrap_or_default() {
        match Alias::parse(&text) {
            Ok(more) => aliases.extend(more),
            Err(wrong) => settings.deny(ALIASES.about.name, &format!("{text:?} {wrong}")),
        }
    }
    let mut seen = BTreeSet::new();
    aliases.retain(|alias| seen.insert(alias.to_string()));
    Names { aliases, www: settings.get_or(&WWW, false) }
}

/// A host of any name has no counterpart: nginx takes `www.*.shop.example` for no name.
pub(crate) fn refuse_wildcard(settings: &mut Settings<'_>, names: &Names, host: &str) {
    if names.www {
        let reason = format!("{host} is a wildcard, which has no name with www.: name the hosts");
        settings.deny(WWW.about.name, &reason);
    }
}

fn names(text: &str) -> Result<BTreeSet<String>, String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let item = |item: &str| match upstream_vhost::is_server_name(item) {
        true => Ok(item.to_owned()),
        false => Err(format!(
            "has the item {item:?}, which is no name of a host; write names, comma separated"
        )),
    };
    items.map(item).collect()
}
