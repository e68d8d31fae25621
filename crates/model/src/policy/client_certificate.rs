//! Certificates of clients: who must show one, and whose word counts (`auth-tls-*`, ngx_http_ssl_module).

use crate::Pattern;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// What an Ingress asks of the clients of its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ClientCertificate {
    /// The authority cannot be found out, for the reason given: nobody gets in (403).
    Closed(String),
    /// Certificates are verified like this.
    Verified(Arc<ClientVerification>),
}

impl ClientCertificate {
    /// Whether a client without a good certificate is shown a page of the Ingress.
    pub fn has_error_page(&self) -> bool {
        matches!(self, Self::Verified(asked) if asked.error_page != ClientErrorPage::Plain)
    }
}

/// How the certificates of clients are verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientVerification {
    /// The Secret with the authorities, `namespace/name`.
    pub secret: String,
    /// `ca.crt` of the Secret: certificates in DER.
    #[serde(serialize_with = "count")]
    pub authorities: Arc<[Arc<[u8]>]>,
    /// `ca.crl` of the Secret: revocation lists in DER. Where there is one, each certificate of a chain needs one.
    #[serde(serialize_with = "count")]
    pub revocations: Arc<[Arc<[u8]>]>,
    /// `auth-tls-verify-client`.
    pub demand: ClientDemand,
    /// `auth-tls-verify-depth`: intermediate certificates between the client's and a root, at most.
    pub depth: u32,
    /// `auth-tls-match-cn`: found in the subject (RFC 2253), else 403.
    pub subject: Option<Pattern>,
    /// `auth-tls-error-page`.
    pub error_page: ClientErrorPage,
    /// `auth-tls-pass-certificate-to-upstream`.
    pub pass_certificate: bool,
}

/// `auth-tls-verify-client`, the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ClientDemand {
    /// No certificate is asked for.
    Off,
    /// One may be shown; an unknown authority is no failure.
    OptionalUnknown,
    /// One may be shown; then it must be good.
    Optional,
    /// A good one must be shown.
    Required,
}

/// `auth-tls-error-page`: what a client without a good certificate is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ClientErrorPage {
    /// 400 and why.
    Plain,
    /// A redirect (302) to this address.
    Redirect(String),
    /// 403: the page is a path of the host that is closed to this client.
    Forbidden,
    /// 500: a named location, of which there are none.
    Missing,
}

fn count<S: Serializer>(items: &[Arc<[u8]>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(items.len() as u64)
}
