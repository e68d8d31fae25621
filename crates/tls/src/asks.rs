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

/// Bytes of a client's certificates at most: a connection has them in memory as long as it lasts, twice, and each is
/// read at every step of the ways to a root. One has 1 to 3 kB, a chain seldom more than four.
const LONGEST_CHAIN: usize = 16 << 10;

/// Refuses the handshake of a client whose certificates are too long.
fn is_short(certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
    let bytes: usize = std::iter::once(certificate).chain(others).map(|one| one.len()).sum();
    if bytes <= LONGEST_CHAIN {
        return Ok(());
    }
    Err(Error::InvalidCertificate(CertificateError::BadEncoding))
}

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
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        is_short(certificate, others).map(|()| ClientCertVerified::assertion())
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
        is_short(certificate, others)?;
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

#[cfg(test)]
mod tests {
    use super::{LONGEST_CHAIN, is_short};
    use rustls::pki_types::CertificateDer;

    #[test]
    fn a_chain_that_is_too_long_ends_the_handshake() {
        let of = |bytes: usize| CertificateDer::from(vec![0; bytes]);
        assert!(is_short(&of(LONGEST_CHAIN), &[]).is_ok());
        assert!(is_short(&of(1000), &[of(LONGEST_CHAIN - 1000)]).is_ok());
        assert!(is_short(&of(1000), &[of(LONGEST_CHAIN - 1000), of(1)]).is_err());
    }
}
