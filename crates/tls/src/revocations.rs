//! Revocation lists as OpenSSL reads them: of version 1, without number, without an end.

use super::signatures::is_signed;
use super::ways::Effort;
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use parking_lot::Mutex;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use x509_parser::extensions::{DistributionPointName, GeneralName, IssuingDistributionPoint};
use x509_parser::nom::Offset;
use x509_parser::oid_registry::OID_X509_EXT_DELTA_CRL_INDICATOR;
use x509_parser::prelude::{
    CertificateRevocationList, FromDer, ParsedExtension, X509Certificate, X509Error,
};

const NONE: &str = "unable to get certificate CRL";
/// Lists whose signature one verdict asks for at most, known or not, and certificates without any: who has many lists
/// and many keys of one name makes their product of work otherwise. A list of the newest that is signed is enough for
/// each certificate.
const ASKED: usize = 32;
/// Addresses at most at which a certificate may say that its list is: they are looked for in all lists.
const PLACES: usize = 32;
/// Keys at most of which a list knows whether one of them has signed it. The first one to come goes first.
const KEYS: usize = 32;

/// What tells keys and addresses apart.
type Digest = [u8; SHA256_OUTPUT_LEN];

/// How often one verdict may still ask who has signed a list, and what that may cost. The same answer comes again
/// however much was known before, so what was asked counts and not what was computed.
#[derive(Debug)]
pub(super) struct Budget {
    asked: Cell<usize>,
    effort: Effort,
}

impl Default for Budget {
    fn default() -> Self {
        Self { asked: Cell::new(ASKED), effort: Effort::to_roots() }
    }
}

impl Budget {
    /// An error once all of it is used up, which is the end of a search.
    pub(super) fn is_left(&self) -> Result<(), &'static str> {
        if self.asked.get() == 0 || !self.effort.is_left() { Err(NONE) } else { Ok(()) }
    }

    /// Takes a question whether this issuer has signed a list.
    fn take(&self, issuer: &X509Certificate<'_>) -> Result<(), &'static str> {
        self.is_left()?;
        self.asked.set(self.asked.get() - 1);
        if self.effort.takes(issuer) { Ok(()) } else { Err(NONE) }
    }
}

/// A revocation list, ready for use: it is read once, and its signature looked at once for each key.
#[derive(Debug)]
pub(super) struct RevocationList {
    issuer: Box<[u8]>,
    starts: i64,
    ends: Option<i64>,
    scope: Option<Scope>,
    revoked: Serials,
    /// The list, of which `signed` is what its issuer has signed.
    der: Arc<[u8]>,
    signed: Range<usize>,
    algorithm: Box<[u8]>,
    signature: Box<[u8]>,
    /// Whether a key has signed it, of the keys that were asked for.
    answers: Mutex<VecDeque<(Digest, bool)>>,
}

impl RevocationList {
    /// Takes a list apart.
    pub(super) fn new(der: &Arc<[u8]>) -> Result<Self, X509Error> {
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
        let scope = list.extensions().iter().find_map(|one| match one.parsed_extension() {
            ParsedExtension::IssuingDistributionPoint(scope) => Some(Scope::new(scope)),
            _ => None,
        });
        let signed = list.tbs_cert_list.as_ref();
        let at = der.as_ref().offset(signed);
        Ok(Self {
            issuer: list.issuer().as_raw().into(),
            starts: list.last_update().timestamp(),
            ends: list.next_update().map(|end| end.timestamp()),
            scope,
            revoked: Serials::new(list.iter_revoked_certificates().map(|one| one.raw_serial())),
            der: Arc::clone(der),
            signed: at..at + signed.len(),
            algorithm: list.signature_algorithm.algorithm.as_bytes().into(),
            signature: (*list.signature_value.data).into(),
            answers: Mutex::default(),
        })
    }

    /// Whether the list speaks of this certificate, with a list at these places, if the issuer of the certificate has
    /// signed it.
    fn speaks_of(&self, certificate: &X509Certificate<'_>, places: &[Digest]) -> bool {
        *self.issuer == *certificate.issuer().as_raw()
            && self.scope.as_ref().is_none_or(|scope| scope.covers(certificate, places))
    }

    fn is_current(&self, now: i64) -> bool {
        self.ends.is_none_or(|end| now <= end)
    }

    /// Whether this issuer has signed it; `key` is the digest of its key.
    fn is_signed_by(&self, issuer: &X509Certificate<'_>, key: &Digest) -> bool {
        let answers = || self.answers.lock();
        if let Some((_, known)) = answers().iter().find(|(known, _)| known == key) {
            return *known;
        }
        let signed = &self.der[self.signed.clone()];
        let answer = is_signed(issuer.public_key(), &self.algorithm, signed, &self.signature);
        let mut answers = answers();
        if answers.iter().all(|(known, _)| known != key) {
            if answers.len() == KEYS {
                answers.pop_front();
            }
            answers.push_back((*key, answer));
        }
        answer
    }
}

