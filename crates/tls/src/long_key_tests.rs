//! Handshakes with RSA keys above 4,096 bits, as the owners of hosts have them.

use crate::by_name::ByName;
use crate::{Certificates, self_signed};
use arc_swap::ArcSwap;
use model::{Certificate, CertificateId, Changes, Configuration, PrivateKey, Server, ServerName};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use rustls::{SignatureScheme, SupportedProtocolVersion};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

type Pair = (Vec<Vec<u8>>, PrivateKey);

fn pair(folder: &Path, bits: u32) -> Pair {
    let kind = format!("rsa:{bits}");
    let run = Command::new("openssl")
        .args(["req", "-x509", "-newkey", &kind, "-nodes", "-subj", "/CN=a"])
        .args(["-keyout", "key", "-out", "crt"])
        .current_dir(folder)
        .output()
        .expect("openssl is there");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let chain = CertificateDer::from_pem_file(folder.join("crt")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(folder.join("key")).expect("a key");
    (vec![chain.to_vec()], PrivateKey(key.secret_der().to_vec()))
}

/// A host for each certificate, of its name with a dot instead of the slash.
fn configuration(certificates: &[(&str, &Pair)]) -> Configuration {
    let mut made = Configuration::default();
    for (id, (chain, key)) in certificates {
        let host = ServerName::new(id.replace('/', "."));
        let id = CertificateId::new(*id);
        let (chain, key) = (chain.clone(), key.clone());
        let certificate =
            Certificate { id: id.clone(), chain, key, names: vec![].into(), not_after: 0 };
        made.certificates.insert(id.clone(), Arc::new(certificate));
        let server = Server { certificate: Some(id), ..Server::new(host.clone()) };
        made.servers.insert(host, Arc::new(server));
    }
    made
}

fn first(configuration: &Configuration) -> Certificates {
    let none = Certificates::new(Arc::new(self_signed().expect("a certificate")));
    let changes = Changes::between(&Configuration::default(), configuration);
    none.follow(configuration, &changes)
}

/// Whether a server answers a client's first words with its certificate and a signature.
fn signs(all: &Certificates, host: &str, version: &'static SupportedProtocolVersion) -> bool {
    let provider = Arc::new(default_provider());
    let client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let certificates = Arc::new(ArcSwap::from_pointee(all.clone()));
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ByName { certificates, staples: None }));
    let name = host.to_owned().try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::new(client), name).expect("a client");
    let mut server = ServerConnection::new(Arc::new(server)).expect("a server");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("it can be written");
    server.read_tls(&mut hello.as_slice()).expect("it can be read");
    server.process_new_packets().is_ok()
}

/// Uses up signatures with a host's key; false if there seems to be no end of them.
fn uses_up(all: &Certificates, host: &str) -> bool {
    let key = all.choose(Some(host)).key.clone();
    (0..1000).any(|_| key.choose_scheme(&[SignatureScheme::RSA_PSS_SHA256]).is_none())
}

/// Whether `host` gets no signature after `by` has used them up. They come back while a slow machine looks away.
fn is_refused(
    all: &Certificates,
    by: &str,
    host: &str,
    version: &'static SupportedProtocolVersion,
) -> bool {
    (0..100).any(|_| uses_up(all, by) && !signs(all, host, version))
}

#[test]
fn a_namespace_has_few_handshakes_with_long_keys_and_others_have_theirs() {
    use rustls::version::{TLS12, TLS13};
    let folder = tempfile::tempdir().expect("a folder");
    let (long, usual) = (pair(folder.path(), 4608), pair(folder.path(), 4096));
    let all =
        [("a/one", &long), ("a/two", &long), ("a/usual", &usual), ("ab/b", &long), ("b/b", &long)];
    let made = configuration(&all);
    let served = first(&made);
    for host in ["a.one", "a.two", "a.usual", "ab.b", "b.b"] {
        assert!(signs(&served, host, &TLS12) && signs(&served, host, &TLS13), "{host}");
    }
    assert!(is_refused(&served, "a.one", "a.one", &TLS13));
    assert!(is_refused(&served, "a.one", "a.one", &TLS12));
    assert!(is_refused(&served, "a.one", "a.two", &TLS13), "a second key is worth nothing");
    assert!(uses_up(&served, "a.one"));
    assert!(signs(&served, "ab.b", &TLS13) && signs(&served, "b.b", &TLS12));
    assert!(!uses_up(&served, "a.usual"), "4,096 bits are not counted");

    let changes = Changes { certificates: vec![CertificateId::new("a/one")], ..Changes::default() };
    assert!(uses_up(&served, "a.two"));
    let renewed = served.follow(&made, &changes);
    assert!(is_refused(&renewed, "a.two", "a.one", &TLS13), "nor is a renewed one");
    let counted = renewed.refused_handshakes();
    assert!(counted >= 8 && served.refused_handshakes() == counted, "all are counted together");
}

#[test]
fn the_operators_default_certificate_is_bounded_only_while_it_is_not_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = pair(folder.path(), 4608);
    let own = configuration(&[("a/one", &long), ("a/two", &long)]);
    let default_is = |id: &str| Configuration {
        default_certificate: Some(CertificateId::new(id)),
        ..own.clone()
    };
    let changed = Changes { default_certificate: true, ..Changes::default() };
    let one = first(&default_is("a/one"));
    assert!(uses_up(&one, "a.two") && !uses_up(&one, "a.one"));
    let two = one.follow(&default_is("a/two"), &changed);
    assert!(uses_up(&two, "a.one") && !uses_up(&two, "a.two"));
    let none = two.follow(&own, &changed);
    assert!(uses_up(&none, "a.one") && uses_up(&none, "a.two"));
}
