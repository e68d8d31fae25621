//! A certificate with its key and the authority that signed it, as PEM.

use super::Error;
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

/// Long, since nothing renews it but an upgrade, and an expired one with failurePolicy Fail stops all Ingresses.
const DAYS: u32 = 3650;
/// One part in so many of its life has to be left.
const LEFT: i64 = 10;
const DAY: Duration = Duration::from_secs(86_400);

/// A certificate with its key, and the authorities to believe: the first of them signed it.
pub(super) struct Pair {
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Pair {
    /// A new one, of an authority whose key is forgotten at once.
    pub(super) fn make(hosts: &[String]) -> Result<Self, Error> {
        made(hosts).map_err(|source| Error::Unmakeable { hosts: hosts.join(", "), source })
    }

    /// What is in a Secret.
    pub(super) fn of(entries: Option<&BTreeMap<String, ByteString>>) -> Option<Self> {
        let entry = |name: &str| String::from_utf8(entries?.get(name)?.0.clone()).ok();
        Some(Self { authority: entry("ca")?, certificate: entry("cert")?, key: entry("key")? })
    }

    /// Whether it can be used for these names, and for long enough.
    pub(super) fn serves(&self, hosts: &[String]) -> bool {
        let now = Timestamp::now().as_second();
        first(&self.certificate).is_some_and(|pem| {
            pem.parse_x509().is_ok_and(|certificate| {
                let (from, to) = validity(&certificate);
                let names = names(&certificate);
                (to - now) * LEFT >= to - from && hosts.iter().all(|host| names.contains(host))
            })
        })
    }

    /// Believes the authority of another one, too.
    pub(super) fn believe_also(&mut self, other: &Self) {
        if let Some(pem) = first_text(&other.authority) {
            self.authority.push_str(pem);
        }
    }
}

fn made(hosts: &[String]) -> Result<Pair, rcgen::Error> {
    let mut authority = lasting(Vec::new())?;
    authority.distinguished_name.push(DnType::CommonName, "authority of the admission webhook");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let own = KeyPair::generate()?;
    let signed = authority.self_signed(&own)?;
    let issuer = Issuer::new(authority, own);
    let mut params = lasting(hosts.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, "admission webhook");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { authority: signed.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Valid since yesterday, for clocks that are late.
fn lasting(names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let now = SystemTime::now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + DAY * DAYS).into();
    Ok(params)
}

fn first(text: &str) -> Option<Pem> {
    Pem::iter_from_buffer(text.as_bytes()).next()?.ok()
}

/// The first certificate of some, as it is written.
fn first_text(text: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----\n";
    Some(&text[..text.find(END)? + END.len()])
}

fn validity(certificate: &X509Certificate<'_>) -> (i64, i64) {
    let validity = certificate.validity();
    (validity.not_before.timestamp(), validity.not_after.timestamp())
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    };
    names.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::tz;

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn it_serves_the_names_that_it_was_made_for_and_no_others() {
        let pair = Pair::make(&hosts(&["a", "a.b.svc"])).expect("a pair");
        assert!(pair.serves(&hosts(&["a.b.svc"])));
        assert!(!pair.serves(&hosts(&["a.b.svc", "c.b.svc"])));
    }

    #[test]
    fn text_that_is_no_certificate_serves_nothing() {
        let nothing =
            Pair { authority: String::new(), certificate: "?".into(), key: String::new() };
        assert!(!nothing.serves(&[]));
    }

    #[test]
    fn near_its_end_it_serves_no_more() {
        let lasts = |from: i32, years: i16| {
            let year = tz::Offset::UTC.to_datetime(Timestamp::now()).year() + years;
            let mut params = CertificateParams::new(hosts(&["a"])).expect("a name");
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(i32::from(year), 12, 31);
            let key = KeyPair::generate().expect("a key");
            let certificate = params.self_signed(&key).expect("signed").pem();
            let pair = Pair { authority: String::new(), certificate, key: key.serialize_pem() };
            pair.serves(&hosts(&["a"]))
        };
        assert!(!lasts(2000, 1), "at most two years of 27");
        assert!(lasts(2020, 5), "five years of eleven");
        assert!(!lasts(2000, -1), "it is over");
    }

    #[test]
    fn both_authorities_are_believed_after_a_renewal_and_no_third_one() {
        let make = || Pair::make(&hosts(&["a"])).expect("a pair");
        let (oldest, mut old, mut new) = (make(), make(), make());
        old.believe_also(&oldest);
        let expected = format!("{}{}", new.authority, first_text(&old.authority).expect("PEM"));
        new.believe_also(&old);
        assert_eq!(new.authority, expected);
        assert_eq!(Pem::iter_from_buffer(new.authority.as_bytes()).count(), 2);
    }
}
