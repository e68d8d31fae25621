//! What revocation lists cost those who look into them, and that each counts however many there are.

use super::tests::{Party, alone, below, list, list_of, params, root, verdict, verifier};
use super::{Budget, RevocationList, Verdict, Verifier, X509Certificate, revocations};
use crate::signatures::counted;
use rcgen::{
    CertificateRevocationListParams, CrlDistributionPoint, CrlIssuingDistributionPoint, CrlScope,
    KeyIdMethod, KeyPair, PKCS_ECDSA_P384_SHA384, SerialNumber,
};
use rustls::pki_types::UnixTime;
use std::sync::Arc;
use std::time::Instant;
use x509_parser::prelude::FromDer;

/// Certificates with one name and one key, each of its own number.
fn roots_of_one_key(number: u64) -> Vec<Party> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("keys can be made");
    let made = (1..=number).map(|serial| {
        let mut params = params("one", true);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::try_from(key.serialized_der()).expect("it was one");
        let der = params.self_signed(&key).expect("certificates can be made").der().clone();
        Party { params, key, der }
    });
    made.collect()
}

/// A list of this many numbers.
fn long_list(issuer: &Party, serials: u64) -> Vec<u8> {
    let (starts, ends) = (rcgen::date_time_ymd(2024, 1, 1), rcgen::date_time_ymd(2124, 1, 1));
    let serial = |number: u64| SerialNumber::from((u64::MAX / 2 - number).to_be_bytes().to_vec());
    list_of(issuer, (0..serials).map(serial), starts, ends)
}

/// A verifier, the cost of it, and that of each verdict about a chain.
pub(super) fn told(what: &str, make: impl Fn() -> Verifier, chain: &[&Party]) {
    let began = Instant::now();
    let verifier = make();
    println!("{what}: made in {:?}", began.elapsed());
    for turn in 1..=2 {
        let (began, before) = (Instant::now(), counted());
        let verdict = verdict(&verifier, chain);
        let signatures = counted() - before;
        println!(
            "{what}: verdict {turn} in {:?}, {signatures} signatures, {verdict:?}",
            began.elapsed()
        );
    }
}

/// A list of an issuer since the first day of a year.
fn list_since(issuer: &Party, year: i32, revoked: &[&Party]) -> Vec<u8> {
    let serial = |party: &&Party| party.params.serial_number.clone().expect("each has one");
    let day = |year| rcgen::date_time_ymd(year, 1, 1);
    list_of(issuer, revoked.iter().map(serial), day(year), day(2124))
}

#[test]
fn a_list_is_looked_at_once_however_many_clients_come() {
    let ours = root("ours");
    let (alice, robert) =
        (below(&ours, params("alice", false)), below(&ours, params("robert", false)));
    let verifier = verifier(&[&ours], vec![list_since(&ours, 2024, &[&robert])], 1);
    let before = counted();
    for _ in 0..3 {
        assert_eq!(verdict(&verifier, &[&alice]), Verdict::Good);
        assert_eq!(verdict(&verifier, &[&robert]), Verdict::Bad("certificate revoked"));
    }
    assert_eq!(counted() - before, 1, "the list has one signature");
}

#[test]
fn roots_of_one_name_and_key_and_copies_of_a_list_cost_as_one_does() {
    let roots = roots_of_one_key(30);
    let client = below(&roots[0], params("client", false));
    let ended = list(&roots[0], &[], rcgen::date_time_ymd(2024, 2, 1));
    let all: Vec<&Party> = roots.iter().collect();
    let verifier = verifier(&all, vec![ended; 100], 1);
    assert_eq!(verifier.trusted.roots.anchors().len(), 1);
    let before = counted();
    assert_eq!(verdict(&verifier, &[&client]), Verdict::Bad("CRL has expired"));
    assert_eq!(counted() - before, 1);
}

#[test]
fn lists_by_others_of_the_same_name_count_for_nothing() {
    let (ours, forged) = (root("ours"), root("ours"));
    let (alice, robert) =
        (below(&ours, params("alice", false)), below(&ours, params("robert", false)));
    let mut lists: Vec<_> = (2020..2025).map(|year| list_since(&forged, year, &[&alice])).collect();
    lists.push(list_since(&ours, 2022, &[&robert]));
    lists.push(list_since(&ours, 2021, &[&alice]));
    let verifier = verifier(&[&ours], lists, 1);
    assert_eq!(verdict(&verifier, &[&alice]), Verdict::Good, "the newest that ours has signed");
    assert_eq!(verdict(&verifier, &[&robert]), Verdict::Bad("certificate revoked"));
}

