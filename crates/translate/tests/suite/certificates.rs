//! TLS sections, Secrets and the certificate of each host.

use crate::builders::*;
use model::policy::{ClientCertificate, UpstreamTls};
use model::{CertificateId, Configuration, PathKind, ServerName, TlsVersion};
use objects::{Ingress, IngressTls, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;
use translate::{Options, Translation, Translator, translate};

fn with_tls(name: &str, host: &str, tls: Vec<IngressTls>) -> Ingress {
    Ingress { tls, ..simple("demo", name, host, &format!("/{name}"), "s") }
}

fn pair(name: &str, names: &[&str]) -> objects::Secret {
    let (certificate, key) = certificate(names);
    secret("demo", name, &[("tls.crt", &certificate), ("tls.key", &key)])
}

fn of(configuration: &Configuration, host: &str) -> Option<String> {
    configuration.servers[&ServerName::new(host)].certificate.as_ref().map(ToString::to_string)
}

fn chosen(snapshot: &Snapshot, host: &str) -> Option<String> {
    of(&translate(snapshot, &Options::default()).configuration, host)
}

/// What becomes of a host whose Secret `demo/cert` has this.
fn with_secret(data: &[(&str, &str)]) -> Translation {
    let mut snapshot = cluster();
    put_secret(&mut snapshot, secret("demo", "cert", data));
    put_ingress(
        &mut snapshot,
        with_tls("shop", "shop.test", vec![tls(&["shop.test"], Some("cert"))]),
    );
    translate(&snapshot, &Options::default())
}

#[test]
fn the_section_that_lists_the_host_decides_else_the_one_whose_certificate_covers_it() {
    let mut snapshot = cluster();
    put_secret(&mut snapshot, pair("right", &["*.shop.test"]));
    put_secret(&mut snapshot, pair("wrong", &["else.test"]));
    let sections =
        || vec![tls(&["elsewhere.test"], Some("right")), tls(&["A.shop.test"], Some("wrong"))];
    put_ingress(&mut snapshot, with_tls("listed", "a.shop.test", sections()));
    put_ingress(&mut snapshot, with_tls("covered", "b.shop.test", sections()));
    put_ingress(&mut snapshot, with_tls("wild", "*.shop.test", sections()));
    put_ingress(&mut snapshot, with_tls("deep", "a.b.shop.test", sections()));
    put_ingress(&mut snapshot, with_tls("plain", "plain.test", Vec::new()));
    put_ingress(&mut snapshot, with_tls("bare", "bare.test", vec![tls(&["bare.test"], None)]));
    assert_eq!(chosen(&snapshot, "a.shop.test").as_deref(), Some("default"));
    assert_eq!(chosen(&snapshot, "b.shop.test").as_deref(), Some("demo/right"));
    assert_eq!(chosen(&snapshot, "*.shop.test").as_deref(), Some("demo/right"));
    assert_eq!(chosen(&snapshot, "a.b.shop.test").as_deref(), Some("default"));
    assert_eq!(chosen(&snapshot, "plain.test"), None);
    assert_eq!(chosen(&snapshot, "bare.test").as_deref(), Some("default"));
    assert_eq!(chosen(&snapshot, "_"), None);
    let configuration = translate(&snapshot, &Options::default()).configuration;
    let kept: Vec<&CertificateId> = configuration.certificates.keys().collect();
    assert_eq!(kept, [&CertificateId::new("demo/right")], "only what servers name");
}

#[test]
fn the_first_ingress_of_a_host_with_tls_decides_even_if_its_secret_is_missing() {
    let mut snapshot = cluster();
    put_secret(&mut snapshot, pair("right", &["shop.test"]));
    put_ingress(&mut snapshot, with_tls("z", "shop.test", Vec::new()));
    put_ingress(
        &mut snapshot,
        with_tls("y", "shop.test", vec![tls(&["shop.test"], Some("missing"))]),
    );
    put_ingress(
        &mut snapshot,
        with_tls("x", "shop.test", vec![tls(&["shop.test"], Some("right"))]),
    );
    assert_eq!(chosen(&snapshot, "shop.test").as_deref(), Some("default"));
}

#[test]
fn what_hides_the_beginning_of_pem_is_told() {
    let (certificate, key) = certificate(&["shop.test"]);
    let (authority, _) = crate::builders::certificate(&["ca.test"]);
    let with_mark = |text: &str| format!("\u{feff}{text}");
    let indented = |text: &str| text.replace("-----BEGIN", "  -----BEGIN");
    let chain = [certificate.as_str(), authority.as_str()].concat();
    for (chain, key, expected) in [
        (
            with_mark(&certificate),
            key.clone(),
            "no certificate in tls.crt (its first line begins with a byte order mark",
        ),
        (
            with_mark(&chain),
            key.clone(),
            "the first certificate that is read of tls.crt, as its first line begins with a",
        ),
        (
            certificate.clone(),
            with_mark(&key),
            "no private key in tls.key (its first line begins with a byte order mark",
        ),
        (
            indented(&certificate),
            key.clone(),
            "no certificate in tls.crt (its first BEGIN is indented",
        ),
        (
            certificate.clone(),
            format!("key: {key}"),
            "tls.key (something stands before its first BEGIN",
        ),
    ] {
        let found = with_secret(&[("tls.crt", &chain), ("tls.key", &key)]);
        assert!(found.problems.to_string().contains(expected), "{expected}: {}", found.problems);
    }
    // A line of its own above the block hides nothing.
    let found =
        with_secret(&[("tls.crt", &with_mark(&format!("\n{certificate}"))), ("tls.key", &key)]);
    assert!(!found.problems.to_string().contains("tls.crt"), "{}", found.problems);
    let (_, problems) =
        asked_of_clients(&with_mark(&[authority.as_str(), &certificate].concat()), "");
    assert!(
        problems.contains("in ca.crt that does not count: its first line begins"),
        "{problems}"
    );
}

#[test]
fn no_part_of_a_private_key_is_told_however_it_is_broken() {
    let (certificate, key) = certificate(&["shop.test"]);
    let escaped = key.replace('\n', "\\n");
    let in_one_line = key.replace('\n', " ");
    let without_end = key.replace("-----END", "");
    let odd = key.replacen("-----\n", "-----\n!", 1);
    for broken in [&escaped, &in_one_line, &without_end, &odd] {
        for (place, chain) in [("tls.key", &certificate), ("tls.crt", broken)] {
            let found = with_secret(&[("tls.crt", chain), ("tls.key", broken)]);
            let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
            let told = told.join("\n");
            assert!(told.contains(place), "{told}");
            // As text, and as the numbers of its bytes.
            assert!(!told.contains(&key[30..50]) && !told.contains("45, 45"), "{told}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_secret_is_said() {
    let (certificate, _) = certificate(&["shop.test"]);
    let (_, other_key) = crate::builders::certificate(&["shop.test"]);
    // Nothing here makes such a key any more: this one is of OpenSSL.
    let small = include_str!("rsa-1024.pem");
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[("tls.crt", small), ("tls.key", small)], "has an RSA key of 1024 bits, and 2048 are"),
        (&[("tls.crt", &certificate), ("tls.key", &other_key)], "does not belong"),
        (&[("tls.crt", &certificate)], "has no tls.key"),
        (&[("tls.crt", "text"), ("tls.key", &other_key)], "has no certificate in tls.crt"),
        (&[("tls.crt", &other_key), ("tls.key", &other_key)], "has no certificate in tls.crt"),
        (&[("tls.crt", &certificate), ("tls.key", "text")], "has no private key"),
    ];
    for (data, message) in cases {
        let found = with_secret(data);
        assert_eq!(of(&found.configuration, "shop.test").as_deref(), Some("default"));
        assert!(found.problems.to_string().contains(message), "{message}: {}", found.problems);
    }
}

#[test]
fn a_renewed_certificate_changes_no_server_and_one_that_appears_does() {
    let mut snapshot = cluster();
    put_ingress(
        &mut snapshot,
        with_tls("shop", "shop.test", vec![tls(&["shop.test"], Some("cert"))]),
    );
    let mut translator = Translator::new(Options::default());
    assert_eq!(
        of(&translator.update(&snapshot).configuration, "shop.test").as_deref(),
        Some("default")
    );
    put_secret(&mut snapshot, pair("cert", &["shop.test"]));
    let appeared = translator.update(&snapshot);
    assert_eq!(of(&appeared.configuration, "shop.test").as_deref(), Some("demo/cert"));
    assert!(!appeared.problems.to_string().contains("spec.tls"), "{}", appeared.problems);
    put_secret(&mut snapshot, pair("cert", &["shop.test"]));
    let renewed = translator.update(&snapshot).changes;
    assert_eq!(renewed.certificates, [CertificateId::new("demo/cert")]);
    assert!(renewed.servers.is_empty());
}

#[test]
fn a_secret_that_was_renewed_badly_stays_what_it_was() {
    let (certificate, key) = certificate(&["shop.test"]);
    let (_, other_key) = crate::builders::certificate(&["shop.test"]);
    let pair = [("tls.crt", certificate.as_str()), ("tls.key", key.as_str())];
    let mut good = pair.to_vec();
    let (authority, _) = authority_with_lists(0);
    good.push(("ca.crt", authority.as_str()));
    let mut snapshot = cluster();
    put_secret(&mut snapshot, secret("demo", "cert", &good));
    let mut guarded = with_tls("shop", "shop.test", vec![tls(&["shop.test"], Some("cert"))]);
    annotate(&mut guarded, "auth-tls-secret", "demo/cert");
    put_ingress(&mut snapshot, guarded);
    let options = Options {
        default_ssl_certificate: Some(crate::builders::key("demo", "cert")),
        ..Options::default()
    };
    let mut translator = Translator::new(options);
    let first = translator.update(&snapshot);
    assert!(!first.problems.to_string().contains("Secret"), "{}", first.problems);
    let broken: [(&[(&str, &str)], &str); 5] = [
        (&[], "tls.crt: the renewed Secret has no tls.crt"),
        (&[("tls.crt", &certificate), ("tls.key", &other_key)], "does not belong to tls.crt"),
        (&[("tls.crt", "\n"), ("tls.key", &key), ("ca.crt", &authority)], "tls.crt: the renewed"),
        (&[pair[0], pair[1], ("ca.crt", "text")], "ca.crt: the renewed Secret has no certificate"),
        (&[good[0], good[1], good[2], ("ca.crl", "text")], "ca.crt: the renewed Secret has no rev"),
    ];
    for (data, message) in broken {
        put_secret(&mut snapshot, secret("demo", "cert", data));
        let then = translator.update(&snapshot);
        assert_eq!(then.configuration, first.configuration, "{message}");
        assert!(then.problems.to_string().contains(message), "{message}: {}", then.problems);
        assert!(then.problems.to_string().contains("in use until then"), "{}", then.problems);
        assert!(translator.update(&snapshot).changes.is_empty());
    }
    // What is taken out on purpose is gone, and what is good again counts.
    put_secret(&mut snapshot, secret("demo", "cert", &pair));
    let open = translator.update(&snapshot);
    assert!(open.problems.to_string().contains("has no ca.crt"), "{}", open.problems);
    put_secret(&mut snapshot, secret("demo", "cert", &good));
    assert_eq!(translator.update(&snapshot).configuration, first.configuration);
    snapshot.secrets.remove(&crate::builders::key("demo", "cert"));
    let gone = translator.update(&snapshot);
    assert_eq!(of(&gone.configuration, "shop.test").as_deref(), Some("default"));
    assert!(!gone.problems.to_string().contains("renewed"), "{}", gone.problems);
}

/// An authority's certificate in PEM, and as many revocation lists of it.
fn authority_with_lists(number: u64) -> (String, Vec<String>) {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
    let key = rcgen::KeyPair::generate().expect("keys can be made");
    let certificate = params.self_signed(&key).expect("certificates can be made").pem();
    let issuer = rcgen::Issuer::new(params, key);
    let list = |number: u64| {
        let params = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2024, 1, 1),
            next_update: rcgen::date_time_ymd(2124, 1, 1),
            crl_number: rcgen::SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&issuer).expect("lists can be made");
        list.pem().expect("and written")
    };
    (certificate, (1..=number).map(list).collect())
}

