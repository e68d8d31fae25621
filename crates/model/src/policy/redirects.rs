//! `permanent-redirect`, `temporal-redirect`, `ssl-redirect`, `force-ssl-redirect`, `preserve-trailing-slash`,
//! `use-port-in-redirects`.

use crate::UrlText;
use serde::Serialize;

/// A redirect that answers every request (compat/behaviour.md section 12.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// Its status: 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Where to; what starts with `/` is on the host of the request.
    pub target: UrlText,
}

/// Redirects from HTTP to HTTPS (compat/behaviour.md section 12.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TlsRedirect {
    /// If the host has a certificate.
    pub with_certificate: bool,
    /// In any case.
    pub always: bool,
    /// Keep one `/` at the end of the target, which is cut off otherwise.
    pub preserve_trailing_slash: bool,
    /// Name the HTTPS port in the location.
    pub with_port: bool,
}

impl TlsRedirect {
    /// None at all: what no Ingress owns, and the catch-all (compat/behaviour.md section 6).
    pub const NEVER: Self = Self {
        with_certificate: false,
        always: false,
        preserve_trailing_slash: false,
        with_port: false,
    };
}

impl Default for TlsRedirect {
    fn default() -> Self {
        Self {
            with_certificate: true,
            always: false,
            preserve_trailing_slash: false,
            with_port: false,
        }
    }
}
