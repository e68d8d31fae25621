//! TLS towards upstreams (ngx_http_proxy_module, proxy_ssl_*; BackendTLSPolicy).

use super::between;
use super::ciphers::chosen;
use super::signatures::is_issued;
use super::subject_names;
use super::verifier::in_time;
use super::ways;
use model::TlsVersion;
use model::policy::{SubjectName, UpstreamTls};
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme, version,
};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// The name that nginx verifies where `proxy-ssl-name` is absent: that of its proxy_pass.
const DEFAULT_NAME: &str = "upstream_balancer";

/// Tells profiles apart: by the number of their settings, and by the host where a request says it. The host itself, no
/// hash of it: a client may choose it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProfileId {
    settings: u64,
    host: Option<Arc<str>>,
}

/// TLS towards the upstreams of locations with the same settings.
#[derive(Debug)]
pub struct Profile {
    /// Connections of different profiles are never exchanged for one another.
    pub id: ProfileId,
    /// How TLS is spoken.
    pub config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl Profile {
    /// The same settings towards a host that is known only once a request is there.
    pub fn named(&self, host: &str) -> Self {
        let id = ProfileId { host: Some(host.into()), ..self.id };
        let name = ServerName::try_from(host.to_owned()).ok();
        Self { id, config: self.config.clone(), name }
    }

    /// The name to verify, and to send if that is wanted.
    pub fn name_for(&self, address: IpAddr) -> ServerName<'static> {
        self.name.clone().unwrap_or(ServerName::IpAddress(address.into()))
    }
}

/// The profiles of all locations. Those that nobody uses any more go when there is need of room: their number is that
/// of settings in use, not of those there ever were.
#[derive(Debug, Default)]
pub struct Profiles {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    profiles: HashMap<(UpstreamTls, bool), Arc<Profile>>,
    /// How many there ever were: a number is never given twice.
    made: u64,
    /// Above so many it is worth looking for those that nobody uses.
    enough: usize,
}

impl Profiles {
    /// The profile for these settings, with ALPN for HTTP/2 where that is spoken.
    pub fn profile(&self, settings: &UpstreamTls, http2: bool) -> Result<Arc<Profile>, Error> {
        let mut known = self.known.lock();
        if let Some(profile) = known.profiles.get(&(settings.clone(), http2)) {
            return Ok(profile.clone());
        }
        if known.profiles.len() > known.enough {
            known.profiles.retain(|_, profile| Arc::strong_count(profile) > 1);
            known.enough = 2 * known.profiles.len().max(16);
        }
        known.made += 1;
        let id = ProfileId { settings: known.made, host: None };
        let name = settings.name.as_deref().or(settings.verify.then_some(DEFAULT_NAME));
        let name = name.and_then(|name| ServerName::try_from(name.to_owned()).ok());
        let profile = Arc::new(Profile { id, config: Arc::new(config(settings, http2)?), name });
        known.profiles.insert((settings.clone(), http2), profile.clone());
        Ok(profile)
    }
}

fn config(settings: &UpstreamTls, http2: bool) -> Result<ClientConfig, Error> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = chosen(&settings.ciphers, &provider.cipher_suites);
    let provider = Arc::new(provider);
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
        return Ok(Arc::new(Verifier { provider, believes: Believes::Everybody }));
    }
    let mut roots = RootCertStore::empty();
    for authority in settings.authorities.iter() {
        roots.add(CertificateDer::from(authority.to_vec()))?;
    }
    if settings.system {
        // What of them cannot be read is nobody's authority.
        roots.add_parsable_certificates(trusted_by_system().iter().cloned());
    }
    let depth = if settings.depth == 0 { DEPTH } else { settings.depth as usize };
    let (authorities, names) = (settings.authorities.clone(), settings.names.clone());
    let believes = Believes::DescendantsOf(Authorities { roots, depth, authorities, names });
    Ok(Arc::new(Verifier { provider, believes }))
}

