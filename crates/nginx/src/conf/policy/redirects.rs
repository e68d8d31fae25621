//! `permanent-redirect`, `temporal-redirect`, `relative-redirects`. Redirects to HTTPS are a matter of Lua.

use super::super::Word;
use super::super::location::At;
use super::super::tree::put;
use model::policy::Redirect;

/// How redirects are written.
pub(in crate::conf) fn spell(relative: bool, at: &mut At<'_, '_>) {
    if relative {
        put!(at.block, "absolute_redirect", false);
    }
    if at.location.policy.tls_redirect.with_port {
        put!(at.block, "port_in_redirect", true);
    }
}

/// The redirect itself.
pub(in crate::conf) fn write(policy: Option<&Redirect>, at: &mut At<'_, '_>) {
    if let Some(Redirect { status, target }) = policy {
        put!(at.block, "return", *status, Word::template(target));
    }
}
