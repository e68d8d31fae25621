//! OCSP stapling with a responder of its own: what is stapled, what is not, and that nobody waits for it.

use crate::bed;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use model::{
    Certificate, CertificateId, Configuration, Global, PrivateKey, Server, ServerName, TlsSettings,
};
use proxy::Native;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SigningKey,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName as Name, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use x509_cert::der::asn1::{BitString, OctetString};
use x509_cert::der::{Decode, Encode};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse, ResponderId,
    ResponseData, SingleResponse,
};

/// An authority and a certificate of it that names a responder.
struct Chain {
    authority: KeyPair,
    chain: Vec<Vec<u8>>,
    key: Vec<u8>,
}

fn chain(responder: SocketAddr) -> Chain {
    let mut root = CertificateParams::default();
    root.distinguished_name.push(DnType::CommonName, "authority");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = KeyPair::generate().expect("keys can be made");
    let root_der = root.self_signed(&authority).expect("certificates can be made").der().to_vec();
    let url = format!("http://{responder}/ocsp");
    // AuthorityInfoAccessSyntax with one AccessDescription: id-ad-ocsp and a URI.
    let method = [6, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1];
    let uri = [&[0x86, url.len() as u8], url.as_bytes()].concat();
    let description = [&[0x30, (method.len() + uri.len()) as u8], &method[..], &uri].concat();
    let access = [&[0x30, description.len() as u8], &description[..]].concat();
    let mut leaf = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
    leaf.custom_extensions =
        vec![CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access)];
    let key = KeyPair::generate().expect("keys can be made");
    let leaf = leaf
        .signed_by(&key, &Issuer::from_params(&root, &authority))
        .expect("certificates can be made");
    Chain { authority, chain: vec![leaf.der().to_vec(), root_der], key: key.serialize_der() }
}

/// What an authority says to a request.
fn answer(request: &[u8], status: CertStatus, signer: &KeyPair, age: Duration) -> Vec<u8> {
    let by = ResponderId::ByKey(OctetString::new(vec![0; 20]).expect("bytes"));
    answer_by(request, status, signer, age, (by, None))
}

/// What somebody says in the name of an authority, who shows certificates.
fn answer_by(
    request: &[u8],
    status: CertStatus,
    signer: &KeyPair,
    age: Duration,
    (responder_id, certs): (ResponderId, Option<Vec<x509_cert::Certificate>>),
) -> Vec<u8> {
    let request = OcspRequest::from_der(request).expect("a request");
    let now = SystemTime::now() - age;
    let time = |at: SystemTime| OcspGeneralizedTime::try_from(at).expect("a moment");
    let single = SingleResponse {
        cert_id: request.tbs_request.request_list[0].req_cert.clone(),
        cert_status: status,
        this_update: time(now),
        next_update: Some(time(now + Duration::from_secs(3600))),
        single_extensions: None,
    };
    let data = ResponseData {
        version: x509_ocsp::Version::V1,
        responder_id,
        produced_at: time(now),
        responses: vec![single],
        response_extensions: None,
    };
    let signature = signer.sign(&data.to_der().expect("it can be written")).expect("signed");
    let basic = BasicOcspResponse {
        tbs_response_data: data,
        // ecdsa-with-SHA256
        signature_algorithm: AlgorithmIdentifierOwned {
            oid: "1.2.840.10045.4.3.2".parse().expect("a number"),
            parameters: None,
        },
        signature: BitString::from_bytes(&signature).expect("bytes"),
        certs,
    };
    let response = OcspResponse::successful(basic).expect("it can be written");
    response.to_der().expect("it can be written")
}

/// A key to which an authority gave a certificate, and that; for the use of answers, or for none.
fn deputy(
    authority: &KeyPair,
    name: &str,
    usages: &[ExtendedKeyUsagePurpose],
) -> (KeyPair, x509_cert::Certificate) {
    let mut root = CertificateParams::default();
    root.distinguished_name.push(DnType::CommonName, "authority");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = usages.to_vec();
    let key = KeyPair::generate().expect("keys can be made");
    let signed = params.signed_by(&key, &Issuer::from_params(&root, authority));
    let signed = signed.expect("certificates can be made");
    (key, x509_cert::Certificate::from_der(signed.der()).expect("a certificate"))
}

/// What a deputy says who shows certificates of others before its own.
fn of_deputy(
    request: &[u8],
    authority: &KeyPair,
    usages: &[ExtendedKeyUsagePurpose],
    by_key: bool,
) -> Vec<u8> {
    let others = (0..9).map(|of| deputy(authority, &format!("other {of}"), usages).1);
    let (key, own) = deputy(authority, "deputy", usages);
    let by = if by_key {
        let key = own.tbs_certificate.subject_public_key_info.subject_public_key.raw_bytes();
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, key);
        ResponderId::ByKey(OctetString::new(hash.as_ref()).expect("bytes"))
    } else {
        ResponderId::ByName(own.tbs_certificate.subject.clone())
    };
    let shown = others.chain([own]).collect();
    answer_by(request, CertStatus::good(), &key, Duration::ZERO, (by, Some(shown)))
}

