//! A webhook that runs, and clients for it.

#![allow(dead_code, reason = "each test program uses a part of it")]

use controller::Known;
use controller::admission::{Bound, Reviewer, WebhookOptions};
use objects::snapshot_of;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use translate::{Options, Translator};

/// A connection of a client.
pub(crate) type Connection = TlsStream<TcpStream>;

/// A webhook that runs.
pub(crate) struct Started {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its certificate and key.
    pub folder: TempDir,
    /// What clients trust.
    pub certificate: CertificateDer<'static>,
    _known: watch::Sender<Arc<Known>>,
}

/// Writes a new pair into the folder.
pub(crate) fn pair(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["webhook.test".to_owned()]).expect("a certificate");
    fs::write(folder.join("key.pem"), signing_key.serialize_pem()).expect("a file");
    fs::write(folder.join("cert.pem"), cert.pem()).expect("a file");
    cert.der().clone()
}

/// Starts a webhook that knows these objects, with the pair that the folder has, or else a new one.
pub(crate) async fn start(objects: &str) -> Started {
    let folder = TempDir::new().expect("a folder");
    let certificate = pair(folder.path());
    start_in(folder, certificate, objects).await
}

/// The same with a pair that is there.
pub(crate) async fn start_in(
    folder: TempDir,
    certificate: CertificateDer<'static>,
    objects: &str,
) -> Started {
    let webhook = WebhookOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_authorities: Some(folder.path().join("clients.pem")).filter(|path| path.exists()),
    };
    let bound = Bound::new(&webhook).await.expect("the webhook starts");
    let address = bound.address();
    let snapshot = snapshot_of([(Path::new("in.yaml"), objects)]);
    let options = Options::default();
    let mut translator = Translator::new(options.clone());
    let configuration = translator.update(&snapshot).configuration;
    let references = translator.references().clone();
    let known = watch::Sender::new(Arc::new(Known {
        snapshot,
        configuration,
        references,
        ..Known::default()
    }));
    bound.start(Reviewer::new(known.subscribe(), options)).expect("a thread starts");
    Started { address, folder, certificate, _known: known }
}

impl Started {
    /// Posts bytes on a connection of its own; status and body of the answer.
    pub(crate) async fn post(&self, body: &[u8]) -> (u16, Vec<u8>) {
        post(self.address, &self.certificate, body).await.expect("the certificate is trusted")
    }

    /// A connection from an address of this machine.
    pub(crate) async fn connect_from(&self, last: u8) -> Option<Connection> {
        connect(self.address, &self.certificate, last).await
    }
}

/// A connection, unless the certificate is another one or it is closed at once.
pub(crate) async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    last: u8,
) -> Option<Connection> {
    connect_as(address, trusted, last, None).await
}

/// A certificate and its key.
pub(crate) type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// The same for a client that has a certificate.
pub(crate) async fn connect_as(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    last: u8,
    identity: Option<Identity>,
) -> Option<Connection> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((own, key)) => config.with_client_auth_cert(vec![own], key).expect("a pair"),
    };
    let socket = TcpSocket::new_v4().expect("a socket");
    let own = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    socket.bind(SocketAddr::new(own, 0)).expect("an address of this machine");
    let tcp = socket.connect(address).await.expect("the webhook listens");
    tcp.set_nodelay(true).expect("an option");
    let name = ServerName::try_from("webhook.test").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.ok()
}

/// Posts bytes; status and body of the answer, or nothing if the certificate is another one.
pub(crate) async fn post(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    body: &[u8],
) -> Option<(u16, Vec<u8>)> {
    let mut tls = connect(address, trusted, 1).await?;
    let head = head(body.len(), "Connection: close\r\n");
    tls.write_all(head.as_bytes()).await.expect("the webhook reads");
    // A body that is too large may be refused before it is read.
    let _ = tls.write_all(body).await;
    Some(last_answer(&mut tls).await.expect("an answer"))
}

/// The head of a request.
pub(crate) fn head(length: usize, more: &str) -> String {
    format!(
        "POST /networking/v1/ingresses HTTP/1.1\r\nHost: webhook.test\r\n{more}Content-Length: {length}\r\n\r\n"
    )
}

/// Everything that comes until the connection ends, as status and body.
pub(crate) async fn last_answer(tls: &mut Connection) -> Option<(u16, Vec<u8>)> {
    let mut answer = Vec::new();
    let _ = tls.read_to_end(&mut answer).await;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok())?;
    Some((status, answer[end + 4..].to_vec()))
}

/// Posts on a connection that goes on; the status.
pub(crate) async fn exchange(tls: &mut Connection, body: &[u8]) -> Option<u16> {
    let mut request = head(body.len(), "").into_bytes();
    request.extend_from_slice(body);
    tls.write_all(&request).await.ok()?;
    let mut answer = Vec::new();
    let (end, length) = loop {
        if let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1)?;
            let length = length.split("\r\n").next()?.parse::<usize>().ok()?;
            break (end + 4, length);
        }
        (tls.read_buf(&mut answer).await.ok()? > 0).then_some(())?;
    };
    while answer.len() < end + length {
        (tls.read_buf(&mut answer).await.ok()? > 0).then_some(())?;
    }
    String::from_utf8_lossy(&answer[..end]).split(' ').nth(1)?.parse().ok()
}

/// A review of an Ingress with one path.
pub(crate) fn asking(name: &str, host: &str) -> Vec<u8> {
    let ingress = serde_json::json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": "demo", "uid": "7b2768ad-1d46-57ed-b5ee-0e90036d4727"},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "shop", "port": {"number": 80}}}}]}}]},
    });
    review("networking.k8s.io", "Ingress", "CREATE", name, ingress)
}

/// A review of an object of the namespace demo.
pub(crate) fn review(
    group: &str,
    kind: &str,
    operation: &str,
    name: &str,
    object: serde_json::Value,
) -> Vec<u8> {
    let kind = serde_json::json!({"group": group, "version": "v1", "kind": kind});
    let request = serde_json::json!({"uid": "id-1", "kind": kind, "operation": operation, "namespace": "demo",
        "name": name, "object": object, "oldObject": null});
    let review = serde_json::json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    review.to_string().into_bytes()
}
