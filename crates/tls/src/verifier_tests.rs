//! Verdicts about chains of all kinds.

use super::{Verdict, Verifier, Verifiers};
use model::policy::{ClientDemand, ClientErrorPage, ClientVerification};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Party {
    pub(super) params: CertificateParams,
    pub(super) key: KeyPair,
    pub(super) der: CertificateDer<'static>,
}

impl Party {
    pub(super) fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }
}

pub(super) fn params(name: &str, authority: bool) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(name.len() as u64));
    if authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    }
    params
}

pub(super) fn root(name: &str) -> Party {
    alone(params(name, true))
}

pub(super) fn alone(params: CertificateParams) -> Party {
    let key = KeyPair::generate().expect("keys can be made");
    let der = params.self_signed(&key).expect("certificates can be made").der().clone();
    Party { params, key, der }
}

pub(super) fn below(issuer: &Party, params: CertificateParams) -> Party {
    let key = KeyPair::generate().expect("keys can be made");
    let certificate = params.signed_by(&key, &issuer.issuer()).expect("certificates can be made");
    Party { params, key, der: certificate.der().clone() }
}

pub(super) fn verifier(authorities: &[&Party], lists: Vec<Vec<u8>>, depth: u32) -> Verifier {
    Verifier::new(Arc::new(ClientVerification {
        secret: "demo/ca".to_owned(),
        authorities: authorities.iter().map(|party| Arc::from(party.der.as_ref())).collect(),
        revocations: lists.into_iter().map(Arc::from).collect(),
        demand: ClientDemand::Required,
        depth,
        subject: None,
        error_page: ClientErrorPage::Plain,
        pass_certificate: false,
    }))
}

pub(super) fn verdict(verifier: &Verifier, chain: &[&Party]) -> Verdict {
    let chain: Vec<_> = chain.iter().map(|party| party.der.clone()).collect();
    verifier.verdict(&chain, UnixTime::now())
}

pub(super) fn list(issuer: &Party, revoked: &[&Party], ends: time::OffsetDateTime) -> Vec<u8> {
    let serial = |party: &&Party| party.params.serial_number.clone().expect("each has one");
    list_of(issuer, revoked.iter().map(serial), rcgen::date_time_ymd(2024, 1, 1), ends)
}

