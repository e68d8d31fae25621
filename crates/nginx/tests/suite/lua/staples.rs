//! OCSP stapling with a responder of its own.

use crate::lua::bed::Nginx;
use crate::lua::certificates::connector;
use model::Outside;
use openssl::ssl::StatusType;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair, SigningKey,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use stream::Resolver;
use testkit::eventually;
use x509_cert::der::asn1::BitString;
use x509_cert::der::{Decode, Encode};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse, ResponderId,
    ResponseData, SingleResponse,
};

/// An authority and a certificate of it that names a responder.
struct Chain {
    authority: KeyPair,
    root: Vec<u8>,
    pem: String,
}

fn chain(responder: SocketAddr) -> Chain {
    let mut root = CertificateParams::default();
    root.distinguished_name.push(DnType::CommonName, "authority");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = KeyPair::generate().expect("a key");
    let issued = root.self_signed(&authority).expect("a certificate");
    let url = format!("http://{responder}/ocsp");
    // AuthorityInfoAccessSyntax with one AccessDescription: id-ad-ocsp and a URI.
    let method = [6, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1];
    let uri = [&[0x86, url.len() as u8], url.as_bytes()].concat();
    let description = [&[0x30, (method.len() + uri.len()) as u8], &method[..], &uri].concat();
    let access = [&[0x30, description.len() as u8], &description[..]].concat();
    let mut leaf = CertificateParams::new(vec!["shop.example".to_owned()]).expect("a name");
    leaf.custom_extensions =
        vec![CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access)];
    let key = KeyPair::generate().expect("a key");
    let leaf =
        leaf.signed_by(&key, &Issuer::from_params(&root, &authority)).expect("a certificate");
    let pem = leaf.pem() + &issued.pem() + &key.serialize_pem();
    Chain {
        authority,
        root: issued.der().to_vec(),
        pem: pem.replace('\n', "\\n").replace('\r', ""),
    }
}

/// What the authority says to a request.
fn answer(chain: &Chain, request: &[u8], status: CertStatus) -> Vec<u8> {
    let request = OcspRequest::from_der(request).expect("a request");
    let root = x509_cert::Certificate::from_der(&chain.root).expect("a certificate");
    let now = SystemTime::now();
    let time = |at: SystemTime| OcspGeneralizedTime::try_from(at).expect("a moment");
    let data = ResponseData {
        version: x509_ocsp::Version::V1,
        responder_id: ResponderId::ByName(root.tbs_certificate.subject),
        produced_at: time(now),
        responses: vec![SingleResponse {
            cert_id: request.tbs_request.request_list[0].req_cert.clone(),
            cert_status: status,
            this_update: time(now),
            next_update: Some(time(now + Duration::from_secs(3600))),
            single_extensions: None,
        }],
        response_extensions: None,
    };
    let signature =
        chain.authority.sign(&data.to_der().expect("it can be written")).expect("signed");
    let ecdsa_with_sha256 = "1.2.840.10045.4.3.2".parse().expect("a number");
    let basic = BasicOcspResponse {
        tbs_response_data: data,
        signature_algorithm: AlgorithmIdentifierOwned { oid: ecdsa_with_sha256, parameters: None },
        signature: BitString::from_bytes(&signature).expect("bytes"),
        certs: None,
    };
    let response = OcspResponse::successful(basic).expect("it can be written");
    response.to_der().expect("it can be written")
}

/// The body of a request.
fn body(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        text.extend_from_slice(&piece[..count]);
        let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&text[..end]).to_ascii_lowercase();
        let length: usize = head.split("content-length: ").nth(1)?.lines().next()?.parse().ok()?;
        if text.len() >= end + 4 + length {
            return Some(text[end + 4..].to_vec());
        }
    }
}

/// A responder that says `status`, or nothing at all; it counts who asks, and keeps connections open.
fn respond(status: Option<CertStatus>) -> (Arc<Chain>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let chain = Arc::new(chain(listener.local_addr().expect("bound")));
    let asked = Arc::new(AtomicUsize::new(0));
    let (known, count) = (chain.clone(), asked.clone());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if let (Some(request), Some(status)) = (body(&mut stream), status) {
                let answer = answer(&known, &request, status);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
                let _gone = stream.write_all(&[head.as_bytes(), &answer].concat());
            }
            count.fetch_add(1, Ordering::Relaxed);
            kept.push(stream);
        }
    });
    (chain, asked)
}

/// nginx with a certificate whose responder may be at an address of this network.
async fn start(chain: &Chain, allowed: &str) -> Nginx {
    let nginx = Nginx::start().await;
    let resolver = Resolver::from(Outside::and([allowed.parse().expect("a network")]));
    let names = nginx.folder().join("names.sock");
    tokio::spawn(nginx::lookups::answer(&names, Arc::new(resolver)).expect("a socket"));
    let certificates =
        format!(r#"{{"certificates":{{"a":"{}"}},"servers":{{"shop.example":"a"}}}}"#, chain.pem);
    assert_eq!(nginx.control("POST", "/configuration/servers", &certificates).status, 201);
    assert_eq!(
        nginx.control("POST", "/configuration/general", r#"{"enable-ocsp":true}"#).status,
        201
    );
    nginx
}

/// What is stapled to a handshake, which must work.
fn staple(nginx: &Nginx) -> Option<Vec<u8>> {
    let mut configured = connector();
    configured.set_status_type(StatusType::OCSP).expect("OpenSSL works");
    let stream = TcpStream::connect(("127.0.0.1", nginx.https)).expect("nginx listens");
    let stream = configured.connect("shop.example", stream).expect("a handshake");
    stream.ssl().ocsp_status().map(<[u8]>::to_vec)
}

#[tokio::test]
async fn the_answer_of_the_authority_is_stapled_once_it_is_there() {
    let (chain, asked) = respond(Some(CertStatus::good()));
    let nginx = start(&chain, "127.0.0.0/8").await;
    assert_eq!(staple(&nginx), None, "the first handshake waits for nobody");
    let found = eventually(Duration::from_secs(10), || async { staple(&nginx) }).await;
    let found = found.unwrap_or_else(|| panic!("nothing is stapled: {}", nginx.log()));
    OcspResponse::from_der(&found).expect("an answer");
    for _ in 0..9 {
        assert_eq!(staple(&nginx).as_deref(), Some(&*found));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "all workers share the answer");
}

#[tokio::test]
async fn what_is_not_good_is_not_stapled_and_nobody_waits_for_a_silent_responder() {
    for status in [Some(CertStatus::unknown()), None] {
        let (chain, asked) = respond(status);
        let nginx = start(&chain, "127.0.0.0/8").await;
        assert_eq!(staple(&nginx), None);
        let known = eventually(Duration::from_secs(10), || async {
            nginx.log().contains("no OCSP answer").then_some(())
        });
        assert!(known.await.is_some(), "{}", nginx.log());
        for _ in 0..9 {
            assert_eq!(staple(&nginx), None);
        }
        assert!(asked.load(Ordering::Relaxed) <= 1, "a responder that fails is left alone");
    }
}

#[tokio::test]
async fn a_responder_where_objects_may_not_lead_is_not_asked() {
    let (chain, asked) = respond(Some(CertStatus::good()));
    let nginx = start(&chain, "127.99.0.0/16").await;
    assert_eq!(staple(&nginx), None);
    let known = eventually(Duration::from_secs(10), || async {
        nginx.log().contains("none of its addresses may be reached").then_some(())
    });
    assert!(known.await.is_some(), "{}", nginx.log());
    assert_eq!((staple(&nginx), asked.load(Ordering::Relaxed)), (None, 0));
}
