//! The certificate that answers where there is no better one, as ingress-nginx makes it at each start.

use model::{Certificate, CertificateId, PrivateKey};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use std::time::{Duration, SystemTime};

/// How long it is valid.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Makes it.
pub(crate) fn self_signed() -> Result<Certificate, rcgen::Error> {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Acme Co");
    name.push(DnType::CommonName, "Kubernetes Ingress Controller Fake Certificate");
    let mut params = CertificateParams::new(vec!["ingress.local".to_owned()])?;
    params.distinguished_name = name;
    let now = SystemTime::now();
    params.not_before = now.into();
    params.not_after = (now + YEAR).into();
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    let certificate = params.self_signed(&key)?;
    Ok(Certificate {
        id: CertificateId::new("self-signed"),
        chain: vec![certificate.der().to_vec()],
        key: PrivateKey(key.serialize_der()),
        names: vec!["ingress.local".to_owned()].into(),
        not_after: 0,
    })
}