/// What a host asks of its clients whose authorities and lists are these, and what is told of it.
pub(crate) fn asked_of_clients(
    authorities: &str,
    lists: &str,
) -> (Option<ClientCertificate>, String) {
    let mut snapshot = cluster();
    put_secret(&mut snapshot, secret("demo", "ca", &[("ca.crt", authorities), ("ca.crl", lists)]));
    let mut guarded = with_tls("shop", "shop.test", Vec::new());
    annotate(&mut guarded, "auth-tls-secret", "demo/ca");
    put_ingress(&mut snapshot, guarded);
    let found = translate(&snapshot, &Options::default());
    let server = &found.configuration.servers[&ServerName::new("shop.test")];
    (server.client_certificate.clone(), found.problems.to_string())
}

#[test]
fn lists_and_authorities_of_clients_count_once_and_too_many_close_the_host() {
    let (authority, lists) = authority_with_lists(65);
    let all = lists[..64].concat().repeat(3);
    match asked_of_clients(&authority.repeat(3), &all) {
        (Some(ClientCertificate::Verified(asked)), _) => {
            assert_eq!((asked.authorities.len(), asked.revocations.len()), (1, 64));
        }
        other => panic!("{other:?}"),
    }
    let (client, _) = certificate(&["client.test"]);
    let (_, told) = asked_of_clients(&[authority.as_str(), &client].concat(), &lists[0]);
    assert!(
        told.contains("in ca.crt that may sign none of clients (1, the first is CN="),
        "{told}"
    );
    let closed = |authorities: &str, lists: &str, why: &str| {
        let (asked, problems) = asked_of_clients(authorities, lists);
        assert!(matches!(asked, Some(ClientCertificate::Closed(_))), "{asked:?}");
        assert!(problems.contains(why) && problems.contains("is closed until"), "{problems}");
    };
    let why = "Secret demo/ca has more than 64 revocation lists in ca.crl: leave the newest of";
    closed(&authority, &lists.concat(), why);
    let authorities: String = (0..=1000).map(|_| certificate(&["ca.test"]).0).collect();
    closed(&authorities, &lists[0], "has 1001 authorities in ca.crt, and 1000 are the most");
}

