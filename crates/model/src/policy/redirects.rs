//! `ssl-redirect`, `force-ssl-redirect`, `preserve-trailing-slash`, `use-port-in-redirects`.

use serde::Serialize;

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
