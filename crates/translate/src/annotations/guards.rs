//! ModSecurity: a guard that only nginx has. Whoever asks for it is denied rather than served without it.

use crate::problems::ALL_CLOSED;
use crate::settings::{Settings, parse, quote};
use model::{Severity, Why};

/// The switch, as annotation and in the ConfigMap.
const NAME: &str = "enable-modsecurity";
/// Why it denies.
const REASON: &str = "only the nginx engine has ModSecurity";

/// Whether a name is the one that [`check`] speaks about.
pub(crate) fn is_guard(name: &str) -> bool {
    name == NAME
}

/// Whether an Ingress asks for ModSecurity, or nobody knows.
pub(crate) fn asks_for_modsecurity(settings: &Settings<'_>) -> bool {
    let text = settings.raw(NAME).filter(|text| !text.is_empty());
    text.is_some_and(|text| parse::boolean(&text) != Ok(false))
}

/// Denies the paths of an Ingress that asks for ModSecurity.
pub(super) fn check(settings: &mut Settings<'_>) {
    if settings.scope().raw {
        return;
    }
    let Some(text) = settings.raw(NAME).filter(|text| !text.is_empty()) else { return };
    match parse::boolean(&text) {
        Ok(true) => {
            settings.deny(NAME, format!("{REASON}: remove the annotation, or use that engine"));
        }
        Ok(false) => {}
        Err(wrong) => {
            let message = format!("{} {wrong}; it is ignored", quote(&text));
            settings.note(NAME, Severity::Notice, message);
        }
    }
}

/// Why the ConfigMap denies every location, and why those that are not exempt from global authentication.
pub(crate) fn deny_by_config_map(settings: &mut Settings<'_>) -> (Option<String>, Option<String>) {
    let text = settings.scope().config_map.and_then(|(_, data)| data.get(NAME));
    let text = text.map(|text| text.trim()).filter(|text| !text.is_empty());
    let asked = text.map_or(Ok(false), parse::boolean);
    let raw = settings.scope().raw;
    if let (Some(text), Err(wrong), false) = (text, &asked, raw) {
        let message = format!("{} {wrong}; it is ignored", quote(text));
        settings.note(NAME, Severity::Notice, message);
    }
    let asked = asked == Ok(true) && !raw;
    let denied = asked.then(|| {
        let message = format!(
            "{REASON}: remove the key, or run with --engine=nginx; {ALL_CLOSED} until then"
        );
        settings.note(NAME, Severity::Error, Why::AllClosed.says(message));
        format!("{NAME} of the ConfigMap: {REASON}")
    });
    (denied, super::auth_external::global_fault(settings))
}
