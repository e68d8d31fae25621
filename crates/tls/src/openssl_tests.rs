//! Certificates and lists as `openssl` writes them: what it takes is taken here, what it refuses is refused.

use super::{Verdict, Verifier};
use model::policy::{ClientDemand, ClientErrorPage, ClientVerification};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const SETTINGS: &str = "
[req]
distinguished_name = name
[name]
[ca]
default_ca = list
[list]
database = index.txt
default_md = sha256
default_crl_days = 30
[with_number]
database = index.txt
default_md = sha256
default_crl_days = 30
crlnumber = number
[extensions]
authorityKeyIdentifier = keyid:always
[root]
basicConstraints = critical,CA:TRUE
[signs_nothing]
basicConstraints = critical,CA:TRUE
keyUsage = digitalSignature
[says_nothing]
subjectKeyIdentifier = hash
[is_none]
basicConstraints = critical,CA:FALSE
[signs_alone]
keyUsage = keyCertSign
[is_none_and_signs]
basicConstraints = critical,CA:FALSE
keyUsage = keyCertSign
[of_netscape]
nsCertType = sslCA
[client_of_netscape]
nsCertType = client
[server_of_netscape]
nsCertType = server
[root_for_servers]
basicConstraints = critical,CA:TRUE
extendedKeyUsage = serverAuth
[root_for_clients]
basicConstraints = critical,CA:TRUE
keyUsage = keyCertSign,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
[root_for_anything]
basicConstraints = critical,CA:TRUE
extendedKeyUsage = anyExtendedKeyUsage
[signs_no_lists]
basicConstraints = critical,CA:TRUE
keyUsage = keyCertSign
[signs]
keyUsage = digitalSignature
[encrypts]
keyUsage = keyEncipherment
[serves]
extendedKeyUsage = serverAuth
[anything]
extendedKeyUsage = anyExtendedKeyUsage
[strange]
1.2.3.4 = critical,ASN1:NULL
[delta]
2.5.29.27 = critical,ASN1:INTEGER:1
[indirect]
issuingDistributionPoint = critical,@place
[place]
indirectCRL = TRUE
";

