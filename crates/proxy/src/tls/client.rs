//! TLS towards upstreams (ngx_http_proxy_module, proxy_ssl_*).

use model::TlsVersion;
use model::policy::UpstreamTls;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, version};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The name that nginx verifies where `proxy-ssl-name` is absent: that of its proxy_pass.
const DEFAULT_NAME: &str = "upstream_balancer";

/// TLS towards the upstreams of locations with the same settings.
#[derive(Debug)]
pub struct Profile {
    /// Its number; connections of different profiles are never exchanged for one another.
    pub id: u64,
    /// How TLS is spoken.
    pub config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl Profile {
    /// The same settings towards a host that is known only once a request is there.
    pub fn named(&self, host: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.id, host).hash(&mut hasher);
        // Profiles are counted from one: the upper half is free for hosts.
        let id = hasher.finish() | 1 << 63;
        let name = ServerName::try_from(host.to_owned()).ok();
        Self { id, config: self.config.clone(), name }
    }

    /// The name to verify, and to send if that is wanted.
    pub fn name_for(&self, address: IpAddr) -> ServerName<'static> {
        self.name.clone().unwrap_or(ServerName::IpAddress(address.into()))
    }
}

/// All profiles there ever were: few, and their connections outlive generations.
#[derive(Debug, Default)]
pub struct Profiles {
    known: Mutex<HashMap<(UpstreamTls, bool), Arc<Profile>>>,
}

impl Profiles {
    /// The profile for these settings, with ALPN for HTTP/2 where that is spoken.
    pub fn profile(&self, settings: &UpstreamTls, http2: bool) -> Result<Arc<Profile>, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(profile) = known.get(&(settings.clone(), http2)) {
            return Ok(profile.clone());
        }
        let id = known.len() as u64 + 1;
        let name = settings.name.as_deref().or(settings.verify.then_some(DEFAULT_NAME));
        let name = name.and_then(|name| ServerName::try_from(name.to_owned()).ok());
        let profile = Arc::new(Profile { id, config: Arc::new(config(settings, http2)?), name });
        known.insert((settings.clone(), http2), profile.clone());
        Ok(profile)
    }
}

fn config(settings: &UpstreamTls, http2: bool) -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let wanted = |version| settings.versions.is_empty() || settings.versions.contains(&version);
    let versions = [(TlsVersion::Tls12, &version::TLS12), (TlsVersion::Tls13, &version::TLS13)];
    let versions: Vec<_> =
        versions.into_iter().filter(|(name, _)| wanted(*name)).map(|(_, is)| is).collect();
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
    let builder =
        builder.dangerous().with_custom_certificate_verifier(verifier(settings, provider)?);
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain =
                identity.chain.iter().map(|der| CertificateDer::from(der.to_vec())).collect();
            let key = PrivateKeyDer::try_from(identity.key.0.clone())
                .map_err(|text| Error::General(text.to_owned()))?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    config.enable_sni = settings.server_name;
    if http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    Ok(config)
}

fn verifier(
    settings: &UpstreamTls,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    if !settings.verify {
        return Ok(Arc::new(Unverified(provider)));
    }
    let mut roots = RootCertStore::empty();
    for authority in &settings.authorities {
        roots.add(CertificateDer::from(authority.to_vec()))?;
    }
    if roots.is_empty() {
        return Ok(Arc::new(Nobody(provider)));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(verifier.map_err(|error| Error::General(error.to_string()))?)
}

/// Believes every certificate, as `proxy_ssl_verify off` does; signatures are still checked.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

/// Believes none: verification is asked for and no authority is known.
#[derive(Debug)]
struct Nobody(Arc<CryptoProvider>);

macro_rules! checks_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(
                message,
                certificate,
                signed,
                &self.0.signature_verification_algorithms,
            )
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(
                message,
                certificate,
                signed,
                &self.0.signature_verification_algorithms,
            )
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    checks_signatures!();
}

impl ServerCertVerifier for Nobody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Err(Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))
    }

    checks_signatures!();
}