/// A list of these numbers, from one time to another.
pub(super) fn list_of(
    issuer: &Party,
    revoked: impl Iterator<Item = SerialNumber>,
    starts: time::OffsetDateTime,
    ends: time::OffsetDateTime,
) -> Vec<u8> {
    let revoked = revoked.map(|serial_number| RevokedCertParams {
        serial_number,
        revocation_time: rcgen::date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    });
    let params = CertificateRevocationListParams {
        this_update: starts,
        next_update: ends,
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(&issuer.issuer()).expect("lists can be made").der().to_vec()
}

#[test]
fn what_descends_from_an_authority_is_good_and_nothing_else() {
    let (ours, theirs) = (root("ours"), root("theirs"));
    let (alice, mallory) =
        (below(&ours, params("alice", false)), below(&theirs, params("mallory", false)));
    let verifier = verifier(&[&ours], Vec::new(), 1);
    assert_eq!(verdict(&verifier, &[&alice]), Verdict::Good);
    let first = Verdict::Unknown("unable to verify the first certificate");
    assert_eq!(verdict(&verifier, &[&mallory]), first);
    let sent = Verdict::Unknown("self-signed certificate in certificate chain");
    assert_eq!(verdict(&verifier, &[&mallory, &theirs]), sent);
    let itself = Verdict::Unknown("self-signed certificate");
    assert_eq!(verdict(&verifier, &[&alone(params("eve", false))]), itself);
    assert_eq!(verdict(&verifier, &[&theirs]), itself);
}

#[test]
fn names_of_authorities_that_are_a_burden_are_not_told_and_still_count() {
    let (short, long) = (root("short"), root(&"long".repeat(9000)));
    assert_eq!(verifier(&[&short], Vec::new(), 1).subjects().len(), 1);
    let both = verifier(&[&short, &long], Vec::new(), 1);
    assert!(both.subjects().is_empty());
    let client = below(&short, params("client", false));
    assert_eq!(verdict(&both, &[&client]), Verdict::Good);
}

#[test]
fn a_forged_authority_of_the_same_name_is_not_believed() {
    let (ours, forged) = (root("ours"), root("ours"));
    let eve = below(&forged, params("eve", false));
    let verifier = verifier(&[&ours], Vec::new(), 1);
    assert_ne!(verdict(&verifier, &[&eve]), Verdict::Good);
    assert_ne!(verdict(&verifier, &[&eve, &forged]), Verdict::Good);
}

#[test]
fn intermediates_count_up_to_the_depth_wherever_they_come_from() {
    let root = root("root");
    let first = below(&root, params("first", true));
    let second = below(&first, params("second", true));
    let (near, far) = (below(&first, params("near", false)), below(&second, params("far", false)));
    let one = verifier(&[&root], Vec::new(), 1);
    assert_eq!(verdict(&one, &[&near, &first]), Verdict::Good);
    let long = Verdict::Bad("certificate chain too long");
    assert_eq!(verdict(&one, &[&far, &second, &first]), long);
    assert_eq!(verdict(&verifier(&[&root, &first, &second], Vec::new(), 1), &[&far]), long);
    let two = verifier(&[&root, &first, &second], Vec::new(), 2);
    assert_eq!(verdict(&two, &[&far]), Verdict::Good);
    assert_ne!(verdict(&verifier(&[&first], Vec::new(), 9), &[&near]), Verdict::Good);
}

#[test]
fn what_is_revoked_or_not_covered_by_a_list_is_bad() {
    let ours = root("ours");
    let later = rcgen::date_time_ymd(2124, 1, 1);
    let (alice, robert) =
        (below(&ours, params("alice", false)), below(&ours, params("robert", false)));
    let lists = vec![list(&ours, &[&robert], later)];
    let with_list = verifier(&[&ours], lists.clone(), 1);
    assert_eq!(verdict(&with_list, &[&alice]), Verdict::Good);
    assert_eq!(verdict(&with_list, &[&robert]), Verdict::Bad("certificate revoked"));
    let other = root("other");
    let stranger = below(&other, params("stranger", false));
    let without = verifier(&[&ours, &other], lists, 1);
    assert_eq!(verdict(&without, &[&stranger]), Verdict::Bad("unable to get certificate CRL"));
    let ended = vec![list(&ours, &[], rcgen::date_time_ymd(2024, 2, 1))];
    let ended = verifier(&[&ours], ended, 1);
    assert_eq!(verdict(&ended, &[&alice]), Verdict::Bad("CRL has expired"));
    let broken = verifier(&[&ours], vec![b"no list".to_vec()], 1);
    assert_eq!(verdict(&broken, &[&alice]), Verdict::Bad("unable to get certificate CRL"));
}

#[test]
fn time_and_purpose_of_a_certificate_count() {
    let ours = root("ours");
    let verifier_of_ours = verifier(&[&ours], Vec::new(), 1);
    let mut old = params("old", false);
    old.not_after = rcgen::date_time_ymd(2024, 1, 1);
    let old = below(&ours, old);
    assert_eq!(verdict(&verifier_of_ours, &[&old]), Verdict::Bad("certificate has expired"));
    let mut server = params("server", false);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server = below(&ours, server);
    assert_eq!(
        verdict(&verifier_of_ours, &[&server]),
        Verdict::Bad("unsuitable certificate purpose")
    );
    let early = UnixTime::since_unix_epoch(Duration::from_secs(1));
    let pinned = alone(params("pinned", false));
    let itself = verifier(&[&pinned], Vec::new(), 1);
    assert_eq!(verdict(&itself, &[&pinned]), Verdict::Good);
    let mut ended = params("pinned", false);
    ended.not_before = rcgen::date_time_ymd(2023, 1, 1);
    let ended = alone(ended);
    let itself = verifier(&[&ended], Vec::new(), 1);
    let at_first = itself.verdict(std::slice::from_ref(&ended.der), early);
    assert_eq!(at_first, Verdict::Bad("certificate is not yet valid"));
}

#[test]
fn hosts_share_what_is_made_of_one_secret_and_the_same_verifier_where_all_is_the_same() {
    let (verifiers, root) = (Verifiers::default(), root("root"));
    let first = verifier(&[&root], Vec::new(), 1).settings;
    let settings = |page: usize| {
        let error_page = ClientErrorPage::Redirect(format!("https://help.test/{page}"));
        Arc::new(ClientVerification { error_page, ..ClientVerification::clone(&first) })
    };
    let made: Vec<_> = (0..500).map(|page| verifiers.verifier(&settings(page))).collect();
    assert!(made.iter().all(|one| Arc::ptr_eq(&one.trusted, &made[0].trusted)));
    assert!(Arc::ptr_eq(&made[7], &verifiers.verifier(&settings(7))), "the same is asked for");
    assert!(!Arc::ptr_eq(&made[7], &made[8]));
    // The same in another place of memory is the same; another authority is not.
    let again = first.authorities.iter().map(|der| Arc::from(&der[..])).collect();
    let again =
        ClientVerification { authorities: again, ..ClientVerification::clone(&settings(7)) };
    assert!(Arc::ptr_eq(&made[7], &verifiers.verifier(&Arc::new(again))));
    let other = verifier(&[&self::root("other")], Vec::new(), 1).settings;
    let other = verifiers.verifier(&other);
    assert!(!Arc::ptr_eq(&other.trusted, &made[0].trusted));
    assert_eq!(
        verdict(&other, &[&below(&root, params("client", false))]),
        Verdict::Unknown("unable to verify the first certificate")
    );
    drop(made);
    for page in 0..1000 {
        verifiers.verifier(&settings(page));
    }
    assert!(verifiers.0.lock().verifiers.entries() < 200);
}

#[test]
fn a_client_whom_a_few_ask_by_turns_is_judged_once_for_each() {
    let ours: Vec<Party> = (0..4).map(|number| root(&format!("root {number}"))).collect();
    let client = below(&ours[2], params("client", false));
    let chain = [client.der.clone()];
    let peer = crate::Peer::new(&chain).expect("it has a certificate");
    let verifiers: Vec<_> =
        ours.iter().map(|root| Arc::new(verifier(&[root], Vec::new(), 1))).collect();
    let judged = || crate::peer::JUDGED.get();
    let before = judged();
    for _ in 0..10 {
        for (number, verifier) in verifiers.iter().enumerate() {
            assert_eq!(peer.verdict(verifier) == Verdict::Good, number == 2);
            assert_eq!(peer.last_verdict() == Some(Verdict::Good), number == 2);
        }
    }
    assert_eq!(judged() - before, 4);
    // Another depth is another question.
    let deep = Arc::new(verifier(&[&ours[2]], Vec::new(), 2));
    assert_eq!(peer.verdict(&deep), Verdict::Good);
    assert_eq!(judged() - before, 5);
}