/// A folder in which `openssl` works.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().expect("a folder"));
        bench.write("openssl.cnf", SETTINGS);
        bench.write("index.txt", "");
        bench.write("number", "01\n");
        bench
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("a file");
    }

    /// Runs a command, words separated by spaces; returns whether it succeeded, and what it said.
    fn tries(&self, command: &str) -> (bool, String) {
        let run = Command::new("openssl")
            .args(command.split(' '))
            .current_dir(self.path())
            .env("OPENSSL_CONF", self.path().join("openssl.cnf"))
            .output()
            .expect("openssl is there");
        let said = [run.stdout, run.stderr].concat();
        (run.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    fn run(&self, command: &str) {
        let (done, said) = self.tries(command);
        assert!(done, "openssl {command}: {said}");
    }

    fn key(&self, name: &str) {
        self.run(&format!("ecparam -name prime256v1 -genkey -out {name}.key"));
        self.run(&format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"));
    }

    /// A self-signed certificate; `how` are further words for `openssl x509`.
    fn root(&self, name: &str, how: &str) {
        self.key(name);
        let sign = format!("-signkey {name}.key -out {name}.crt -days 100");
        self.run(&format!("x509 -req -in {name}.csr {sign}{how}"));
    }

    /// A certificate that `root` has signed.
    fn client(&self, name: &str, root: &str, how: &str) {
        self.key(name);
        let sign = format!("-CA {root}.crt -CAkey {root}.key -out {name}.crt -days 50");
        self.run(&format!("x509 -req -in {name}.csr {sign}{how}"));
    }

    fn revoke(&self, root: &str, client: &str) {
        self.run(&format!(
            "ca -config openssl.cnf -keyfile {root}.key -cert {root}.crt -revoke {client}.crt"
        ));
    }

    fn list(&self, root: &str, name: &str, how: &str) {
        let ca = format!("ca -config openssl.cnf -gencrl -keyfile {root}.key -cert {root}.crt");
        self.run(&format!("{ca} -out {name}.crl{how}"));
    }

    fn verifier(&self, root: &str, list: Option<&str>) -> Verifier {
        let path = |name: String| self.path().join(name);
        let authority = CertificateDer::from_pem_file(path(format!("{root}.crt")));
        let read = |list: &str| {
            let list = CertificateRevocationListDer::from_pem_file(path(format!("{list}.crl")));
            Arc::from(list.expect("a list").as_ref())
        };
        Verifier::new(Arc::new(ClientVerification {
            secret: "demo/ca".to_owned(),
            authorities: [Arc::from(authority.expect("a root").as_ref())].into(),
            revocations: list.map(read).into_iter().collect(),
            demand: ClientDemand::Required,
            depth: 1,
            subject: None,
            error_page: ClientErrorPage::Plain,
            pass_certificate: false,
        }))
    }

    /// What is made of a client here, at this second.
    fn ours(&self, root: &str, list: Option<&str>, client: &str, second: u64) -> Verdict {
        let path = self.path().join(format!("{client}.crt"));
        let chain = [CertificateDer::from_pem_file(path).expect("a certificate")];
        let now = UnixTime::since_unix_epoch(Duration::from_secs(second));
        self.verifier(root, list).verdict(&chain, now)
    }

    /// What is made of a client so many days from now, here and by `openssl verify`, which have to agree.
    fn verdict(&self, root: &str, list: Option<&str>, client: &str, days: u64) -> Verdict {
        let now = UnixTime::now().as_secs() + days * 86_400;
        let lists = list.map(|list| format!(" -crl_check_all -CRLfile {list}.crl"));
        let (taken, said) = self.tries(&format!(
            "verify -auth_level 1 -purpose sslclient -attime {now} -CAfile {root}.crt{} {client}.crt",
            lists.unwrap_or_default()
        ));
        let ours = self.ours(root, list, client, now);
        assert_eq!(ours == Verdict::Good, taken, "{client} of {root}: {ours:?}, but {said}");
        ours
    }
}

#[test]
fn certificates_of_every_kind_are_judged_as_openssl_judges_them() {
    let bench = Bench::new();
    let with = |section: &str| format!(" -extfile openssl.cnf -extensions {section}");
    bench.root("root", &with("root"));
    bench.root("old-root", "");
    bench.root("idle", &with("signs_nothing"));
    let negative = format!("{} -set_serial -77", with("signs"));
    for root in ["root", "old-root", "idle"] {
        bench.client(&format!("{root}-old"), root, "");
        bench.client(&format!("{root}-signs"), root, &with("signs"));
    }
    bench.client("encrypts", "root", &with("encrypts"));
    bench.client("serves", "root", &with("serves"));
    bench.client("anything", "root", &with("anything"));
    bench.client("strange", "root", &with("strange"));
    bench.client("negative", "root", &negative);
    bench.client("weak", "root", &format!("{} -sha1", with("signs")));
    bench.client("strong", "root", &format!("{} -sha512", with("signs")));
    let good = ["root-old", "root-signs", "negative", "strong"];
    for client in good {
        assert_eq!(bench.verdict("root", None, client, 0), Verdict::Good, "{client}");
    }
    for client in
        ["encrypts", "serves", "anything", "strange", "weak", "old-root-old", "idle-signs"]
    {
        assert_ne!(bench.verdict("root", None, client, 0), Verdict::Good, "{client}");
    }
    assert_eq!(bench.verdict("old-root", None, "old-root-old", 0), Verdict::Good);
    assert_eq!(bench.verdict("old-root", None, "old-root-signs", 0), Verdict::Good);
    let idle = Verdict::Bad("invalid CA certificate");
    assert_eq!(bench.verdict("idle", None, "idle-signs", 0), idle);
    assert_eq!(bench.verdict("idle", None, "idle-old", 0), idle);
    let expired = Verdict::Bad("certificate has expired");
    assert_eq!(bench.verdict("root", None, "root-old", 60), expired);
    assert_eq!(bench.verdict("root", None, "root-signs", 60), expired);
}

#[test]
fn a_root_that_may_not_sign_is_none() {
    let bench = Bench::new();
    let with = |section: &str| format!(" -extfile openssl.cnf -extensions {section}");
    for (root, signs, is_client) in [
        ("says_nothing", false, true),
        ("is_none", false, true),
        ("signs", false, true),
        ("signs_alone", true, false),
        ("is_none_and_signs", false, false),
        ("signs_nothing", false, true),
        ("of_netscape", true, false),
        ("client_of_netscape", false, true),
        ("server_of_netscape", false, false),
        ("root", true, true),
        ("root_for_servers", false, false),
        ("root_for_clients", true, true),
        ("root_for_anything", false, false),
    ] {
        bench.root(root, &with(root));
        for (client, how) in [("new", with("says_nothing")), ("old", String::new())] {
            let client = format!("{client}_{root}");
            bench.client(&client, root, &how);
            let verdict = bench.verdict(root, None, &client, 0);
            assert_eq!(verdict == Verdict::Good, signs, "{client}: {verdict:?}");
            assert!(!matches!(verdict, Verdict::Unknown(_)), "it is known, and no authority");
        }
        // OpenSSL takes one that clients show themselves, whatever it may sign.
        let verdict = bench.verdict(root, None, root, 0);
        assert_eq!(verdict == Verdict::Good, is_client, "{root}: {verdict:?}");
    }
    bench.root("first_version", "");
    bench.client("of_it", "first_version", &with("says_nothing"));
    assert_eq!(bench.verdict("first_version", None, "of_it", 0), Verdict::Good);
}

#[test]
fn lists_of_every_kind_count_as_openssl_counts_them() {
    let bench = Bench::new();
    let with = |section: &str| format!(" -extfile openssl.cnf -extensions {section}");
    bench.root("root", &with("root"));
    bench.root("other", &with("root"));
    bench.root("signs-no-lists", &with("signs_no_lists"));
    for (client, how) in [("alice", with("signs")), ("robert", with("signs"))] {
        bench.client(client, "root", &how);
        bench.client(&format!("old-{client}"), "root", "");
    }
    bench.client("carol", "signs-no-lists", &with("signs"));
    bench.revoke("root", "robert");
    bench.revoke("root", "old-robert");
    bench.list("root", "first-version", "");
    bench.list("root", "without-number", " -crlexts extensions");
    bench.list("other", "others", "");
    bench.list("signs-no-lists", "unfit", "");
    bench.list("root", "numbered", " -name with_number -crlexts extensions");
    let version = |list: &str| bench.tries(&format!("crl -noout -text -in {list}.crl")).1;
    assert!(version("first-version").contains("Version 1"), "{}", version("first-version"));
    assert!(version("numbered").contains("CRL Number"), "{}", version("numbered"));
    for list in ["first-version", "without-number", "numbered"] {
        for (client, wanted) in
            [("alice", Verdict::Good), ("robert", Verdict::Bad("certificate revoked"))]
        {
            assert_eq!(bench.verdict("root", Some(list), client, 0), wanted, "{list} {client}");
            let old = format!("old-{client}");
            assert_eq!(bench.verdict("root", Some(list), &old, 0), wanted, "{list} {old}");
        }
        let ended = Verdict::Bad("CRL has expired");
        assert_eq!(bench.verdict("root", Some(list), "alice", 40), ended, "{list}");
    }
    let none = Verdict::Bad("unable to get certificate CRL");
    for unfit in ["strange", "indirect"] {
        bench.list("root", unfit, &format!(" -crlexts {unfit}"));
        assert_eq!(bench.verdict("root", Some(unfit), "alice", 0), none, "{unfit}");
    }
    // OpenSSL takes what changed for all that there is.
    bench.list("root", "delta", " -crlexts delta");
    let now = UnixTime::now().as_secs();
    assert_eq!(bench.ours("root", Some("delta"), "alice", now), none);
    assert_eq!(bench.verdict("root", Some("others"), "alice", 0), none);
    assert_ne!(bench.verdict("signs-no-lists", Some("unfit"), "carol", 0), Verdict::Good);
}

#[test]
fn of_very_many_roots_of_one_name_a_bounded_number_is_tried() {
    let bench = Bench::new();
    bench.root("root", "");
    bench.client("old", "root", "");
    let read = |name: &str| {
        let path = bench.path().join(format!("{name}.crt"));
        CertificateDer::from_pem_file(path).expect("a certificate")
    };
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "root");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let other = || {
        let key = rcgen::KeyPair::generate().expect("a key");
        Arc::from(params.self_signed(&key).expect("a certificate").der().as_ref())
    };
    let others: Vec<Arc<[u8]>> = (0..crate::ways::TO_ROOTS).map(|_| other()).collect();
    let behind = |others: &[Arc<[u8]>]| {
        let root = Arc::from(read("root").as_ref());
        let settings = &bench.verifier("root", None).settings;
        let authorities = others.iter().cloned().chain([root]).collect();
        let verifier =
            Verifier::new(Arc::new(ClientVerification { authorities, ..(**settings).clone() }));
        verifier.verdict(&[read("old")], UnixTime::now())
    };
    assert_eq!(behind(&others[1..]), Verdict::Good);
    assert_ne!(behind(&others), Verdict::Good);
}