/// What certificates a list is about (RFC 5280 section 6.3.3).
#[derive(Debug)]
struct Scope {
    /// It is of other kinds than those that count here: indirect, of some reasons, of certificates of attributes, or
    /// at a place that is no full name.
    is_partial: bool,
    only_users: bool,
    only_authorities: bool,
    /// The addresses of which a certificate must name one.
    places: Option<HashSet<Digest>>,
}

impl Scope {
    fn new(scope: &IssuingDistributionPoint<'_>) -> Self {
        let (is_known, places) = match &scope.distribution_point {
            None => (true, None),
            Some(DistributionPointName::FullName(names)) => {
                (true, Some(addresses(names).collect()))
            }
            Some(DistributionPointName::NameRelativeToCRLIssuer(_)) => (false, None),
        };
        Self {
            is_partial: scope.indirect_crl
                || scope.only_contains_attribute_certs
                || scope.only_some_reasons.is_some()
                || !is_known,
            only_users: scope.only_contains_user_certs,
            only_authorities: scope.only_contains_ca_certs,
            places,
        }
    }

    fn covers(&self, certificate: &X509Certificate<'_>, places: &[Digest]) -> bool {
        let other_kind = if certificate.is_ca() { self.only_users } else { self.only_authorities };
        if self.is_partial || other_kind {
            return false;
        }
        self.places.as_ref().is_none_or(|ours| places.iter().any(|place| ours.contains(place)))
    }
}

/// Where a certificate says that its list is.
fn places_of(certificate: &X509Certificate<'_>) -> Vec<Digest> {
    let points = certificate.extensions().iter().filter_map(|one| match one.parsed_extension() {
        ParsedExtension::CRLDistributionPoints(points) => Some(points.iter()),
        _ => None,
    });
    let names = points.flatten().filter_map(|point| match &point.distribution_point {
        Some(DistributionPointName::FullName(names)) => Some(addresses(names)),
        _ => None,
    });
    names.flatten().take(PLACES).collect()
}

fn addresses(names: &[GeneralName<'_>]) -> impl Iterator<Item = Digest> {
    names.iter().filter_map(|name| match name {
        GeneralName::URI(address) => Some(digest_of(address.as_bytes())),
        _ => None,
    })
}

fn digest_of(bytes: &[u8]) -> Digest {
    let mut found = Digest::default();
    found.copy_from_slice(digest(&SHA256, bytes).as_ref());
    found
}

/// The numbers of revoked certificates, in their order and one behind another: fewer bytes than the list has.
#[derive(Debug)]
struct Serials {
    bytes: Box<[u8]>,
    /// Where each ends.
    ends: Box<[usize]>,
}

impl Serials {
    fn new<'a>(serials: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut sorted: Vec<&[u8]> = serials.collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut end = 0;
        let ends = sorted.iter().map(|serial| {
            end += serial.len();
            end
        });
        let ends = ends.collect();
        Self { bytes: sorted.concat().into(), ends }
    }

    fn at(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    fn contains(&self, serial: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.at(middle).cmp(serial) {
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        false
    }
}

/// Whether a certificate is revoked by these lists, at this second; the newest list counts. The error is OpenSSL's
/// reason; that there is no list, too, where the budget is used up.
pub(super) fn check(
    lists: &[RevocationList],
    certificate: &X509Certificate<'_>,
    issuer: &X509Certificate<'_>,
    now: i64,
    budget: &Budget,
) -> Result<(), &'static str> {
    let places = places_of(certificate);
    let mut ours: Vec<_> =
        lists.iter().filter(|list| list.speaks_of(certificate, &places)).collect();
    if ours.is_empty() {
        // So are the ways that end here bounded.
        budget.take(issuer)?;
    }
    // Of those that begin in the same second, the last one counts.
    ours.reverse();
    ours.sort_by_key(|list| Reverse((list.is_current(now), list.starts)));
    let list = signed(&ours, issuer, budget)?;
    let may_sign = issuer.key_usage().ok().flatten();
    match () {
        () if may_sign.is_some_and(|usage| !usage.value.crl_sign()) => {
            Err("key usage does not include CRL signing")
        }
        () if now < list.starts => Err("CRL is not yet valid"),
        () if !list.is_current(now) => Err("CRL has expired"),
        () if list.revoked.contains(certificate.raw_serial()) => Err("certificate revoked"),
        () => Ok(()),
    }
}

/// The first list that this issuer has signed.
fn signed<'a>(
    lists: &[&'a RevocationList],
    issuer: &X509Certificate<'_>,
    budget: &Budget,
) -> Result<&'a RevocationList, &'static str> {
    let key = digest_of(issuer.public_key().raw);
    for list in lists {
        budget.take(issuer)?;
        if list.is_signed_by(issuer, &key) {
            return Ok(list);
        }
    }
    Err(NONE)
}