#[test]
fn authorities_are_read_once_for_all_ingresses_and_kept_while_the_secret_says_the_same() {
    let (authority, _) = authority_with_lists(1);
    let text = |lines: &str| secret("demo", "ca", &[("ca.crt", &format!("{lines}{authority}"))]);
    let mut snapshot = cluster();
    put_secret(&mut snapshot, text(""));
    for name in ["a", "b"] {
        let mut guarded = with_tls(name, &format!("{name}.test"), Vec::new());
        annotate(&mut guarded, "auth-tls-secret", "demo/ca");
        annotate(&mut guarded, "auth-tls-error-page", &format!("https://help.test/{name}"));
        put_ingress(&mut snapshot, guarded);
    }
    let mut translator = Translator::new(Options::default());
    let mut trusted = |snapshot: &Snapshot| {
        let found = translator.update(snapshot).configuration;
        ["a.test", "b.test"].map(|host| {
            match &found.servers[&ServerName::new(host)].client_certificate {
                Some(ClientCertificate::Verified(asked)) => asked.authorities.clone(),
                other => panic!("{other:?}"),
            }
        })
    };
    let [a, b] = trusted(&snapshot);
    assert!(Arc::ptr_eq(&a, &b), "once for both");
    put_secret(&mut snapshot, text("\n"));
    let again = trusted(&snapshot);
    assert!(again.iter().all(|one| Arc::ptr_eq(one, &a)), "another text, and the same in it");
    put_secret(&mut snapshot, secret("demo", "ca", &[("ca.crt", &certificate(&["ca.test"]).0)]));
    let [other, _] = trusted(&snapshot);
    assert_ne!(other, a);
}

