//! Secrets that would have each connection compute for long.

use crate::builders::*;
use crate::certificates::asked_of_clients;
use model::PathKind;
use model::policy::ClientCertificate;
use translate::{Options, translate};

/// An authority's certificate in PEM, and a revocation list of it for so many addresses.
fn list_of_places(number: usize) -> (String, String) {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("keys can be made");
    let certificate = params.self_signed(&key).expect("certificates can be made").pem();
    let uris = (0..number).map(|number| format!("http://lists.test/{number}")).collect();
    let list = rcgen::CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2024, 1, 1),
        next_update: rcgen::date_time_ymd(2124, 1, 1),
        crl_number: rcgen::SerialNumber::from(1),
        issuing_distribution_point: Some(rcgen::CrlIssuingDistributionPoint {
            distribution_point: rcgen::CrlDistributionPoint { uris },
            scope: None,
        }),
        revoked_certs: Vec::new(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&rcgen::Issuer::new(params, key)).expect("lists can be made");
    (certificate, list.pem().expect("and written"))
}

#[test]
fn a_revocation_list_of_very_many_places_closes_the_host() {
    let (authority, most) = list_of_places(1000);
    let (asked, told) = asked_of_clients(&authority, &most);
    assert!(matches!(asked, Some(ClientCertificate::Verified(_))), "{told}");
    let (authority, more) = list_of_places(1001);
    let (asked, told) = asked_of_clients(&authority, &more);
    assert!(matches!(asked, Some(ClientCertificate::Closed(_))), "{asked:?}");
    assert!(told.contains("a revocation list in ca.crl for more than 1000 addresses"), "{told}");
}

#[test]
fn very_many_authorities_of_upstreams_close_the_location() {
    let (one, _) = certificate(&["ca.test"]);
    let all: Vec<String> = (0..1000).map(|_| certificate(&["ca.test"]).0).chain([one]).collect();
    let of = |authorities: &str| {
        let mut snapshot = cluster();
        put_secret(&mut snapshot, secret("demo", "ca", &[("ca.crt", authorities)]));
        let mut made = simple("demo", "shop", "shop.test", "/", "s");
        for (name, value) in [
            ("backend-protocol", "HTTPS"),
            ("proxy-ssl-secret", "demo/ca"),
            ("proxy-ssl-verify", "on"),
        ] {
            annotate(&mut made, name, value);
        }
        put_ingress(&mut snapshot, made);
        let found = translate(&snapshot, &Options::default());
        let location = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let trusted = location.expect("a location").policy.upstream_tls.authorities.len();
        let is_closed = is_denied(&found.configuration, "shop.test", "/");
        (trusted, is_closed, found.problems.to_string())
    };
    let (trusted, is_closed, told) = of(&all[1..].concat().repeat(2));
    assert_eq!((trusted, is_closed), (1000, false), "{told}");
    let (_, is_closed, told) = of(&all.concat());
    assert!(is_closed && told.contains("has 1001 authorities in ca.crt, and 1000"), "{told}");
}
