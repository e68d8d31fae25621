//! ModSecurity: a guard that only nginx has. Whoever asks for it is denied rather than served without it.

use crate::problems::ALL_CLOSED;
use crate::settings::{Settings, parse};
use model::Severity;

/// The switch, as annotation and in the ConfigMap.
const NAME: &str = "enable-modsecurity";
/// Why it denies.
const REASON: &str = "only the nginx engine has ModSecurity";

/// Whether a name is the one that [`check`] speaks about.
pub(crate) fn is_guard(name: &str) -> bool {
    name == NAME
}

/// Denies the paths of an Ingress that asks for ModSecurity.
pub(super) fn check(settings: &mut Settings<'_>) {
    if settings.scope().raw {
        return;
    }
    if settings.raw(NAME).is_some_and(|text| parse::boolean(&text) == Ok(true)) {
        settings.deny(NAME, &format!("{REASON}: remove the annotation, or use that engine"));
    }
}

/// Why the ConfigMap denies every location, and why those that are not exempt from global authentication.
pub(crate) fn deny_by_config_map(settings: &mut Settings<'_>) -> (Option<String>, Option<String>) {
    let text = settings.scope().config_map.and_then(|(_, data)| data.get(NAME));
    let asked = text.is_some_and(|text| parse::boolean(text.trim()) == Ok(true));
    let asked = asked && !settings.scope().raw;
    let denied = asked.then(|| {
        let message = format!("{REASON}: {ALL_CLOSED} until the key is removed");
        settings.note(NAME, Severity::Error, message);
        format!("{NAME} of the ConfigMap: {REASON}")
    });
    (denied, super::auth_external::global_fault(settings))
}