#[test]
fn who_has_very_many_lists_and_keys_of_one_name_is_refused_and_soon() {
    let forged = root("root");
    let between = alone(params("between", true));
    let roots: Vec<Party> = (0..8).map(|_| root("root")).collect();
    let signed = roots.iter().map(|root| {
        let params = params("between", true);
        let key = KeyPair::try_from(between.key.serialized_der()).expect("it was one");
        let der = params.signed_by(&key, &root.issuer()).expect("certificates can be made");
        Party { params, key, der: der.der().clone() }
    });
    let signed: Vec<Party> = signed.collect();
    let client = below(&between, params("client", false));
    let authorities: Vec<&Party> = roots.iter().chain(&signed).collect();
    let of = |forgeries: i32| {
        let mut lists = vec![list_since(&between, 2024, &[])];
        lists.extend(roots.iter().map(|root| list_since(root, 1970, &[])));
        lists.extend((0..forgeries).map(|year| list_since(&forged, 1971 + year, &[])));
        verifier(&authorities, lists, 1)
    };
    assert_eq!(verdict(&of(2), &[&client]), Verdict::Good);
    let very_many = of(40);
    let none = Verdict::Bad("unable to get certificate CRL");
    let before = counted();
    assert_eq!(verdict(&very_many, &[&client]), none);
    let first = counted() - before;
    assert!(first <= signed.len() + 32, "{first} signatures");
    assert_eq!(verdict(&very_many, &[&client]), none, "what is known now changes nothing");
    assert_eq!(counted() - before - first, signed.len(), "those of what is between");
}

#[test]
fn a_root_that_was_renewed_with_its_key_counts_beside_the_old_one() {
    let new = root("root");
    let mut ended = params("root", true);
    ended.not_after = rcgen::date_time_ymd(2024, 1, 1);
    let key = KeyPair::try_from(new.key.serialized_der()).expect("it was one");
    let der = ended.self_signed(&key).expect("certificates can be made").der().clone();
    let old = Party { params: ended, key, der };
    let client = below(&new, params("client", false));
    for authorities in [[&old, &new], [&new, &old]] {
        assert_eq!(verdict(&verifier(&authorities, Vec::new(), 1), &[&client]), Verdict::Good);
    }
    let ended = Verdict::Bad("certificate has expired");
    assert_eq!(verdict(&verifier(&[&old], Vec::new(), 1), &[&client]), ended);
}

#[test]
fn numbers_of_every_length_are_found_and_others_are_not() {
    let ours = root("ours");
    let numbers: Vec<u64> = vec![1, 2, 127, 128, 255, 256, 65_535, 65_536, u64::MAX - 1, u64::MAX];
    let revoked = numbers.iter().step_by(2).map(|number| SerialNumber::from(*number));
    let day = |year| rcgen::date_time_ymd(year, 1, 1);
    let list = list_of(&ours, revoked.rev(), day(2024), day(2124));
    let verifier = verifier(&[&ours], vec![list], 1);
    for (index, number) in numbers.iter().enumerate() {
        let mut params = params("client", false);
        params.serial_number = Some(SerialNumber::from(*number));
        let is_revoked =
            verdict(&verifier, &[&below(&ours, params)]) == Verdict::Bad("certificate revoked");
        assert_eq!(is_revoked, index % 2 == 0, "{number}");
    }
}

