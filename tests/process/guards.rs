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

/// The ConfigMap with a list of who is let in.
fn settings(list: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: demo}}\n\
         data: {{whitelist-source-range: '{list}'}}\n"
    )
}

#[test]
fn who_starts_with_a_guard_for_all_that_cannot_be_read_is_not_ready_until_it_can() {
    const SUCCESSFUL: &str = "nginx_ingress_controller_config_last_reload_successful{";
    let folder = TempDir::new().expect("a folder");
    let write = |list: &str| {
        fs::write(folder.path().join("settings.yaml"), settings(list)).expect("a file");
    };
    write("10.0.0.0/8 127.0.0.0/8");
    let manifests = format!("--manifests={}", folder.path().display());
    let flags = [&manifests, "--configmap=demo/settings", "--enable-metrics"];
    let running = Running::spawn("fairway", &flags, &[]);
    running.until("it says why", || running.log().contains("not ready, since every location"));
    let health = || running.get("/healthz").expect("an answer");
    let (status, page) = health();
    assert_eq!(status, 500);
    assert!(text(&page).contains("whitelist-source-range"), "{}", text(&page));
    let successful = || {
        let (_, page) = running.get("/metrics").expect("an answer");
        let page = text(&page);
        let line = page.lines().find(|line| line.starts_with(SUCCESSFUL)).map(str::to_owned);
        line.expect("the metric").ends_with(" 1")
    };
    assert!(!successful(), "not all of the ConfigMap is in force");
    write("127.0.0.0/8");
    running.until("it is mended", || health().0 == 200);
    assert!(successful());
    // Whoever runs keeps the last good text, and stays ready.
    write("oops");
    running.until("it is told", || running.log().contains("stays in force until it is mended"));
    assert_eq!(health().0, 200);
    assert!(!successful());
}

#[test]
fn who_starts_with_settings_that_cannot_be_read_is_not_ready_until_they_can() {
    let folder = TempDir::new().expect("a folder");
    let write = |text: &str| fs::write(folder.path().join("settings.yaml"), text).expect("a file");
    let manifests = format!("--manifests={}", folder.path().display());
    // A value that is no text: nothing of the ConfigMap counts, its guard neither. And one whose quotes have no end.
    for wrong in ["data: {enable-brotli: true, ", "data: {enable-brotli: \"true, "] {
        write(&settings("10.0.0.0/8").replace("data: {", wrong));
        let running = Running::spawn("fairway", &[&manifests, "--configmap=demo/settings"], &[]);
        running.until("it says why", || running.log().contains("not ready, since every location"));
        let health = || running.get("/healthz").expect("an answer").0;
        assert_eq!(health(), 500);
        assert!(!running.log().contains("there is no ConfigMap"), "{}", running.log());
        write(&settings("10.0.0.0/8"));
        running.until("it is mended", || health() == 200);
    }
}
