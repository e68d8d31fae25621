//! Guards that are not built yet: whoever asks for one is denied rather than served without it.

use crate::settings::{Settings, parse};
use model::Severity;

/// When the text of a guard's annotation asks for it.
#[derive(Clone, Copy)]
enum Asks {
    /// Unless it is empty.
    IfSet,
    /// If it is true.
    IfTrue,
}

const GUARDS: &[(&str, Asks)] = &[("enable-modsecurity", Asks::IfTrue)];

/// The same in the ConfigMap, for every location.
const GLOBAL_GUARDS: &[(&str, Asks)] = &[("enable-modsecurity", Asks::IfTrue)];

impl Asks {
    fn is_asked(self, text: &str) -> bool {
        match self {
            Self::IfSet => !text.is_empty(),
            Self::IfTrue => parse::boolean(text) == Ok(true),
        }
    }
}

/// Denies the paths of an Ingress that asks for a guard.
pub(super) fn check(settings: &mut Settings<'_>) {
    for (name, asks) in GUARDS {
        let Some(text) = settings.raw(name) else { continue };
        if !asks.is_asked(&text) {
            continue;
        }
        let message = format!(
            "{name} is not supported yet; the location answers 503 rather than be served without its guard"
        );
        settings.note(name, Severity::Error, message);
        let reason = format!("{name} is not supported yet");
        settings.verdict.denied.get_or_insert(reason);
    }
}

/// Whether a name is one of those that [`check`] speaks about.
pub(super) fn is_guard(name: &str) -> bool {
    GUARDS.iter().any(|(guard, _)| *guard == name)
}

/// What the ConfigMap's guards make of locations: why all are denied, and why those are that are not exempt from
/// global authentication.
pub(crate) fn deny_by_config_map(settings: &mut Settings<'_>) -> (Option<String>, Option<String>) {
    let mut ask = |name: &str, asks: Asks| {
        let text = settings.scope().config_map?.1.get(name)?.trim();
        asks.is_asked(text).then(|| {
            let message =
                format!("{name} is not supported yet; every location answers 503 rather than be served without this guard");
            settings.note(name, Severity::Error, message);
            format!("{name} of the ConfigMap is not supported yet")
        })
    };
    let mut denied: Vec<String> =
        GLOBAL_GUARDS.iter().filter_map(|(name, asks)| ask(name, *asks)).collect();
    let first = if denied.is_empty() { None } else { Some(denied.swap_remove(0)) };
    (first, super::auth_external::global_fault(settings))
}
