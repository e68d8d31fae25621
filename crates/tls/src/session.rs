//! What is known of a session with a client.

use super::Peer;

/// A TLS session with a client.
#[derive(Clone, Debug, Default)]
pub struct TlsSession {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite's name as OpenSSL spells it.
    pub cipher: String,
    /// The name asked for.
    pub server_name: Option<String>,
    /// The certificate that the client has shown.
    pub client: Option<Peer>,
    /// The group of the key exchange as OpenSSL names it.
    pub curve: &'static str,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}