#[test]
fn the_default_certificate_comes_and_goes_with_its_secret() {
    let options =
        Options { default_ssl_certificate: Some(key("demo", "cert")), ..Options::default() };
    let mut snapshot = cluster();
    let mut translator = Translator::new(options);
    let without = translator.update(&snapshot);
    assert_eq!(without.configuration.default_certificate, None);
    assert!(
        without
            .problems
            .to_string()
            .contains("--default-ssl-certificate: the Secret does not exist")
    );
    put_secret(&mut snapshot, pair("cert", &["shop.test"]));
    let with = translator.update(&snapshot);
    assert_eq!(with.configuration.default_certificate, Some(CertificateId::new("demo/cert")));
    assert!(with.changes.default_certificate && with.problems.is_empty());
}

#[test]
fn tls_towards_upstreams_needs_a_secret_of_the_same_namespace_with_authorities() {
    let (authority, own_key) = certificate(&["ca.test"]);
    let data = [
        ("tls.crt", authority.as_str()),
        ("tls.key", own_key.as_str()),
        ("ca.crt", authority.as_str()),
    ];
    let mut snapshot = cluster();
    put_secret(&mut snapshot, secret("demo", "client", &data));
    let speaks = |name: &str, host: &str, annotations: &[(&str, &str)]| {
        let mut made = simple("demo", name, host, &format!("/{name}"), "s");
        annotate(&mut made, "backend-protocol", "HTTPS");
        annotations.iter().for_each(|(name, value)| annotate(&mut made, name, value));
        made
    };
    let verified = [
        ("proxy-ssl-secret", "demo/client"),
        ("proxy-ssl-verify", "on"),
        ("proxy-ssl-name", "s.test"),
    ];
    put_ingress(&mut snapshot, speaks("z", "shop.test", &verified));
    put_ingress(&mut snapshot, speaks("a", "shop.test", &[]));
    // A Secret without authorities says nothing of whom to believe.
    let pair = [("tls.crt", authority.as_str()), ("tls.key", own_key.as_str())];
    put_secret(&mut snapshot, secret("demo", "pair", &pair));
    let named = [
        ("proxy-ssl-secret", "demo/pair"),
        ("proxy-ssl-server-name", "on"),
        ("proxy-ssl-name", "b.test"),
    ];
    put_ingress(&mut snapshot, speaks("b", "shop.test", &named));
    put_ingress(&mut snapshot, speaks("short", "short.test", &[("proxy-ssl-secret", "client")]));
    put_ingress(&mut snapshot, speaks("none", "none.test", &[("proxy-ssl-verify", "on")]));
    let configuration = translate(&snapshot, &Options::default()).configuration;
    let tls_of = |host: &str, path: &str| {
        let found = location(&configuration, host, path, PathKind::Prefix).expect("a location");
        found.policy.upstream_tls.clone()
    };
    let tls = tls_of("shop.test", "/z");
    assert!(tls.verify && tls.identity.is_some() && tls.authorities.len() == 1);
    assert_eq!(
        (tls.name.as_deref(), &tls.versions),
        (Some("s.test"), &BTreeSet::from([TlsVersion::Tls12]))
    );
    assert_eq!(tls_of("shop.test", "/a"), tls, "the first of the host counts for the others");
    let named = UpstreamTls { name: Some("b.test".to_owned()), server_name: true, ..tls.clone() };
    assert_eq!(tls_of("shop.test", "/b"), named);
    assert_eq!(tls_of("none.test", "/none"), UpstreamTls::default());
    assert!(is_denied(&configuration, "short.test", "/short"));
}

