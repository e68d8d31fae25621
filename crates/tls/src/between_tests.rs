//! Certificates that lead nowhere, and how far they are followed.

use super::revocation_tests::told;
use super::tests::{Party, below, params, root, verdict, verifier};
use super::{Verdict, X509Certificate};
use rcgen::{KeyPair, PKCS_ECDSA_P521_SHA512};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::FromDer;

/// A certificate of a stranger, and authorities of two names that seem to have signed each other.
fn circle(number: usize) -> Vec<Party> {
    let (x, y) = (root("x"), root("y"));
    let mut chain = vec![below(&x, params("leaf", false))];
    for _ in 0..number {
        chain.push(below(&y, params("x", true)));
        chain.push(below(&x, params("y", true)));
    }
    chain
}

#[test]
fn names_that_lead_in_a_circle_are_not_followed_without_signatures() {
    let ours = root("ours");
    let chain = circle(20);
    let chain: Vec<&Party> = chain.iter().collect();
    let forged = Verdict::Bad("certificate signature failure");
    assert_eq!(verdict(&verifier(&[&ours], Vec::new(), 9), &chain), forged, "sent by a client");
    let mut authorities = chain[1..].to_vec();
    authorities.push(&ours);
    let in_a_secret = verifier(&authorities, Vec::new(), 9);
    assert_eq!(verdict(&in_a_secret, &chain[..1]), forged, "in a Secret");
}

#[test]
fn of_many_certificates_with_the_right_signatures_few_are_followed() {
    let mut above = root("stranger");
    let mut sent: Vec<CertificateDer<'static>> = Vec::new();
    for level in 0..6 {
        let here = below(&above, params(&format!("level {level}"), true));
        for serial in 1..=5u64 {
            let mut again = here.params.clone();
            again.serial_number = Some(serial.into());
            let signed = again.signed_by(&here.key, &above.issuer());
            sent.push(signed.expect("certificates can be made").der().clone());
        }
        above = here;
    }
    let leaf = below(&above, params("leaf", false));
    let (_, read) = X509Certificate::from_der(&leaf.der).expect("a certificate");
    let verifier = verifier(&[&root("ours")], Vec::new(), 9);
    let found = verifier.trusted.others.above(&read, &sent);
    assert_eq!((found.certificates.len(), found.is_forged), (10, false));
}

#[test]
fn of_keys_that_are_dear_few_are_tried_and_none_twice() {
    let middle = below(&root("ours"), params("middle", true));
    let leaf = below(&middle, params("leaf", false));
    let (_, read) = X509Certificate::from_der(&leaf.der).expect("a certificate");
    let verifier = verifier(&[&root("ours")], Vec::new(), 9);
    let stranger = || {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).expect("a key");
        params("middle", true).self_signed(&key).expect("a certificate").der().clone()
    };
    let found = |mut sent: Vec<CertificateDer<'static>>| {
        sent.push(middle.der.clone());
        verifier.trusted.others.above(&read, &sent).certificates.len()
    };
    assert_eq!(found((0..3).map(|_| stranger()).collect()), 1);
    assert_eq!(found((0..4).map(|_| stranger()).collect()), 0);
    assert_eq!(found(vec![stranger(); 40]), 1);
}

/// Ten authorities of one name with ten keys, all of which have signed the leaf before them: its signature is the
/// padded hash M itself, and the modulus a multiple of M - 1 that divides M * M - 1, so that it is right for every odd
/// exponent.
#[test]
fn of_keys_of_one_name_that_all_seem_to_have_signed_two_are_followed() {
    let pem = include_bytes!("keys_of_one_name.pem");
    let sent: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(pem).map(|one| one.expect("a certificate")).collect();
    let [leaf, sent @ ..] = &sent[..] else { panic!("a chain") };
    let (_, read) = X509Certificate::from_der(leaf).expect("a certificate");
    let verifier = verifier(&[&root("ours")], Vec::new(), 9);
    assert_eq!(sent.len(), 10);
    let all_signed = sent.iter().all(|one| {
        let (_, one) = X509Certificate::from_der(one).expect("a certificate");
        crate::signatures::is_issued(&read, &one)
    });
    assert!(all_signed, "or the test is none");
    assert_eq!(verifier.trusted.others.above(&read, sent).certificates.len(), 2);
}

#[test]
fn a_chain_is_found_in_any_order_among_certificates_of_others() {
    let ours = root("ours");
    let first = below(&ours, params("first", true));
    let second = below(&first, params("second", true));
    let third = below(&second, params("third", true));
    let client = below(&third, params("client", false));
    let others = circle(10);
    let mut chain = vec![&client, &first, &third];
    chain.extend(&others);
    let one_is_known = verifier(&[&second, &ours], Vec::new(), 3);
    assert_eq!(verdict(&one_is_known, &chain), Verdict::Good);
    let none_is_known = verifier(&[&ours], Vec::new(), 3);
    assert_ne!(verdict(&none_is_known, &chain), Verdict::Good);
}

#[test]
#[ignore = "a measurement: run with --nocapture"]
fn what_a_chain_of_a_stranger_costs() {
    let ours = root("ours");
    for number in [4, 20, 100] {
        let chain = circle(number);
        let chain: Vec<&Party> = chain.iter().collect();
        let what = format!("{} certificates of a stranger", chain.len());
        told(&what, || verifier(&[&ours], Vec::new(), 1), &chain);
    }
}
