//! Revocation lists as OpenSSL reads them: of version 1, without number, without an end.

use super::signatures::is_signed;
use std::collections::HashSet;
use x509_parser::extensions::{DistributionPointName, GeneralName, IssuingDistributionPoint};
use x509_parser::oid_registry::OID_X509_EXT_DELTA_CRL_INDICATOR;
use x509_parser::prelude::{
    CertificateRevocationList, FromDer, ParsedExtension, X509Certificate, X509Error,
};

const NONE: &str = "unable to get certificate CRL";

/// A revocation list, ready for use.
#[derive(Debug)]
pub(super) struct RevocationList {
    der: Box<[u8]>,
    issuer: Box<[u8]>,
    starts: i64,
    ends: Option<i64>,
    revoked: HashSet<Box<[u8]>>,
}

impl RevocationList {
    /// Takes a list apart.
    pub(super) fn new(der: &[u8]) -> Result<Self, X509Error> {
        let (_, list) = CertificateRevocationList::from_der(der).map_err(|error| match error {
            x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => error,
            x509_parser::nom::Err::Incomplete(_) => X509Error::Generic,
        })?;
        let readable = list.extensions().iter().all(|extension| {
            !(extension.critical && extension.parsed_extension().unsupported())
                && extension.oid != OID_X509_EXT_DELTA_CRL_INDICATOR
        });
        if !readable {
            return Err(X509Error::InvalidExtensions);
        }
        Ok(Self {
            issuer: list.issuer().as_raw().into(),
            starts: list.last_update().timestamp(),
            ends: list.next_update().map(|end| end.timestamp()),
            revoked: list.iter_revoked_certificates().map(|one| one.raw_serial().into()).collect(),
            der: der.into(),
        })
    }

    /// Whether the list speaks of this certificate, by this issuer.
    fn is_for(&self, certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
        if *self.issuer != *certificate.issuer().as_raw() {
            return false;
        }
        let Ok((_, list)) = CertificateRevocationList::from_der(&self.der) else { return false };
        let scope = list.extensions().iter().find_map(|one| match one.parsed_extension() {
            ParsedExtension::IssuingDistributionPoint(scope) => Some(scope),
            _ => None,
        });
        scope.is_none_or(|scope| covers(scope, certificate))
            && is_signed(
                issuer.public_key(),
                &list.signature_algorithm,
                list.tbs_cert_list.as_ref(),
                &list.signature_value.data,
            )
    }
}

/// Whether a list of this scope speaks of a certificate (RFC 5280 section 6.3.3).
fn covers(scope: &IssuingDistributionPoint<'_>, certificate: &X509Certificate<'_>) -> bool {
    let is_partial = scope.indirect_crl
        || scope.only_contains_attribute_certs
        || scope.only_some_reasons.is_some();
    let other_kind = if certificate.is_ca() {
        scope.only_contains_user_certs
    } else {
        scope.only_contains_ca_certs
    };
    if is_partial || other_kind {
        return false;
    }
    let Some(place) = &scope.distribution_point else { return true };
    let DistributionPointName::FullName(places) = place else { return false };
    let points = certificate.extensions().iter().filter_map(|one| match one.parsed_extension() {
        ParsedExtension::CRLDistributionPoints(points) => Some(points.iter()),
        _ => None,
    });
    points.flatten().filter_map(|point| point.distribution_point.as_ref()).any(|name| match name {
        DistributionPointName::FullName(names) => {
            names.iter().any(|name| matches!(name, GeneralName::URI(_)) && places.contains(name))
        }
        DistributionPointName::NameRelativeToCRLIssuer(_) => false,
    })
}

/// Whether a certificate is revoked by these lists, at this second; the newest list counts. The error is OpenSSL's
/// reason.
pub(super) fn check(
    lists: &[RevocationList],
    certificate: &X509Certificate<'_>,
    issuer: &X509Certificate<'_>,
    now: i64,
) -> Result<(), &'static str> {
    let ours = lists.iter().filter(|list| list.is_for(certificate, issuer));
    let is_current = |list: &RevocationList| list.ends.is_none_or(|end| now <= end);
    let list = ours.max_by_key(|list| (is_current(list), list.starts)).ok_or(NONE)?;
    let may_sign = issuer.key_usage().ok().flatten();
    match () {
        () if may_sign.is_some_and(|usage| !usage.value.crl_sign()) => {
            Err("key usage does not include CRL signing")
        }
        () if now < list.starts => Err("CRL is not yet valid"),
        () if !is_current(list) => Err("CRL has expired"),
        () if list.revoked.contains(certificate.raw_serial()) => Err("certificate revoked"),
        () => Ok(()),
    }
}