/// The authorities that the system trusts, as they were when somebody first asked.
fn trusted_by_system() -> &'static [CertificateDer<'static>] {
    static TRUSTED: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    TRUSTED.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            tracing::error!(errors = ?found.errors, "the system trusts no authority; upstreams that need one are refused");
        }
        found.certs
    })
}

/// The methods of a verifier about signatures, which are always checked; `self.provider` says how.
macro_rules! checks_signatures {
    () => {
        checks_signatures!(
            verify_tls12_signature: verify_tls12,
            verify_tls13_signature: verify_tls13
        );

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
    ($($method:ident: $verify:ident),+) => {
        $(fn $method(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            $crate::signatures::$verify(message, certificate, signed, algorithms)
        })+
    };
}
pub(super) use checks_signatures;

/// nginx's `proxy_ssl_verify_depth`.
const DEPTH: usize = 1;

/// Whether a handshake failed since the upstream's certificate is not believed.
pub fn is_not_believed(error: &io::Error) -> bool {
    let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    matches!(of_tls, Some(Error::InvalidCertificate(_)))
}

/// Decides which certificates of upstreams are believed.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    believes: Believes,
}

#[derive(Debug)]
enum Believes {
    /// Every certificate, as `proxy_ssl_verify off` does.
    Everybody,
    /// Those of the name that descend from an authority; none if there is no authority.
    DescendantsOf(Authorities),
}

#[derive(Debug)]
struct Authorities {
    roots: RootCertStore,
    /// Over how many others certificates may descend.
    depth: usize,
    authorities: Arc<[Arc<[u8]>]>,
    /// Names of which a certificate must have one; empty: the name that was asked for.
    names: Vec<SubjectName>,
}

impl Authorities {
    /// Whether a certificate descends from an authority, or is one itself.
    fn believe(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        let read = |der| X509Certificate::from_der(der).map(|(_, read)| read);
        let leaf = read(certificate).map_err(|_| webpki::Error::BadDer)?;
        let itself = self.authorities.iter().any(|authority| **authority == **certificate);
        let signs_itself = itself && is_issued(&leaf, &leaf);
        if leaf.version() != X509Version::V3 || signs_itself {
            // OpenSSL takes what webpki does not: without extensions, or an authority that serves by itself.
            let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
            if !signs_itself {
                let issuer = ways::issuer_of(&leaf, self.named(leaf.issuer().as_raw()));
                let issuer = issuer.ok_or(webpki::Error::UnknownIssuer)?;
                in_time(&issuer, now).map_err(|_| webpki::Error::InvalidCertValidity)?;
            }
            return match in_time(&leaf, now) {
                Ok(()) if may_serve(&leaf) => Ok(()),
                _ => Err(webpki::Error::InvalidCertValidity),
            };
        }
        let is_short = |path: &VerifiedPath<'_>| match path.intermediate_certificates().count() {
            count if count <= self.depth => Ok(()),
            _ => Err(webpki::Error::UnknownIssuer),
        };
        let (usage, roots) = (KeyUsage::server_auth(), &self.roots.roots);
        let end = EndEntityCert::try_from(certificate)?;
        let none = between::Authorities::default();
        let others = &none.above(&leaf, others).certificates;
        ways::lead_to_root(&end, roots, others, now, usage, &is_short)
    }

    /// Those of this name.
    fn named(&self, name: &[u8]) -> impl Iterator<Item = &[u8]> {
        // The first roots are these, in their order, and their names have no tag before them.
        let known = self.roots.roots.iter().zip(self.authorities.iter());
        known.filter(|(root, _)| name.ends_with(&root.subject)).map(|(_, der)| &**der)
    }
}

fn may_serve(certificate: &X509Certificate<'_>) -> bool {
    let usage = certificate.extended_key_usage();
    usage.is_ok_and(|usage| usage.is_none_or(|usage| usage.value.server_auth || usage.value.any))
}