/// Runs `openssl` in a folder, words separated by spaces.
fn openssl(folder: &std::path::Path, command: &str) {
    let run = std::process::Command::new("openssl")
        .args(command.split(' '))
        .current_dir(folder)
        .output()
        .expect("openssl is there");
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "openssl {command}: {said}");
}

#[test]
fn pairs_are_taken_in_every_form_that_openssl_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let run = |command: &str| openssl(folder, command);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    run("req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -keyout ca.key -out ca.crt");
    run("genrsa -traditional -out pkcs1.key 2048");
    run("pkcs8 -topk8 -nocrypt -in pkcs1.key -out pkcs8.key");
    run("req -new -key pkcs1.key -subj /CN=shop.test -out rsa.csr");
    run("x509 -req -in rsa.csr -CA ca.crt -CAkey ca.key -out old.crt");
    run("x509 -req -in rsa.csr -CA ca.crt -CAkey ca.key -sha1 -set_serial -5 -out odd.crt");
    run("x509 -in old.crt -text -out text.crt");
    run("x509 -in old.crt -trustout -addtrust serverAuth -out trusted.crt");
    run("ecparam -name prime256v1 -genkey -out sec1.key");
    run("req -x509 -new -key sec1.key -subj /CN=shop.test -out ec.crt");
    run("req -x509 -newkey ed25519 -nodes -subj /CN=shop.test -keyout ed.key -out ed.crt");
    run("req -x509 -newkey rsa:1024 -nodes -subj /CN=shop.test -keyout short.key -out short.crt");
    assert!(read("sec1.key").contains("BEGIN EC PARAMETERS"), "{}", read("sec1.key"));
    assert!(read("pkcs1.key").contains("BEGIN RSA PRIVATE KEY"));
    let windows = |text: String| text.replace('\n', "\r\n");
    let (old, ca) = (read("old.crt"), read("ca.crt"));
    let cases = [
        ("PKCS#1", old.clone(), read("pkcs1.key"), true),
        ("PKCS#8", old.clone(), read("pkcs8.key"), true),
        ("SEC1 after its parameters", read("ec.crt"), read("sec1.key"), true),
        ("Ed25519", read("ed.crt"), read("ed.key"), true),
        ("SHA-1 and a negative serial number", read("odd.crt"), read("pkcs8.key"), true),
        ("text before it", read("text.crt"), read("pkcs8.key"), true),
        ("line ends of Windows", windows(old.clone()), windows(read("pkcs8.key")), true),
        (
            "text around both",
            format!("Bag\n{old}\nEnd"),
            format!("Key\n{}", read("pkcs8.key")),
            true,
        ),
        ("a chain", format!("{old}{ca}"), read("pkcs8.key"), true),
        (
            "key and certificate in both",
            format!("{old}{}", read("pkcs8.key")),
            format!("{old}{}", read("pkcs8.key")),
            true,
        ),
        ("a chain that begins with the authority", format!("{ca}{old}"), read("pkcs8.key"), false),
        ("a trusted certificate", read("trusted.crt"), read("pkcs8.key"), false),
        ("a key of 1024 bits", read("short.crt"), read("short.key"), false),
    ];
    for (what, certificate, key, is_taken) in cases {
        let found = with_secret(&[("tls.crt", &certificate), ("tls.key", &key)]);
        let wanted = if is_taken { "demo/cert" } else { "default" };
        let chosen = of(&found.configuration, "shop.test");
        assert_eq!(chosen.as_deref(), Some(wanted), "{what}: {}", found.problems);
    }
}

