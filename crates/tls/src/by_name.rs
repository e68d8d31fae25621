//! The certificate of a handshake.

use super::Certificates;
use super::ocsp::Staples;
use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// Gives each handshake the certificate for its name, as of now.
#[derive(Clone, Debug)]
pub(super) struct ByName {
    pub(super) certificates: Arc<ArcSwap<Certificates>>,
    pub(super) staples: Option<Arc<Staples>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let plain = self.certificates.load().choose(hello.server_name());
        Some(match &self.staples {
            None => plain,
            Some(staples) => staples.staple(plain),
        })
    }
}