/// Whether a certificate without DNS names is for a host by its common name, which OpenSSL then looks at.
fn is_commonly_named(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
    let names = certificate.subject_alternative_name().ok().flatten();
    let mut names = names.iter().flat_map(|names| &names.value.general_names);
    if names.any(|name| matches!(name, GeneralName::DNSName(_))) {
        return false;
    }
    let is_host = |name: &str| match name.strip_prefix("*.") {
        Some(parent) => {
            host.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent))
        }
        None => host.eq_ignore_ascii_case(name),
    };
    certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).any(is_host)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Believes::DescendantsOf(authorities) = &self.believes else {
            return Ok(ServerCertVerified::assertion());
        };
        let refused = |error: webpki::Error| {
            Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
        };
        authorities.believe(certificate, others, now).map_err(refused)?;
        if !authorities.names.is_empty() {
            return if subject_names::has_one(certificate, &authorities.names) {
                Ok(ServerCertVerified::assertion())
            } else {
                Err(Error::InvalidCertificate(CertificateError::NotValidForName))
            };
        }
        if is_commonly_named(certificate, &name.to_str()) {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = EndEntityCert::try_from(certificate).map_err(refused)?;
        certificate.verify_is_valid_for_subject_name(name).map_err(refused)?;
        Ok(ServerCertVerified::assertion())
    }

    checks_signatures!();
}

#[cfg(test)]
mod tests {
    use super::{config, verifier};
    use crate::signatures::counted;
    use crate::version_1::of_version_1;
    use model::policy::UpstreamTls;
    use rcgen::{
        BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ECDSA_P521_SHA512,
    };
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::sync::Arc;