/// Serves `answer` to every request, and counts them.
async fn respond(
    listener: TcpListener,
    asked: tokio::sync::mpsc::Sender<()>,
    answer: impl Fn(&[u8]) -> Option<Vec<u8>>,
) {
    let mut kept = Vec::new();
    while let Ok((mut tcp, _)) = listener.accept().await {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        let body = loop {
            let count = tcp.read(&mut buffer).await.expect("readable");
            read.extend_from_slice(&buffer[..count]);
            let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).expect("a length");
            let length: usize = length.lines().next().unwrap_or_default().parse().expect("digits");
            if read.len() >= end + 4 + length {
                break read[end + 4..].to_vec();
            }
        };
        let _ = asked.send(()).await;
        match answer(&body) {
            Some(answer) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                let _ = tcp.write_all(&[head.as_bytes(), &answer].concat()).await;
            }
            // Silence, with the connection open.
            None => kept.push(tcp),
        }
    }
}

async fn start(chain: &Chain) -> Arc<Native> {
    let id = CertificateId::new("demo/tls");
    let certificate = Certificate {
        id: id.clone(),
        chain: chain.chain.clone(),
        key: PrivateKey(chain.key.clone()),
        names: vec!["a.test".to_owned()].into(),
        not_after: i64::MAX,
    };
    let name = ServerName::new("a.test");
    let server = Server { certificate: Some(id.clone()), ..Server::new(name.clone()) };
    let tls = TlsSettings { ocsp: true, ..TlsSettings::default() };
    let mut configuration = Configuration {
        global: Arc::new(Global { tls, access_log: false, ..Global::default() }),
        ..Configuration::default()
    };
    configuration.certificates.insert(id, Arc::new(certificate));
    configuration.servers.insert(name, Arc::new(server));
    bed::start(&configuration).await
}

/// Notes what is stapled and believes everybody.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Vec<u8>>);

impl ServerCertVerifier for Notes {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &Name<'_>,
        staple: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.0.lock().expect("one thread") = staple.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What a new handshake has stapled; empty if nothing.
async fn staple(native: &Native) -> Vec<u8> {
    let notes = Arc::new(Notes::default());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions that exist")
        .dangerous()
        .with_custom_certificate_verifier(notes.clone())
        .with_no_client_auth();
    let address = (Ipv4Addr::LOCALHOST, native.listening().https_port);
    let tcp = TcpStream::connect(address).await.expect("listening");
    let name = Name::try_from("a.test").expect("a name");
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect(name, tcp).await.expect("a handshake");
    let staple = notes.0.lock().expect("one thread");
    staple.clone()
}

/// A responder, and what asks it.
async fn scene(
    answer: impl Fn(&[u8], &KeyPair) -> Option<Vec<u8>> + Send + 'static,
) -> (Arc<Native>, tokio::sync::mpsc::Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let chain = chain(listener.local_addr().expect("bound"));
    let native = start(&chain).await;
    let (asked, asking) = tokio::sync::mpsc::channel(16);
    let authority = chain.authority;
    tokio::spawn(respond(listener, asked, move |request| answer(request, &authority)));
    (native, asking)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_authority_says_is_stapled_once_it_is_there() {
    stapled(
        scene(|request, key| Some(answer(request, CertStatus::good(), key, Duration::ZERO))).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_may_let_somebody_answer_whom_the_answer_names() {
    let usages = [ExtendedKeyUsagePurpose::OcspSigning];
    stapled(scene(move |request, key| Some(of_deputy(request, key, &usages, false))).await).await;
    let usages = [ExtendedKeyUsagePurpose::OcspSigning];
    stapled(scene(move |request, key| Some(of_deputy(request, key, &usages, true))).await).await;
}

/// It is stapled soon after the first handshake.
async fn stapled((native, mut asked): (Arc<Native>, tokio::sync::mpsc::Receiver<()>)) {
    assert!(staple(&native).await.is_empty(), "the first handshake does not wait");
    asked.recv().await.expect("the responder is asked");
    let stapled = async {
        loop {
            let staple = staple(&native).await;
            if !staple.is_empty() {
                return staple;
            }
        }
    };
    let stapled = tokio::time::timeout(Duration::from_secs(10), stapled).await.expect("stapled");
    let response = OcspResponse::from_der(&stapled).expect("an answer");
    assert!(response.response_bytes.is_some());
    assert!(asked.try_recv().is_err(), "it is asked once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_old_or_signed_by_others_is_not_stapled() {
    let hour = Duration::from_secs(3601);
    let revoked = || {
        let at = OcspGeneralizedTime::try_from(SystemTime::now()).expect("a moment");
        CertStatus::revoked(x509_ocsp::RevokedInfo { revocation_time: at, revocation_reason: None })
    };
    let stranger = KeyPair::generate().expect("keys can be made");
    let scenes = [
        scene(move |request, key| Some(answer(request, revoked(), key, Duration::ZERO))).await,
        scene(move |request, key| Some(answer(request, CertStatus::good(), key, hour))).await,
        scene(move |request, _| {
            Some(answer(request, CertStatus::good(), &stranger, Duration::ZERO))
        })
        .await,
        scene(|_, _| Some(b"nonsense".to_vec())).await,
        scene(|request, key| Some(of_deputy(request, key, &[], false))).await,
    ];
    for (number, (native, mut asked)) in scenes.into_iter().enumerate() {
        assert!(staple(&native).await.is_empty());
        asked.recv().await.expect("the responder is asked");
        for _ in 0..20 {
            assert!(staple(&native).await.is_empty(), "answer {number}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_responder_delays_no_handshake() {
    let (native, mut asked) = scene(|_, _| None).await;
    assert!(staple(&native).await.is_empty());
    asked.recv().await.expect("the responder is asked");
    let handshakes = async {
        for _ in 0..20 {
            assert!(staple(&native).await.is_empty());
        }
    };
    tokio::time::timeout(Duration::from_secs(60), handshakes).await.expect("nobody waits");
    assert!(asked.try_recv().is_err(), "one question at a time");
}
