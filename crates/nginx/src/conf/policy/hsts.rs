//! `hsts*` of the ConfigMap: Strict-Transport-Security of every answer on TLS, whatever the upstream sent.

use super::super::location::At;
use super::super::tree::put;
use super::custom_headers;
use model::Global;

/// Its value, unless a header of the ConfigMap says otherwise.
pub(in crate::conf) fn value(global: &Global) -> Option<&str> {
    global.hsts.as_deref().filter(|_| !custom_headers::is_hsts(&global.add_headers))
}

/// Writes it at the beginning of a location: what its custom headers and snippets say goes before it, as in
/// ingress-nginx, where headers-more has its turn behind Lua.
pub(in crate::conf) fn write(at: &mut At<'_, '_>) {
    if value(&at.scope.configuration.global).is_some() {
        put!(at.block, "more_set_headers", "Strict-Transport-Security: $fairway_hsts");
    }
}
