//! Snippets that count for nothing, whichever engine reads them.

use super::Limits;
use crate::settings::{Settings, parse};
use model::{Message, Severity, Why};

/// What becomes of `stream-snippet`.
pub(super) const NO_STREAM: &str = "has no effect: ports of TCP and UDP services are not an Ingress's to open; use \
    tcp-services, udp-services or stream-snippet of the ConfigMap";

/// Why a snippet counts for nothing, for either engine.
pub(super) fn ignored(
    settings: &Settings<'_>,
    name: &str,
    limits: &Limits,
) -> Option<(Severity, Message)> {
    const FORBIDDEN: &str = "ignored: allow-snippet-annotations of the ConfigMap is not true; remove it, or allow it there";
    match why(settings, name) {
        None if !limits.snippets => Some((Severity::Warning, Why::NotAllowed.says(FORBIDDEN))),
        idle => idle.map(|(severity, why)| (severity, why.into())),
    }
}

/// Why a snippet does nothing to the requests of its Ingress, whatever it says.
pub(super) fn why(settings: &Settings<'_>, name: &str) -> Option<(Severity, &'static str)> {
    let text = settings.raw(name).unwrap_or_default();
    let is_on =
        |name: &str| settings.raw(name).is_some_and(|text| parse::boolean(&text) == Ok(true));
    let is_there = |name: &str| settings.raw(name).is_some_and(|text| !text.is_empty());
    match name {
        _ if text.lines().all(|line| line.is_empty() || line.starts_with('#')) => {
            Some((Severity::Notice, "holds nothing but comments: it has no effect"))
        }
        "auth-snippet" if !is_there("auth-url") => {
            Some((Severity::Notice, "has no effect without auth-url"))
        }
        "modsecurity-snippet" if !is_on("enable-modsecurity") => {
            Some((Severity::Notice, "has no effect without enable-modsecurity"))
        }
        "stream-snippet" => Some((Severity::Warning, NO_STREAM)),
        _ => None,
    }
}
