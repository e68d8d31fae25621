//! Certificates by the name in the handshake, and the redirect of hosts that have one.

use crate::lua::bed::Nginx;
use openssl::ssl::{ConnectConfiguration, SslConnector, SslMethod, SslVerifyMode};
use rcgen::{CertificateParams, DnType, KeyPair};
use std::net::TcpStream;

const SERVERS: &str = "/configuration/servers";

/// Chain and key in PEM, for JSON.
fn issued(name: &str) -> String {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem() + &key.serialize_pem()).replace('\n', "\\n").replace('\r', "")
}

/// A client that believes everybody.
pub(crate) fn connector() -> ConnectConfiguration {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("OpenSSL works");
    builder.set_verify(SslVerifyMode::NONE);
    let mut configured = builder.build().configure().expect("OpenSSL works");
    configured.set_verify_hostname(false);
    configured
}

/// The common name of what a handshake gets; nothing if it fails.
fn shown(nginx: &Nginx, name: Option<&str>) -> Option<String> {
    let mut configured = connector();
    configured.set_use_server_name_indication(name.is_some());
    let stream = TcpStream::connect(("127.0.0.1", nginx.https)).expect("nginx listens");
    let stream = configured.connect(name.unwrap_or("none"), stream).ok()?;
    let certificate = stream.ssl().peer_certificate()?;
    let entry = certificate.subject_name().entries().next()?;
    entry.data().to_string().ok()
}

fn push(nginx: &Nginx, method: &str, body: &str) {
    let answer = nginx.control(method, SERVERS, body);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

fn first_push(nginx: &Nginx) {
    let body = format!(
        r#"{{"certificates":{{"a":"{}","b":"{}","c":"{}"}},
            "servers":{{"shop.example":"a","*.shop.example":"b","_":"c","plain.example":"_"}}}}"#,
        issued("exact"),
        issued("wildcard"),
        issued("default"),
    );
    push(nginx, "POST", &body);
}

#[tokio::test]
async fn the_exact_name_goes_before_the_wildcard_and_that_before_the_default() {
    let nginx = Nginx::start().await;
    assert_eq!(shown(&nginx, Some("shop.example")), None, "there is no certificate yet");
    first_push(&nginx);
    for (name, wanted) in [
        (Some("shop.example"), "exact"),
        (Some("SHOP.Example"), "exact"),
        (Some("a.shop.example"), "wildcard"),
        (Some("a.b.shop.example"), "default"),
        (Some("plain.example"), "default"),
        (Some("other.example"), "default"),
        (None, "default"),
    ] {
        assert_eq!(shown(&nginx, name).as_deref(), Some(wanted), "{name:?}");
    }
    nginx.reload().await;
    assert_eq!(shown(&nginx, Some("shop.example")).as_deref(), Some("exact"), "after a reload");
}

#[tokio::test]
async fn a_certificate_is_replaced_and_taken_away_at_once() {
    let nginx = Nginx::start().await;
    first_push(&nginx);
    assert_eq!(shown(&nginx, Some("shop.example")).as_deref(), Some("exact"));
    let renewed = format!(
        r#"{{"certificates":{{"a2":"{}","a":""}},"servers":{{"shop.example":"a2"}}}}"#,
        issued("renewed")
    );
    push(&nginx, "POST", &renewed);
    assert_eq!(shown(&nginx, Some("shop.example")).as_deref(), Some("renewed"));
    push(&nginx, "POST", r#"{"servers":{"shop.example":"-1"}}"#);
    assert_eq!(shown(&nginx, Some("shop.example")).as_deref(), Some("default"));
    let only = format!(r#"{{"certificates":{{"d":"{}"}},"servers":{{"_":"d"}}}}"#, issued("only"));
    push(&nginx, "PUT", &only);
    assert_eq!(shown(&nginx, Some("a.shop.example")).as_deref(), Some("only"));
    assert_eq!(nginx.control("GET", SERVERS, "").body, r#"{"_":"d"}"#);
}

#[tokio::test]
async fn the_chain_is_shown_and_the_key_is_not() {
    let nginx = Nginx::start().await;
    first_push(&nginx);
    let of = |query: &str| nginx.control("GET", &format!("/configuration/certs{query}"), "");
    let shown = of("?hostname=shop.example");
    assert_eq!(shown.status, 200);
    assert!(shown.body.starts_with("-----BEGIN CERTIFICATE-----"), "{}", shown.body);
    assert!(!shown.body.contains("PRIVATE"), "{}", shown.body);
    assert_eq!(of("?hostname=other.example").status, 404);
    assert_eq!(of("").status, 400);
}

#[tokio::test]
async fn hosts_with_a_certificate_are_redirected_to_https() {
    let nginx = Nginx::start().await;
    assert_eq!(nginx.get("/secure", "").status, 200, "the host has no certificate yet");
    first_push(&nginx);
    let answer = nginx.get("/secure/?a=/", "");
    assert_eq!(
        (answer.status, answer.all("Location")),
        (308, vec!["https://shop.example/secure/?a="])
    );
    let general = nginx.control("POST", "/configuration/general", r#"{"http-redirect-code":302}"#);
    assert_eq!(general.status, 201, "{}", general.body);
    assert_eq!(nginx.get("/secure", "").status, 302);
    push(&nginx, "POST", r#"{"servers":{"shop.example":"-1"}}"#);
    assert_eq!(nginx.get("/secure", "").status, 200);
}
