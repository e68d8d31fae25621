//! A process that starts while guards cannot be read: what they guard is closed, nothing else is, and it is told.

use super::{PATIENCE, Running, text};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use tempfile::TempDir;
use testkit::certificates::Certificates;

const OBJECTS: &str = include_str!("guards.yaml");

/// The status of an answer.
fn status(port: u16, host: &str, path: &str) -> u16 {
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a time");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    tcp.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).expect("an answer");
    text(&answer).split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

/// The objects, with an authority of clients that is fine and a revocation list that is none.
fn objects() -> String {
    let certificates = Certificates::shared();
    let authority = &certificates.get("tls-demo").expect("a certificate").certificate;
    let secret = serde_json::json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "clients", "namespace": "demo"},
        "stringData": {"ca.crt": authority, "ca.crl": "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"}});
    format!("{OBJECTS}---\n{secret}\n")
}

#[test]
fn guards_that_cannot_be_read_at_start_close_what_they_guard_alone() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("guards.yaml"), objects()).expect("a file");
    let manifests = format!("--manifests={}", folder.path().display());
    // It is ready: a Pod that waited for a tenant's mistake would keep everybody out.
    let running = Running::start("fairway", &[&manifests]);
    let [http, _] = running.ports();
    for (host, path, wanted) in [
        ("shut.test", "/", 302),
        ("shut.test", "/malformed", 503),
        ("shut.test", "/malformed/below", 503),
        ("shut.test", "/missing", 503),
        ("open.test", "/", 302),
    ] {
        assert_eq!(status(http, host, path), wanted, "{host}{path}\n{}", running.log());
    }
    let revoked = status(http, "revoked.test", "/");
    assert!([403, 503].contains(&revoked), "{revoked}\n{}", running.log());
    for told in [
        "Ingress demo/malformed: nginx.ingress.kubernetes.io/auth-secret: Secret demo/malformed could not be read",
        "Ingress demo/missing: nginx.ingress.kubernetes.io/auth-secret: Secret demo/missing does not exist",
        "Ingress demo/revoked: nginx.ingress.kubernetes.io/auth-tls-secret: Secret demo/clients",
    ] {
        running.until(told, || running.log().contains(told));
    }
    // Once they can be read, they are obeyed.
    let mended = objects().replace("data: {auth: '!!!'}", "stringData: {auth: 'a:b'}");
    fs::write(folder.path().join("guards.yaml"), mended).expect("a file");
    running.until("it is mended", || status(http, "shut.test", "/malformed") == 401);
    assert_eq!(status(http, "shut.test", "/missing"), 503);
}
