//! The certificate that every proxy serves, and how the generator's clients shake hands.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, NamedGroup, SignatureScheme};

/// More tickets than a run ever has connections.
const TICKETS: usize = 4096;

/// A certificate with its key, as text and as files.
pub(crate) struct Certificate {
    der: CertificateDer<'static>,
    /// The certificate in PEM.
    pub(crate) chain: String,
    /// The key in PEM.
    pub(crate) key: String,
    /// Both in one file, as HAProxy wants them.
    pub(crate) both_file: PathBuf,
    /// The certificate's file.
    pub(crate) chain_file: PathBuf,
    /// The key's file.
    pub(crate) key_file: PathBuf,
}

impl Certificate {
    /// Makes one (ECDSA P-256) for `names` and writes it into `folder`.
    pub(crate) fn create(folder: &Path, names: &[&str]) -> Result<Self> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("make a key")?;
        let certificate = CertificateParams::new(names)
            .and_then(|params| params.self_signed(&key))
            .context("make a certificate")?;
        let (chain, key) = (certificate.pem(), key.serialize_pem());
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            anyhow::Ok(path)
        };
        let both_file = file("both.pem", &format!("{chain}{key}"))?;
        let (chain_file, key_file) = (file("chain.pem", &chain)?, file("key.pem", &key)?);
        let der = certificate.der().clone();
        Ok(Self { der, chain, key, both_file, chain_file, key_file })
    }

    /// Settings of a client: TLS 1.3, one cipher suite and one group, so that every proxy does the same work.
    pub(crate) fn client(&self, alpn: &str, resumes: bool) -> Result<Arc<ClientConfig>> {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
        let provider = Arc::new(provider);
        let pinned = Pinned { certificate: self.der.clone(), provider: Arc::clone(&provider) };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .context("TLS 1.3")?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        config.resumption = if resumes {
            Resumption::store(Arc::new(Tickets::default()))
        } else {
            Resumption::disabled()
        };
        Ok(Arc::new(config))
    }
}

/// Accepts the one certificate by its bytes: checking signatures would be the generator's work, not the proxy's.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        served: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *served == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General(format!("another certificate than that of {}", name.to_str())))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Tickets of one server, first in first out and many of them: rustls's own store keeps eight.
#[derive(Default)]
struct Tickets(Mutex<VecDeque<Tls13ClientSessionValue>>);

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tickets")
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _name: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _name: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _name: ServerName<'static>, _value: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _name: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut tickets = self.0.lock();
        if tickets.len() == TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().pop_front()
    }
}
