//! The fixture certificates: two authorities, servers, clients, and a list with a revoked one.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    PKCS_RSA_SHA256, RevokedCertParams, RsaKeySize, SerialNumber, date_time_ymd,
};

/// The organisation of every fixture certificate.
const ORGANISATION: &str = "Fairway tests";

/// The serial number of bob's certificate, which is revoked.
const REVOKED: u64 = 0x0b0b;

/// A certificate with its key, both PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key, PKCS #8.
    pub key: String,
}

/// All certificates of the fixtures.
#[derive(Debug)]
pub struct Certificates {
    identities: BTreeMap<&'static str, Identity>,
    /// The list in which `ca` revokes bob.
    pub revocations: String,
}

/// Who is issued what: name, common name, names of the server (none for clients), serial number if it matters.
const LEAVES: [(&str, &str, &[&str], Option<u64>); 6] = [
    ("tls-demo", "demo.test", &["demo.test", "*.demo.test"], None),
    ("tls-other", "other.test", &["other.test"], None),
    ("tls-test", "*.test", &["*.test", "test"], None),
    ("echo-tls", "echo-tls.demo.svc", &["echo-tls.demo.svc"], None),
    ("alice", "alice", &[], None),
    ("bob", "bob", &[], Some(REVOKED)),
];

type Authority = CertifiedIssuer<'static, KeyPair>;

impl Certificates {
    /// The certificates of this process, made when first asked for.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Certificates>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| {
            Arc::new(Self::make().expect("fixed parameters make valid certificates"))
        }))
    }

    /// One of `ca`, `other-ca`, `tls-demo`, `tls-other`, `tls-test`, `echo-tls`, `alice`, `bob`, `mallory`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Identity> {
        self.identities.get(name)
    }

    fn make() -> Result<Self, rcgen::Error> {
        let (ca, other) = (authority("Fairway test CA")?, authority("Another CA")?);
        let mut identities =
            BTreeMap::from([("ca", identity(&ca)), ("other-ca", identity(&other))]);
        for (name, common_name, servers, serial) in LEAVES {
            identities.insert(name, issue(&ca, common_name, servers, serial)?);
        }
        identities.insert("mallory", issue(&other, "mallory", &[], None)?);
        Ok(Self { identities, revocations: revoke(&ca)? })
    }
}

fn identity(authority: &Authority) -> Identity {
    Identity { certificate: authority.pem(), key: authority.key().serialize_pem() }
}

/// A certificate's subject and validity.
fn parameters(common_name: &str) -> CertificateParams {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, common_name);
    subject.push(DnType::OrganizationName, ORGANISATION);
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = subject;
    parameters.not_before = date_time_ymd(2024, 1, 1);
    parameters.not_after = date_time_ymd(2046, 1, 1);
    parameters
}

fn authority(common_name: &str) -> Result<Authority, rcgen::Error> {
    let mut parameters = parameters(common_name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)
}

fn issue(
    authority: &Authority,
    common_name: &str,
    servers: &[&str],
    serial: Option<u64>,
) -> Result<Identity, rcgen::Error> {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    let names: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut parameters = parameters(common_name);
    parameters.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.serial_number = serial.map(SerialNumber::from);
    if servers.is_empty() {
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    }
    let certificate = parameters.signed_by(&key, authority)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn revoke(authority: &Authority) -> Result<String, rcgen::Error> {
    let bob = RevokedCertParams {
        serial_number: SerialNumber::from(REVOKED),
        revocation_time: date_time_ymd(2024, 2, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 2, 1),
        next_update: date_time_ymd(2046, 1, 1),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: vec![bob],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    list.signed_by(authority)?.pem()
}

#[cfg(test)]
mod tests {
    use openssl::x509::{CrlStatus, X509, X509Crl};

    use super::*;

    fn certificate(name: &str) -> X509 {
        X509::from_pem(Certificates::shared().get(name).unwrap().certificate.as_bytes()).unwrap()
    }

    #[test]
    fn every_leaf_is_signed_by_its_authority() {
        let key = |name| certificate(name).public_key().unwrap();
        for (name, ..) in LEAVES {
            assert!(certificate(name).verify(&key("ca")).unwrap(), "{name}");
        }
        assert!(certificate("mallory").verify(&key("other-ca")).unwrap());
        assert!(!certificate("mallory").verify(&key("ca")).unwrap());
    }

    #[test]
    fn only_bob_is_revoked() {
        let list = X509Crl::from_pem(Certificates::shared().revocations.as_bytes()).unwrap();
        assert!(matches!(list.get_by_cert(&certificate("bob")), CrlStatus::Revoked(_)));
        assert!(matches!(list.get_by_cert(&certificate("alice")), CrlStatus::NotRevoked));
    }
}
