//! `enable-access-log`, `enable-rewrite-log`.

use super::super::location::At;
use super::super::tree::put;
use model::policy::Logging;

pub(in crate::conf) fn write(policy: Logging, at: &mut At<'_, '_>) {
    let Logging { access, rewrite } = policy;
    let global = &at.scope.configuration.global;
    // What nobody's Ingress owns is the default backend's.
    let wanted = access && (at.location.origin.is_some() || global.default_backend_access_log);
    if !wanted {
        put!(at.block, "access_log", false);
    }
    if rewrite {
        put!(at.block, "rewrite_log", true);
    }
}