#[test]
fn a_chain_that_no_client_would_take_is_told_and_not_sent() {
    let (certificate, key) = certificate(&["a.shop.test"]);
    let times = |number: usize| {
        let mut snapshot = cluster();
        let chain = certificate.repeat(number);
        put_secret(
            &mut snapshot,
            secret("demo", "long", &[("tls.crt", &chain), ("tls.key", &key)]),
        );
        put_ingress(
            &mut snapshot,
            with_tls("a", "a.shop.test", vec![tls(&["a.shop.test"], Some("long"))]),
        );
        let found = translate(&snapshot, &Options::default());
        (of(&found.configuration, "a.shop.test"), found.problems.to_string())
    };
    let (used, problems) = times(100);
    assert_eq!(used.as_deref(), Some("demo/long"), "{problems}");
    let (used, problems) = times(1000);
    assert_eq!(used.as_deref(), Some("default"), "{problems}");
    assert!(
        problems.contains("bytes in tls.crt, of which clients take 102400 at most"),
        "{problems}"
    );
}

/// A Secret with a key of RSA.
fn rsa(bits: usize) -> objects::Secret {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "req -x509 -nodes -subj /CN=a.shop.test -keyout a.key -out a.crt -newkey";
    openssl(folder.path(), &format!("{command} rsa:{bits}"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    let (certificate, key) = (read("a.crt"), read("a.key"));
    secret("demo", "long", &[("tls.crt", &certificate), ("tls.key", &key)])
}

const LISTENERS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: demo, name: web}
spec:
  gatewayClassName: fairway
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: own, protocol: HTTPS, port: 443, hostname: a.shop.test, tls: {certificateRefs: [{name: long}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {namespace: demo, name: more}
spec:
  parentRef: {name: web}
  listeners: [{name: added, protocol: HTTPS, port: 443, hostname: b.shop.test, tls: {certificateRefs: [{name: long}]}}]
";

#[test]
fn a_key_that_is_dear_to_sign_with_is_served_and_told_to_whoever_shows_it_at_a_listener() {
    let mut snapshot = of_gateways(LISTENERS);
    let mut translator = Translator::new(Options::default());
    for (bits, is_told) in [(2048, false), (4608, true), (2048, false)] {
        put_secret(&mut snapshot, rsa(bits));
        let found = translator.update(&snapshot);
        assert_eq!(found.problems, translate(&snapshot, &Options::default()).problems);
        assert!(found.configuration.certificates.contains_key(&CertificateId::new("demo/long")));
        let told = found.problems.to_string();
        for (owner, listener) in [("Gateway demo/web", "own"), ("ListenerSet demo/more", "added")] {
            let wanted = format!(
                "Warning: {owner}: spec.listeners: listener {listener}: Secret demo/long has an RSA key of 4608 bits"
            );
            assert_eq!(told.contains(&wanted), is_told, "{bits}: {told}");
        }
    }
}

#[test]
fn a_key_that_is_dear_to_sign_with_is_served_and_told() {
    let said = |bits: usize| {
        let mut snapshot = cluster();
        put_secret(&mut snapshot, rsa(bits));
        put_ingress(
            &mut snapshot,
            with_tls("a", "a.shop.test", vec![tls(&["a.shop.test"], Some("long"))]),
        );
        let found = translate(&snapshot, &Options::default());
        assert_eq!(of(&found.configuration, "a.shop.test").as_deref(), Some("demo/long"));
        found.problems.to_string()
    };
    let usual = said(4096);
    assert!(!usual.contains("RSA key"), "{usual}");
    let told = said(4608);
    assert!(told.contains("Secret demo/long has an RSA key of 4608 bits"), "{told}");
    assert!(told.contains("renew it with one of P-256"), "{told}");
}

#[test]
fn what_was_told_of_a_certificate_ends_with_its_renewal_for_the_same_names() {
    let mut snapshot = cluster();
    put_ingress(
        &mut snapshot,
        with_tls("a", "a.shop.test", vec![tls(&["a.shop.test"], Some("long"))]),
    );
    let mut translator = Translator::new(Options::default());
    let (certificate, key) = certificate(&["a.shop.test"]);
    let renewed = secret("demo", "long", &[("tls.crt", &certificate), ("tls.key", &key)]);
    for (found, told) in [(rsa(2048), "subjectAltName"), (renewed, ""), (rsa(4608), "RSA key")] {
        put_secret(&mut snapshot, found);
        let found = translator.update(&snapshot);
        let anew = translate(&snapshot, &Options::default());
        assert_eq!(found.problems, anew.problems);
        assert!(found.problems.to_string().contains(told), "{told}: {}", found.problems);
    }
}

#[test]
fn a_locked_key_and_a_certificate_without_names_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    openssl(
        folder.path(),
        "req -x509 -nodes -subj /CN=a.test -newkey ed25519 -keyout a.key -out a.crt",
    );
    openssl(folder.path(), "pkcs8 -topk8 -passout pass:x -in a.key -out locked.key");
    openssl(folder.path(), "ecparam -name prime256v1 -genkey -noout -out ec.key");
    openssl(folder.path(), "ec -in ec.key -aes128 -passout pass:x -out old.key");
    let said = |key: &str| {
        let mut snapshot = cluster();
        let (certificate, key) = (read("a.crt"), read(key));
        put_secret(
            &mut snapshot,
            secret("demo", "pair", &[("tls.crt", &certificate), ("tls.key", &key)]),
        );
        put_ingress(&mut snapshot, with_tls("a", "a.test", vec![tls(&["a.test"], Some("pair"))]));
        translate(&snapshot, &Options::default()).problems.to_string()
    };
    let open = said("a.key");
    assert!(open.contains("no subjectAltName") && !open.contains("passphrase"), "{open}");
    for locked in ["locked.key", "old.key"] {
        let said = said(locked);
        assert!(said.contains("passphrase locks") && said.contains("openssl pkey"), "{said}");
    }
    let mut snapshot = cluster();
    put_secret(&mut snapshot, pair("pair", &["a.test"]));
    put_ingress(&mut snapshot, with_tls("a", "a.test", vec![tls(&["a.test"], Some("pair"))]));
    assert!(!translate(&snapshot, &Options::default()).problems.to_string().contains("Secret"));
}
