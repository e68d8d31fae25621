//! Questions to the responder of an authority, and what its answers are worth (RFC 6960).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, UnixTime};
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::asn1::{Null, OctetString};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Any, Decode, Encode};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspRequest, OcspResponse, OcspResponseStatus, Request,
    ResponderId, TbsRequest,
};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

/// SHA-1, which every responder knows; it names a certificate here and proves nothing.
const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
/// id-pkix-ocsp-basic.
const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// id-kp-OCSPSigning: who may answer in the name of an authority.
const MAY_ANSWER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
/// id-ad-ocsp: where a certificate says its responder is.
const RESPONDER: &str = "1.3.6.1.5.5.7.48.1";
/// Certificates with the name of the one that has signed, which are tried at most.
const SIGNERS: usize = 2;
/// How far the clock of a responder may be ahead.
const AHEAD: u64 = 300;
/// How long an answer counts at most, and how long one counts that does not say.
const MOST: u64 = 3 * 86_400;
const UNSAID: u64 = 3600;

/// What is asked, of whom.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The responder's URL.
    pub(super) responder: String,
    /// The request in DER.
    pub(super) request: Vec<u8>,
    id: CertId,
    issuer: CertificateDer<'static>,
}

/// Why there is no answer to be stapled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("the chain has no issuer: add the intermediate certificates to tls.crt")]
    NoIssuer,
    #[error("the certificate names no OCSP responder")]
    NoResponder,
    #[error("the certificate or its issuer cannot be read")]
    Unreadable,
    #[error("the responder says {0:?}")]
    Status(OcspResponseStatus),
    #[error("the answer cannot be read: {0}")]
    Malformed(#[from] x509_cert::der::Error),
    #[error("the answer is about other certificates")]
    Other,
    #[error("nobody who may answer has signed the answer")]
    Signature,
    #[error("the answer has ended, or is from the future")]
    Time,
    #[error("the certificate is revoked: replace it")]
    Revoked,
    #[error("the responder does not know the certificate")]
    Unknown,
}

impl Refused {
    /// Whether asking again can help.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::NoIssuer | Self::NoResponder | Self::Unreadable)
    }
}