    /// A chain from the leaf for `a.test` up to the root, over `between` other authorities.
    fn chain(between: usize) -> Vec<CertificateDer<'static>> {
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
        };
        let key = || KeyPair::generate().expect("a key");
        let (params, root_key) = (authority("root"), key());
        let mut chain = vec![params.self_signed(&root_key).expect("a root").der().clone()];
        let mut issuer = Issuer::new(params, root_key);
        for number in 0..between {
            let (params, own) = (authority(&number.to_string()), key());
            chain.insert(0, params.signed_by(&own, &issuer).expect("signed").der().clone());
            issuer = Issuer::new(params, own);
        }
        let leaf = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
        chain.insert(0, leaf.signed_by(&key(), &issuer).expect("signed").der().clone());
        chain
    }

    fn accepts(depth: u32, between: usize, name: &'static str) -> bool {
        let chain = chain(between);
        let (leaf, others) = chain.split_first().expect("a leaf");
        let (root, others) = others.split_last().expect("a root");
        let settings = UpstreamTls {
            verify: true,
            depth,
            authorities: [Arc::from(root.as_ref())].into(),
            ..UpstreamTls::default()
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = verifier(&settings, provider).expect("valid settings");
        let name = ServerName::try_from(name).expect("a name");
        verifier.verify_server_cert(leaf, others, &name, &[], UnixTime::now()).is_ok()
    }

    #[test]
    fn a_chain_may_be_as_long_as_its_depth_allows() {
        assert!(accepts(0, 0, "a.test") && accepts(0, 1, "a.test"));
        assert!(!accepts(0, 2, "a.test") && !accepts(1, 2, "a.test"));
        assert!(accepts(2, 2, "a.test"));
        assert!(!accepts(2, 1, "b.test"));
    }

    #[test]
    fn names_that_lead_in_a_circle_are_not_followed_without_signatures() {
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
        };
        let key = || KeyPair::generate().expect("a key");
        let (x, y) = (Issuer::new(authority("x"), key()), Issuer::new(authority("y"), key()));
        let signed = |params: CertificateParams, by| {
            params.signed_by(&key(), by).expect("signed").der().clone()
        };
        let leaf = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
        let leaf = signed(leaf, &x);
        let pairs = (0..20).map(|_| [signed(authority("x"), &y), signed(authority("y"), &x)]);
        let others: Vec<_> = pairs.flatten().collect();
        let settings = UpstreamTls {
            verify: true,
            authorities: [Arc::from(chain(0)[1].as_ref())].into(),
            ..UpstreamTls::default()
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = verifier(&settings, provider).expect("valid settings");
        let name = ServerName::try_from("a.test").expect("a name");
        let refused = verifier.verify_server_cert(&leaf, &others, &name, &[], UnixTime::now());
        let refused = format!("{:?}", refused.expect_err("it is of nobody known"));
        assert!(refused.contains("UnknownIssuer"), "{refused}");
    }

    #[test]
    fn of_authorities_of_one_name_few_keys_are_tried_for_a_certificate_of_version_1() {
        let mut root = CertificateParams::new(Vec::new()).expect("no names");
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let dear = || KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).expect("a key");
        let of_key = |key: &KeyPair| -> Arc<[u8]> {
            root.self_signed(key).expect("a root").der().as_ref().into()
        };
        let (ours, stranger) = (dear(), dear());
        let leaf = |key: &KeyPair| {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.distinguished_name.push(rcgen::DnType::CommonName, "a.test");
            let signed = params.signed_by(&dear(), &Issuer::from_params(&root, key));
            of_version_1(signed.expect("signed").der(), key)
        };
        let accepts = |others: &[Arc<[u8]>], key: &KeyPair| {
            let authorities = others.iter().cloned().chain([of_key(&ours)]).collect();
            let settings = UpstreamTls { verify: true, authorities, ..UpstreamTls::default() };
            let provider = Arc::new(aws_lc_rs::default_provider());
            let verifier = verifier(&settings, provider).expect("valid settings");
            let name = ServerName::try_from("a.test").expect("a name");
            verifier.verify_server_cert(&leaf(key), &[], &name, &[], UnixTime::now()).is_ok()
        };
        let others: Vec<_> = (0..40).map(|_| of_key(&dear())).collect();
        let before = counted();
        assert!(!accepts(&others, &stranger));
        assert_eq!(counted() - before, 8);
        assert!(accepts(&others[..7], &ours) && !accepts(&others[..8], &ours));
        // A key that was renewed many times is tried once.
        let before = counted();
        let again: Vec<_> = (0..40).map(|_| of_key(&stranger)).collect();
        assert!(accepts(&again, &ours));
        assert_eq!(counted() - before, 2);
    }

    #[test]
    fn an_authority_may_serve_by_itself_and_under_its_common_name() {
        let itself = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().expect("a key");
            params.self_signed(&key).expect("a certificate").der().clone()
        };
        let (ours, forged, wild) = (itself("a.test"), itself("a.test"), itself("*.a.test"));
        let authorities = [&ours, &wild].map(|der| Arc::from(der.as_ref())).into();
        let settings = UpstreamTls { verify: true, authorities, ..UpstreamTls::default() };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = verifier(&settings, provider).expect("valid settings");
        let accepts = |der: &CertificateDer<'_>, name: &'static str| {
            let name = ServerName::try_from(name).expect("a name");
            verifier.verify_server_cert(der, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert!(accepts(&ours, "A.test") && !accepts(&ours, "b.test"));
        assert!(accepts(&wild, "x.a.test") && !accepts(&wild, "x.y.a.test"));
        assert!(!accepts(&wild, "a.test") && !accepts(&forged, "a.test"));
    }

    #[test]
    fn without_an_authority_nobody_is_believed_unless_nothing_is_verified() {
        let chain = chain(0);
        let believes = |verify| {
            let provider = Arc::new(aws_lc_rs::default_provider());
            let settings = UpstreamTls { verify, ..UpstreamTls::default() };
            let verifier = verifier(&settings, provider).expect("valid settings");
            let name = ServerName::try_from("a.test").expect("a name");
            verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now()).is_ok()
        };
        assert!(believes(false) && !believes(true));
    }

    #[test]
    fn suites_of_tls_1_2_are_those_that_were_named() {
        let ciphers = vec!["ECDHE-RSA-AES256-GCM-SHA384".to_owned()];
        let settings = UpstreamTls { ciphers, ..UpstreamTls::default() };
        let config = config(&settings, false).expect("valid settings");
        let suites = &config.crypto_provider().cipher_suites;
        let old: Vec<_> = suites.iter().filter(|suite| suite.tls13().is_none()).collect();
        assert_eq!(old.len(), 1);
    }
}
