//! Cipher suites of one host (`ssl-ciphers`, `ssl-prefer-server-ciphers`; ngx_http_ssl_module).

use serde::Serialize;

/// What differs from the suites of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ciphers {
    /// OpenSSL names of TLS 1.2 suites in order of preference; empty for those of the process.
    pub suites: Vec<String>,
    /// Whether our order counts rather than the client's; none for what the process does.
    pub prefer_server: Option<bool>,
}
