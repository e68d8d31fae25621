//! Paths that nobody has to authenticate for.

use super::Area;
use crate::settings::{Items, Key, Settings, parse};

pub(super) const AREA: Area = Area { name: "authentication", keys: &[&NOBODY], apply: |_, _| {} };

static NOBODY: Key<Vec<String>> = Key::config_map("no-auth-locations", parse::list).items(Items::Paths).says(
    "path prefixes, comma separated",
    "/.well-known/acme-challenge",
    "Paths of Ingresses that ask for neither password nor authenticator; Prefix /p is /p and /p/. An empty value means none.",
);

/// Prefixes of the paths that are open; an empty value means none.
pub(super) fn open_paths(settings: &mut Settings<'_>) -> Vec<String> {
    settings.list(&NOBODY).unwrap_or_else(|| vec!["/.well-known/acme-challenge".to_owned()])
}
