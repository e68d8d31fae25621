//! `hsts*` of the ConfigMap: Strict-Transport-Security of every answer on TLS, whatever the upstream sent.

use super::super::location::At;
use super::super::tree::put;
use super::custom_headers;
use model::Global;

/// Its value, unless a header of the ConfigMap says otherwise.
pub(in crate::conf) fn value(global: &Global) -> Option<&str> {
    global.hsts.as_deref().filter(|_| !custom_headers::is_hsts(&global.add_headers))
}

/// Writes it, unless the location has its own, behind snippets: over TLS it goes before what they say, as it did when
/// Lua wrote it. The native engine follows the snippet.
pub(in crate::conf) fn write(at: &mut At<'_, '_>) {
    let own = custom_headers::is_hsts(&at.location.policy.custom_headers.0);
    if value(&at.scope.configuration.global).is_some() && !own {
        put!(at.block, "more_set_headers", "Strict-Transport-Security: $fairway_hsts");
    }
}
