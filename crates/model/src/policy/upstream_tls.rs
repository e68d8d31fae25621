//! TLS towards the upstream, as `proxy-ssl-*` or a BackendTLSPolicy asks for it.

use crate::{PrivateKey, TlsVersion};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// TLS towards the upstream. The default verifies nothing and sends no name, as nginx's proxy_ssl does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct UpstreamTls {
    /// Certificates (DER) that the upstream's one must descend from; empty: it is not verified.
    #[serde(skip)]
    pub authorities: Arc<[Arc<[u8]>]>,
    /// Whether the upstream's certificate is verified; without authorities every handshake then fails.
    pub verify: bool,
    /// The name that is verified and, with `server_name`, sent as SNI; the upstream's name if absent.
    pub name: Option<String>,
    /// Whether what the system trusts are authorities, too.
    pub system: bool,
    /// Names of which the certificate must have one among its alternative names, whatever the name above is; empty: the
    /// name above counts.
    pub names: Vec<SubjectName>,
    /// Whether SNI is sent.
    pub server_name: bool,
    /// Certificate chain (DER, leaf first) and key presented to the upstream.
    pub identity: Option<Identity>,
    /// Certificates at most between the upstream's one and the authority, where it is verified; zero means nginx's
    /// default, one.
    pub depth: u32,
    /// TLS versions that may be used; empty: all.
    pub versions: BTreeSet<TlsVersion>,
    /// Cipher suites of TLS 1.2 by OpenSSL's names, in order of preference; empty: all.
    pub ciphers: Vec<String>,
}

/// An alternative name of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum SubjectName {
    /// A host name in lower case; one such as `*.example.com` is that name itself.
    Dns(String),
    /// A URI, such as a SPIFFE ID.
    Uri(String),
}

/// A certificate chain with its key, presented to upstreams.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Identity {
    /// DER, leaf first.
    #[serde(skip)]
    pub chain: Vec<Arc<[u8]>>,
    /// The key of the leaf.
    pub key: PrivateKey,
}
