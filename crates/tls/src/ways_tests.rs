//! Roots of one name, and how many of their keys are tried.

use super::tests::{Party, below, list_of, params, verdict, verifier};
use super::{Verdict, Verifier};
use crate::signatures::counted;
use crate::version_1::of_version_1;
use crate::ways::BY_WEBPKI;
use rcgen::{KeyPair, PKCS_ECDSA_P521_SHA512};
use rustls::pki_types::UnixTime;

/// A root with a key that is dear.
fn dear_root() -> Party {
    let (params, key) = (params("root", true), KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512));
    let key = key.expect("a key");
    let der = params.self_signed(&key).expect("a certificate").der().clone();
    Party { params, key, der }
}

/// Trusts these many others, then one.
fn behind(others: &[Party], last: &Party) -> Verifier {
    let all: Vec<&Party> = others.iter().chain([last]).collect();
    verifier(&all, Vec::new(), 1)
}

#[test]
fn of_roots_of_one_name_with_keys_that_are_dear_few_are_tried() {
    let others: Vec<Party> = (0..40).map(|_| dear_root()).collect();
    let (ours, stranger) = (dear_root(), dear_root());
    let (known, unknown) = (below(&ours, params("a", false)), below(&stranger, params("b", false)));
    let before = BY_WEBPKI.get();
    let forged = Verdict::Bad("certificate signature failure");
    assert_eq!(verdict(&behind(&others, &ours), &[&unknown]), forged);
    assert_eq!(BY_WEBPKI.get() - before, 8);
    assert_eq!(verdict(&behind(&others[..7], &ours), &[&known]), Verdict::Good);
    assert_eq!(verdict(&behind(&others[..8], &ours), &[&known]), forged);
}

#[test]
fn so_it_is_for_a_client_s_certificate_of_version_1() {
    let others: Vec<Party> = (0..40).map(|_| dear_root()).collect();
    let (ours, stranger) = (dear_root(), dear_root());
    let of = |root: &Party| [of_version_1(&below(root, params("a", false)).der, &root.key)];
    let verdict =
        |others: &[Party], root: &Party| behind(others, &ours).verdict(&of(root), UnixTime::now());
    let before = counted();
    let unknown = Verdict::Unknown("unable to verify the first certificate");
    assert_eq!(verdict(&others, &stranger), unknown);
    assert_eq!(counted() - before, 8);
    assert_eq!(verdict(&others[..7], &ours), Verdict::Good);
    assert_eq!(verdict(&others[..8], &ours), unknown);
}

#[test]
fn so_it_is_with_lists_whose_issuer_has_such_a_key() {
    let (ours, forged) = (dear_root(), dear_root());
    let client = below(&ours, params("client", false));
    let list = |issuer: &Party, year: i32| {
        let day = |year| rcgen::date_time_ymd(year, 1, 1);
        list_of(issuer, std::iter::empty(), day(year), day(2124))
    };
    let behind = |number: i32| {
        let others = (0..number).map(|at| list(&forged, 1971 + at));
        verifier(&[&ours], [list(&ours, 1970)].into_iter().chain(others).collect(), 1)
    };
    let before = counted();
    assert_eq!(verdict(&behind(30), &[&client]), Verdict::Bad("unable to get certificate CRL"));
    assert_eq!(counted() - before, 8);
    assert_eq!(verdict(&behind(7), &[&client]), Verdict::Good);
}