#[test]
fn a_list_counts_for_the_kind_and_the_place_that_it_names() {
    let ours = root("ours");
    let at = |address: &str| CrlDistributionPoint { uris: vec![address.to_owned()] };
    let limited = |scope: Option<CrlScope>| {
        let params = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2024, 1, 1),
            next_update: rcgen::date_time_ymd(2124, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: Some(CrlIssuingDistributionPoint {
                distribution_point: at("http://lists.test/a"),
                scope,
            }),
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&ours.issuer()).expect("lists can be made").der().to_vec()
    };
    let client = |address: Option<&str>| {
        let mut params = params("client", false);
        params.crl_distribution_points = address.map(at).into_iter().collect();
        below(&ours, params)
    };
    let (here, elsewhere, nowhere) =
        (client(Some("http://lists.test/a")), client(Some("http://lists.test/b")), client(None));
    let none = Verdict::Bad("unable to get certificate CRL");
    let users = verifier(&[&ours], vec![limited(Some(CrlScope::UserCertsOnly))], 1);
    let all = verifier(&[&ours], vec![limited(None)], 1);
    for verifier in [users, all] {
        assert_eq!(verdict(&verifier, &[&here]), Verdict::Good);
        assert_eq!(verdict(&verifier, &[&elsewhere]), none);
        assert_eq!(verdict(&verifier, &[&nowhere]), none);
    }
    let authorities = verifier(&[&ours], vec![limited(Some(CrlScope::CaCertsOnly))], 1);
    assert_eq!(verdict(&authorities, &[&here]), none);
}

/// A list for so many places, and a certificate that names these.
fn of_places(ours: &Party, list: usize, certificate: Vec<String>) -> (RevocationList, Party) {
    let distribution_point =
        CrlDistributionPoint { uris: (0..list).map(|number| format!("l{number}")).collect() };
    let list = CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2024, 1, 1),
        next_update: rcgen::date_time_ymd(2124, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: Some(CrlIssuingDistributionPoint {
            distribution_point,
            scope: None,
        }),
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&ours.issuer()).expect("lists can be made");
    let list = RevocationList::new(&Arc::from(list.der().as_ref())).expect("it can be read");
    let mut params = params("client", false);
    params.crl_distribution_points = vec![CrlDistributionPoint { uris: certificate }];
    (list, below(ours, params))
}

fn checked(list: &RevocationList, client: &Party, issuer: &Party) -> Result<(), &'static str> {
    let (_, client) = X509Certificate::from_der(&client.der).expect("a certificate");
    let (_, issuer) = X509Certificate::from_der(&issuer.der).expect("a certificate");
    let now = i64::try_from(UnixTime::now().as_secs()).expect("it is not that late");
    revocations::check(std::slice::from_ref(list), &client, &issuer, now, &Budget::default())
}

#[test]
fn very_many_places_of_a_list_are_not_compared_with_very_many_of_a_certificate() {
    let ours = root("ours");
    let elsewhere = (0..100_000).map(|number| format!("c{number}")).collect();
    let (list, client) = of_places(&ours, 100_000, elsewhere);
    assert_eq!(checked(&list, &client, &ours), Err("unable to get certificate CRL"));
}

#[test]
fn so_many_places_of_a_certificate_count_and_no_more() {
    let ours = root("ours");
    let last_of = |number: usize| {
        let mut places: Vec<_> = (1..number).map(|number| format!("c{number}")).collect();
        places.push("l7".to_owned());
        places
    };
    let (list, client) = of_places(&ours, 10, last_of(32));
    assert_eq!(checked(&list, &client, &ours), Ok(()));
    let (list, client) = of_places(&ours, 10, last_of(33));
    assert_eq!(checked(&list, &client, &ours), Err("unable to get certificate CRL"));
}

#[test]
fn certificates_without_a_list_are_a_bounded_number_for_a_verdict() {
    let ours = root("ours");
    let (_, read) = X509Certificate::from_der(&ours.der).expect("a certificate");
    let budget = Budget::default();
    for _ in 0..32 {
        assert!(budget.is_left().is_ok());
        assert!(revocations::check(&[], &read, &read, 0, &budget).is_err());
    }
    assert!(budget.is_left().is_err());
}

#[test]
#[ignore = "a measurement: run with --nocapture"]
fn what_a_verdict_costs() {
    let roots = roots_of_one_key(30);
    let all: Vec<&Party> = roots.iter().collect();
    let client = below(&roots[0], params("client", false));
    let ended = list(&roots[0], &[], rcgen::date_time_ymd(2024, 2, 1));
    let lists = vec![ended; 2300];
    told("30 roots, 2,300 lists", || verifier(&all, lists.clone(), 1), &[&client]);
    let ours = root("ours");
    let client = below(&ours, params("client", false));
    let long = long_list(&ours, 20_000);
    println!("a list of {} bytes", long.len());
    told("20,000 serials", || verifier(&[&ours], vec![long.clone()], 1), &[&client]);
}
