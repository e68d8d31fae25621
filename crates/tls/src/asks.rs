//! Asks clients for a certificate and lets every handshake go on: what a certificate is worth is decided for each
//! server, when a request says which one it is for (ngx_http_ssl_module answers 400, it breaks no handshake).

use super::client::checks_signatures;
use super::{Verdict, Verifier};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// Asks for a certificate. That the client has its key is checked here, its worth elsewhere.
#[derive(Debug)]
pub(super) struct Asks {
    /// Subjects of the authorities, so that clients know which certificate to show.
    pub(super) authorities: Vec<DistinguishedName>,
    /// Where signatures are checked.
    pub(super) provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Asks {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    checks_signatures!();
}

/// Demands a good certificate: any other one, or none, ends the handshake (Gateway API, `AllowValidOnly`).
#[derive(Debug)]
pub(super) struct Demands {
    /// Subjects of the authorities, so that clients know which certificate to show.
    pub(super) authorities: Vec<DistinguishedName>,
    /// Who says what a certificate is worth.
    pub(super) verifier: Arc<Verifier>,
    /// Where signatures are checked.
    pub(super) provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Demands {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let chain = std::iter::once(certificate).chain(others);
        let chain: Vec<_> = chain.map(|one| CertificateDer::from(one.as_ref())).collect();
        match self.verifier.verdict(&chain, now) {
            Verdict::Good => Ok(ClientCertVerified::assertion()),
            Verdict::Unknown(_) => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            Verdict::Bad(_) => {
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
        }
    }

    checks_signatures!();
}
