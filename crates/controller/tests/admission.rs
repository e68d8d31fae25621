//! The admission webhook over real TLS: reviews, bad bytes, bounds, and a certificate that is replaced.

use controller::admission::{Bound, Known, Reviewer, WebhookOptions};
use kubernetes::snapshot_of;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use translate::{Options, translate};

const OBJECTS: &str = r"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: first, namespace: demo}
spec:
  ingressClassName: nginx
  rules:
  - host: a.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
";

struct Started {
    address: SocketAddr,
    folder: TempDir,
    certificate: CertificateDer<'static>,
    _known: watch::Sender<Arc<Known>>,
}

/// Writes a new pair into the folder.
fn pair(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["webhook.test".to_owned()]).expect("a certificate");
    fs::write(folder.join("key.pem"), signing_key.serialize_pem()).expect("a file");
    fs::write(folder.join("cert.pem"), cert.pem()).expect("a file");
    cert.der().clone()
}

async fn start() -> Started {
    let folder = TempDir::new().expect("a folder");
    let certificate = pair(folder.path());
    let webhook = WebhookOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    let bound = Bound::new(&webhook).await.expect("the webhook starts");
    let address = bound.address();
    let snapshot = snapshot_of([(Path::new("in.yaml"), OBJECTS)]);
    let options = Options::default();
    let configuration = translate(&snapshot, &options).configuration;
    let known = watch::Sender::new(Arc::new(Known { snapshot, configuration, ..Known::default() }));
    tokio::spawn(bound.serve(Reviewer::new(known.subscribe(), options)));
    Started { address, folder, certificate, _known: known }
}

/// Posts bytes; status and body of the answer, or nothing if the certificate is another one.
async fn post(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    body: &[u8],
) -> Option<(u16, Vec<u8>)> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(address).await.expect("the webhook listens");
    let name = ServerName::try_from("webhook.test").expect("a name");
    let mut tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.ok()?;
    let head = format!(
        "POST /networking/v1/ingresses HTTP/1.1\r\nHost: webhook.test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    tls.write_all(head.as_bytes()).await.expect("the webhook reads");
    // A body that is too large may be refused before it is read.
    let _ = tls.write_all(body).await;
    let mut answer = Vec::new();
    let _ = tls.read_to_end(&mut answer).await;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    Some((status, answer[end + 4..].to_vec()))
}

fn asking(name: &str, host: &str) -> Vec<u8> {
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": "demo", "uid": "7b2768ad-1d46-57ed-b5ee-0e90036d4727"},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "shop", "port": {"number": 80}}}}]}}]},
    });
    let kind = json!({"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"});
    let request = json!({"uid": "id-1", "kind": kind, "operation": "CREATE", "object": ingress});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    review.to_string().into_bytes()
}

#[tokio::test]
async fn an_ingress_is_allowed_or_refused_with_the_reason() {
    let started = start().await;
    let answer = async |name, host| -> Value {
        let (status, body) = post(started.address, &started.certificate, &asking(name, host))
            .await
            .expect("the certificate is trusted");
        assert_eq!(status, 200);
        serde_json::from_slice(&body).expect("JSON")
    };
    let allowed = answer("second", "b.test").await;
    assert_eq!(allowed["response"], json!({"uid": "id-1", "allowed": true}));
    let refused = answer("second", "a.test").await;
    assert_eq!(refused["response"]["allowed"], false);
    assert_eq!(refused["response"]["status"]["code"], 400);
    let message = refused["response"]["status"]["message"].as_str().expect("a message");
    let recorded = "host \"a.test\" and path \"/\" is already defined in ingress demo/first";
    assert!(message.starts_with(recorded), "{message}");
    assert_eq!(answer("first", "a.test").await["response"]["allowed"], true);
}

#[tokio::test]
async fn what_is_no_review_is_told_so_and_what_is_too_large_refused() {
    let started = start().await;
    let status = async |body: &[u8]| {
        let answer = post(started.address, &started.certificate, body).await;
        answer.expect("the certificate is trusted").0
    };
    assert_eq!(status(b"{").await, 400);
    assert_eq!(status(b"{}").await, 500);
    let other =
        String::from_utf8(asking("x", "x.test")).expect("text").replace("/v1\"", "/v1beta1\"");
    assert_eq!(status(other.as_bytes()).await, 500);
    assert_eq!(status(&vec![b' '; 9 << 20]).await, 413);
}

#[tokio::test]
async fn a_replaced_certificate_is_used_without_a_restart() {
    let started = start().await;
    let next = pair(started.folder.path());
    let body = asking("second", "b.test");
    let replaced = async {
        while post(started.address, &next, &body).await.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let within = Duration::from_secs(20);
    tokio::time::timeout(within, replaced).await.expect("the new certificate is served");
}

#[tokio::test]
async fn files_that_are_no_pair_are_refused_with_their_name() {
    let folder = TempDir::new().expect("a folder");
    pair(folder.path());
    fs::write(folder.path().join("key.pem"), "nothing").expect("a file");
    let webhook = WebhookOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    let error = Bound::new(&webhook).await.expect_err("no key").to_string();
    assert!(error.contains("key.pem") && error.contains("--validating-webhook-key"), "{error}");
}