/// The question about the first certificate of a chain.
pub(super) fn question(chain: &[CertificateDer<'_>]) -> Result<Question, Refused> {
    let [leaf, rest @ ..] = chain else { return Err(Refused::NoIssuer) };
    let (_, certificate) = X509Certificate::from_der(leaf).map_err(|_| Refused::Unreadable)?;
    let responder = responder(&certificate).ok_or(Refused::NoResponder)?;
    let (issuer, parsed) = rest
        .iter()
        .filter_map(|der| Some((der, X509Certificate::from_der(der).ok()?.1)))
        .find(|(_, other)| other.subject().as_raw() == certificate.issuer().as_raw())
        .ok_or(Refused::NoIssuer)?;
    let hash = |bytes: &[u8]| OctetString::new(digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref());
    let id = CertId {
        hash_algorithm: AlgorithmIdentifierOwned {
            oid: SHA1,
            parameters: Some(Any::encode_from(&Null)?),
        },
        issuer_name_hash: hash(certificate.issuer().as_raw())?,
        issuer_key_hash: hash(&parsed.public_key().subject_public_key.data)?,
        serial_number: SerialNumber::new(certificate.raw_serial())?,
    };
    let list = vec![Request { req_cert: id.clone(), single_request_extensions: None }];
    let tbs_request = TbsRequest { request_list: list, ..TbsRequest::default() };
    let request = OcspRequest { tbs_request, optional_signature: None }.to_der()?;
    Ok(Question { responder, request, id, issuer: CertificateDer::from(issuer.to_vec()) })
}

/// The responder of the first certificate of a chain.
pub(super) fn responder_of(chain: &[CertificateDer<'_>]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(chain.first()?).ok()?;
    responder(&certificate)
}

/// The responder that a certificate names, if it can be reached over plain HTTP: the answer is signed.
fn responder(certificate: &X509Certificate<'_>) -> Option<String> {
    let access = certificate.extensions().iter().find_map(|extension| {
        match extension.parsed_extension() {
            ParsedExtension::AuthorityInfoAccess(access) => Some(access),
            _ => None,
        }
    })?;
    access.accessdescs.iter().find_map(|access| match &access.access_location {
        GeneralName::URI(url)
            if access.access_method.to_id_string() == RESPONDER && url.starts_with("http://") =>
        {
            Some((*url).to_owned())
        }
        _ => None,
    })
}

impl Question {
    /// Until when an answer counts, in seconds since the epoch, if it says that the certificate is good.
    pub(super) fn verify(&self, answer: &[u8], now: Duration) -> Result<u64, Refused> {
        let answer = OcspResponse::from_der(answer)?;
        if answer.response_status != OcspResponseStatus::Successful {
            return Err(Refused::Status(answer.response_status));
        }
        let bytes = answer.response_bytes.filter(|bytes| bytes.response_type == BASIC);
        let basic = BasicOcspResponse::from_der(bytes.ok_or(Refused::Other)?.response.as_bytes())?;
        let single = basic
            .tbs_response_data
            .responses
            .iter()
            .find(|single| self.is_about(&single.cert_id))
            .ok_or(Refused::Other)?;
        self.verify_signature(&basic, now)?;
        let seconds = |time: &x509_ocsp::OcspGeneralizedTime| time.0.to_unix_duration().as_secs();
        let now = now.as_secs();
        let ends = single.next_update.as_ref().map_or(now + UNSAID, seconds);
        if seconds(&single.this_update) > now + AHEAD || ends <= now {
            return Err(Refused::Time);
        }
        match single.cert_status {
            CertStatus::Good(_) => Ok(ends.min(now + MOST)),
            CertStatus::Revoked(_) => Err(Refused::Revoked),
            CertStatus::Unknown(_) => Err(Refused::Unknown),
        }
    }

    fn is_about(&self, other: &CertId) -> bool {
        let own = &self.id;
        other.hash_algorithm.oid == SHA1
            && other.issuer_name_hash == own.issuer_name_hash
            && other.issuer_key_hash == own.issuer_key_hash
            && other.serial_number == own.serial_number
    }

    /// The authority itself has signed, or somebody to whom it gave a certificate for that.
    fn verify_signature(&self, basic: &BasicOcspResponse, now: Duration) -> Result<(), Refused> {
        let message = basic.tbs_response_data.to_der()?;
        let algorithm = basic.signature_algorithm.to_der()?;
        let signature = basic.signature.raw_bytes();
        let algorithms = default_provider().signature_verification_algorithms.all;
        let signed_by = |der: &CertificateDer<'_>| {
            let Ok(signer) = EndEntityCert::try_from(der) else { return false };
            let mut meant = algorithms.iter().filter(|known| {
                // Without tag and length of the sequence around it, which is short.
                algorithm.get(2..) == Some(known.signature_alg_id().as_ref())
            });
            meant.any(|known| signer.verify_signature(*known, &message, signature).is_ok())
        };
        if signed_by(&self.issuer) {
            return Ok(());
        }
        let anchor = anchor_from_trusted_cert(&self.issuer).map_err(|_| Refused::Unreadable)?;
        let now = UnixTime::since_unix_epoch(now);
        let meant = basic.certs.iter().flatten();
        let meant = meant.filter(|one| is_meant(&basic.tbs_response_data.responder_id, one));
        for certificate in meant.take(SIGNERS) {
            let der = CertificateDer::from(certificate.to_der()?);
            let Ok(signer) = EndEntityCert::try_from(&der) else { continue };
            let usage = KeyUsage::required(MAY_ANSWER);
            let anchors = std::slice::from_ref(&anchor);
            let trusted =
                signer.verify_for_usage(algorithms, anchors, &[], now, usage, None, None).is_ok();
            if trusted && signed_by(&der) {
                return Ok(());
            }
        }
        Err(Refused::Signature)
    }
}

/// Whether an answer says that this certificate has signed it (RFC 6960 section 4.2.2.3).
fn is_meant(signer: &ResponderId, certificate: &Certificate) -> bool {
    let certificate = &certificate.tbs_certificate;
    match signer {
        ResponderId::ByName(name) => *name == certificate.subject,
        ResponderId::ByKey(hash) => {
            let key = certificate.subject_public_key_info.subject_public_key.raw_bytes();
            digest(&SHA1_FOR_LEGACY_USE_ONLY, key).as_ref() == hash.as_bytes()
        }
    }
}
