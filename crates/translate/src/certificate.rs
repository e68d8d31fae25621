//! From a Secret to a certificate that can be served: the chain and a key that is known to belong to it.

use model::policy::Identity;
use model::{Certificate, CertificateId, Message, PrivateKey, Why};
use objects::Secret;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject, SectionKind};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use x509_parser::extensions::DistributionPointName;
use x509_parser::prelude::{
    CertificateRevocationList, FromDer, GeneralName, ParsedExtension, X509Certificate, X509Version,
};
use x509_parser::public_key::PublicKey;

/// Bytes of the certificates of a chain at most: each handshake sends all of it and has a copy in memory until the peer
/// takes it. OpenSSL's clients take no more, others less.
const LONGEST_CHAIN: usize = 100 << 10;

/// Bits of the smallest RSA keys that the TLS library signs with.
const SMALLEST_RSA: usize = 2048;

/// Bits of RSA keys beyond which a namespace has few handshakes a second: `EACH_SECOND` of the TLS crate.
const COSTLY_RSA: usize = 4096;

/// Authorities in a Secret or a ConfigMap at most, revocation lists, and addresses for which a list is: each connection
/// is judged by them.
pub(crate) const MOST_AUTHORITIES: usize = 1000;
const MOST_LISTS: usize = 64;
const MOST_PLACES: usize = 1000;

/// A chain (DER, leaf first) with the key of its leaf.
type Pair = (Vec<Vec<u8>>, PrivateKey);

/// Authorities (DER), and the certificate that is shown to upstreams.
pub(crate) type Trust = (Vec<Arc<[u8]>>, Option<Identity>);

/// The certificate that a Secret holds; the error completes the sentence "Secret x …".
pub(crate) fn served(secret: &Secret) -> Result<Certificate, Message> {
    let (chain, key) = pair(secret)?;
    let leaf = chain.first().ok_or("has no certificate in tls.crt: put one there")?;
    let (names, not_after) = names(leaf)?;
    let id = CertificateId::new(format!("{}/{}", secret.meta.key.namespace, secret.meta.key.name));
    Ok(Certificate { id, chain, key, names: names.into(), not_after })
}

/// A certificate with what is found out once, whoever asks.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) certificate: Arc<Certificate>,
    said: OnceLock<Box<[Message]>>,
}

impl Judged {
    /// A certificate of which nothing was asked yet.
    pub(crate) fn of(certificate: Certificate) -> Self {
        Self { certificate: Arc::new(certificate), said: OnceLock::new() }
    }

    /// What is said of it to whoever serves it; completes sentences "Secret x …".
    pub(crate) fn said(&self) -> &[Message] {
        self.said.get_or_init(|| {
            let costly = costly(&self.certificate).map(|said| Why::TookIt.says(said));
            costly.into_iter().chain(nameless(&self.certificate).map(Message::from)).collect()
        })
    }
}

/// The authorities that an upstream's certificate must descend from, and the certificate shown to it.
pub(crate) fn trust(secret: &Secret) -> Result<Trust, Message> {
    let authorities = match field(secret, "ca.crt") {
        Some(pem) => distinct(pem, "upstreams")?,
        None => Vec::new(),
    };
    let has_pair = field(secret, "tls.crt").is_some() && field(secret, "tls.key").is_some();
    if authorities.is_empty() && !has_pair {
        return Err("has neither ca.crt nor tls.crt with tls.key: add them".into());
    }
    let identity = has_pair
        .then(|| pair(secret))
        .transpose()?
        .map(|(chain, key)| Identity { chain: chain.into_iter().map(Arc::from).collect(), key });
    Ok((authorities.into_iter().map(Arc::from).collect(), identity))
}

/// What certificates of clients are verified against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// `ca.crt`: certificates in DER.
    pub(crate) certificates: Arc<[Arc<[u8]>]>,
    /// `ca.crl`: revocation lists in DER.
    pub(crate) lists: Arc<[Arc<[u8]>]>,
    /// Whether one of the certificates may sign those of clients.
    pub(crate) may_sign: bool,
    /// Certificates that may not: how many they are, and the subject of the first.
    pub(crate) idle: Option<(usize, String)>,
    /// Why the first certificate of the text is not read, though others are.
    pub(crate) unseen: Option<&'static str>,
}

/// What certificates of clients are verified against; the error completes the sentence "Secret x …".
pub(crate) fn authorities(secret: &Secret) -> Result<Authorities, Message> {
    let pem = field(secret, "ca.crt").ok_or_else(|| {
        // With a certificate in it, the host was open with ingress-nginx; else it was closed.
        let message = "has no ca.crt: add the authorities of the clients' certificates";
        Why::Unknown.says(message)
    })?;
    let authorities = distinct(pem, "clients")?;
    let mut idle = None::<(usize, String)>;
    for der in &authorities {
        let one = read(der, "ca.crt")?;
        if !may_sign(&one) {
            idle.get_or_insert_with(|| (0, one.subject().to_string())).0 += 1;
        }
    }
    let lists = field(secret, "ca.crl").map_or(Ok(Vec::new()), revocations)?;
    let shared = |all: Vec<Vec<u8>>| all.into_iter().map(Arc::from).collect::<Arc<[Arc<[u8]>]>>();
    let certificates = shared(authorities);
    let may_sign = last_of(&certificates).is_some();
    Ok(Authorities { certificates, lists: shared(lists), may_sign, idle, unseen: unseen(pem) })
}

/// Authorities of a PEM text, each once.
fn distinct(pem: &[u8], whose: &str) -> Result<Vec<Vec<u8>>, Message> {
    let authorities = each_once(pem)?;
    few(authorities.len(), whose).map_err(|message| Why::TookIt.says(message))?;
    Ok(authorities)
}

fn each_once(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut authorities = certificates(pem, "ca.crt")?;
    let mut seen = HashSet::new();
    authorities.retain(|der| seen.insert(der.clone()));
    Ok(authorities)
}

/// Fails where there are more authorities than a connection should be judged by.
fn few(number: usize, whose: &str) -> Result<(), String> {
    if number <= MOST_AUTHORITIES {
        return Ok(());
    }
    Err(format!(
        "has {number} authorities in ca.crt, and {MOST_AUTHORITIES} are the most: leave those of the {whose} there"
    ))
}

/// The pair that a Secret holds, to be shown to upstreams; the error completes the sentence "Secret x …".
pub(crate) fn identity(secret: &Secret) -> Result<Identity, Message> {
    let (chain, key) = pair(secret)?;
    Ok(Identity { chain: chain.into_iter().map(Arc::from).collect(), key })
}

/// Certificates of authorities in DER, each once; the error completes the sentence "ConfigMap x …".
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<Arc<[u8]>>, String> {
    let found = each_once(pem)?;
    few(found.len(), "upstreams, or of the clients,")?;
    for der in &found {
        read(der, "ca.crt")?;
    }
    Ok(found.into_iter().map(Arc::from).collect())
}

/// The second at which the last of these authorities ends; none if no one of them is an authority.
pub(crate) fn last_of(authorities: &[Arc<[u8]>]) -> Option<i64> {
    let read = authorities.iter().filter_map(|der| read(der, "ca.crt").ok());
    read.filter(may_sign).map(|one| one.validity().not_after.timestamp()).max()
}

/// Whether a certificate may sign those of clients, as OpenSSL and the TLS crate have it (but for Netscape's types).
/// One of version 1 does not say what it is; of one of version 3 the key usage suffices where it has no
/// basicConstraints.
fn may_sign(one: &X509Certificate<'_>) -> bool {
    let (Ok(usage), Ok(constraints), Ok(purposes)) =
        (one.key_usage(), one.basic_constraints(), one.extended_key_usage())
    else {
        return false;
    };
    let says_so = match (&usage, &constraints) {
        (Some(usage), _) if !usage.value.key_cert_sign() => false,
        (_, Some(constraints)) => constraints.value.ca,
        (Some(_), None) => true,
        (None, None) => one.version() == X509Version::V1,
    };
    says_so && purposes.is_none_or(|purposes| purposes.value.client_auth)
}

/// What is said of a certificate with a key that is dear to sign with; completes the sentence "Secret x …".
pub(crate) fn costly(certificate: &Certificate) -> Option<String> {
    let leaf = read(certificate.chain.first()?, "tls.crt").ok()?;
    let Ok(PublicKey::RSA(key)) = leaf.public_key().parsed() else { return None };
    let bits = key.key_size();
    (bits > COSTLY_RSA).then(|| {
        format!(
            "has an RSA key of {bits} bits: unless it is the default certificate, its namespace has 10 new handshakes a \
             second with such keys, 20 at once; renew it with one of P-256, or of RSA up to {COSTLY_RSA} bits \
             (ingress-nginx took it)"
        )
    })
}

/// What is said of a certificate whose names stand where clients no longer look; completes the sentence "Secret x …".
pub(crate) fn nameless(certificate: &Certificate) -> Option<&'static str> {
    let leaf = read(certificate.chain.first()?, "tls.crt").ok()?;
    let has_names = leaf.subject_alternative_name().ok().flatten().is_some();
    (!has_names).then_some(
        "has a certificate with a common name (CN) and no subjectAltName, and clients look at nothing else: renew it with \
         its hosts there",
    )
}

/// The second from which a certificate counts.
pub(crate) fn not_before(certificate: &Certificate) -> Option<i64> {
    let leaf = read(certificate.chain.first()?, "tls.crt").ok()?;
    Some(leaf.validity().not_before.timestamp())
}

/// The revocation lists of a PEM text, each once.
fn revocations(pem: &[u8]) -> Result<Vec<Vec<u8>>, Message> {
    let wrong = |why: &str| {
        format!("has no revocation list in ca.crl ({why}): put one in PEM there, or remove it")
    };
    let mut found = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        let (kind, der) = section.map_err(|error| wrong(no_pem(&error)))?;
        if kind != SectionKind::Crl {
            return Err(wrong(&format!("it holds a {kind:?}")).into());
        }
        if found.contains(&der) {
            continue;
        }
        if found.len() == MOST_LISTS {
            let message = format!(
                "has more than {MOST_LISTS} revocation lists in ca.crl: leave the newest of each authority there"
            );
            return Err(Why::TookIt.says(message));
        }
        let (_, list) =
            CertificateRevocationList::from_der(&der).map_err(|error| wrong(&error.to_string()))?;
        if places(&list) > MOST_PLACES {
            let message = format!(
                "has a revocation list in ca.crl for more than {MOST_PLACES} addresses (issuingDistributionPoint): put one \
                 there that names fewer"
            );
            return Err(Why::TookIt.says(message));
        }
        found.push(der);
    }
    if found.is_empty() { Err(wrong("nothing in it is PEM").into()) } else { Ok(found) }
}

/// Names of places for which a list is.
fn places(list: &CertificateRevocationList<'_>) -> usize {
    let names = list.extensions().iter().filter_map(|one| match one.parsed_extension() {
        ParsedExtension::IssuingDistributionPoint(scope) => scope.distribution_point.as_ref(),
        _ => None,
    });
    let number = names.map(|names| match names {
        DistributionPointName::FullName(names) => names.len(),
        DistributionPointName::NameRelativeToCRLIssuer(_) => 1,
    });
    number.sum()
}

fn field<'a>(secret: &'a Secret, name: &str) -> Option<&'a [u8]> {
    secret.data.as_ref()?.get(name).map(Vec::as_slice).filter(|bytes| !bytes.is_empty())
}

fn pair(secret: &Secret) -> Result<Pair, Message> {
    let certificate = field(secret, "tls.crt").ok_or("has no tls.crt: add the certificate")?;
    let key = field(secret, "tls.key").ok_or("has no tls.key: add the private key")?;
    let chain = certificates(certificate, "tls.crt")?;
    let bytes: usize = chain.iter().map(Vec::len).sum();
    if bytes > LONGEST_CHAIN {
        return Err(format!(
            "has certificates of {bytes} bytes in tls.crt, of which clients take {LONGEST_CHAIN} at most: leave the one of \
             the host there, and those between it and its authority"
        )
        .into());
    }
    let text = key;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
        if is_locked(text) {
            "has a private key in tls.key that a passphrase locks, and nobody is there to type it: put the open one there \
             (openssl pkey -in tls.key -out open.key)"
                .to_owned()
        } else {
            let why = unseen(text).unwrap_or_else(|| no_pem(&error));
            format!("has no private key in tls.key ({why}): put one in PEM there")
        }
    })?;
    let leaf = chain.first().ok_or("has no certificate in tls.crt: put one there")?;
    let leaf = read(leaf, "tls.crt")?;
    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|error| {
        match leaf.public_key().parsed() {
            Ok(PublicKey::RSA(key)) if key.key_size() < SMALLEST_RSA => Why::TookIt.says(format!(
                "has an RSA key of {} bits, and {SMALLEST_RSA} are the least: renew it with a larger one (ingress-nginx took \
                 it)",
                key.key_size()
            )),
            _ => format!("has a pair of tls.crt and tls.key that cannot be used: {error}").into(),
        }
    })?;
    if signer.public_key().is_some_and(|key| *key != *leaf.public_key().raw) {
        if let Some(why) = unseen(certificate) {
            return Err(format!(
                "has a tls.key that does not belong to the first certificate that is read of tls.crt, as {why}"
            )
            .into());
        }
        return Err("has a tls.key that does not belong to tls.crt: put both of one pair \
                    there, the certificate before those of its authorities"
            .into());
    }
    Ok((chain, PrivateKey(key.secret_der().to_vec())))
}

/// Why a text is no PEM. What stands in it is not told: it may be a private key, in one line.
pub fn no_pem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::IllegalSectionStart { .. } => {
            "a line with BEGIN goes on after it: line breaks are missing, or written as \\n"
        }
        pem::Error::MissingSectionEnd { .. } => "a BEGIN has no END",
        pem::Error::Base64Decode(_) => "what is between BEGIN and END is not base64",
        pem::Error::NoItemsFound => "nothing in it is one",
        _ => "it is no PEM",
    }
}

/// Why the first block of a text is not read: OpenSSL, Go and we look for its BEGIN at the beginning of a line.
fn unseen(pem: &[u8]) -> Option<&'static str> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    if pem.starts_with(b"\xff\xfe") || pem.starts_with(b"\xfe\xff") {
        return Some("it is UTF-16, as PowerShell writes it: save it as ASCII");
    }
    let at = pem.windows(BEGIN.len()).position(|some| some == BEGIN)?;
    let line = pem[..at].rsplit(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    match line {
        [] => None,
        b"\xef\xbb\xbf" => Some(
            "its first line begins with a byte order mark, which hides the BEGIN: save it as ASCII, or UTF-8 without BOM",
        ),
        space if space.iter().all(u8::is_ascii_whitespace) => {
            Some("its first BEGIN is indented: let each line of PEM begin at its left edge")
        }
        _ => Some(
            "something stands before its first BEGIN in the line: give BEGIN a line of its own",
        ),
    }
}

/// Whether a private key in PEM is encrypted, as PKCS #8 has it or OpenSSL had it before.
fn is_locked(pem: &[u8]) -> bool {
    const MARKS: [&str; 2] = ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"];
    let text = String::from_utf8_lossy(pem);
    MARKS.iter().any(|mark| text.contains(mark))
}

fn read<'a>(der: &'a [u8], field: &str) -> Result<X509Certificate<'a>, String> {
    let read = X509Certificate::from_der(der).map(|(_, certificate)| certificate);
    read.map_err(|error| {
        format!("has a {field} that is no X.509 certificate ({error}): replace it")
    })
}

/// The certificates of a PEM text, whose first block must be one.
fn certificates(pem: &[u8], field: &str) -> Result<Vec<Vec<u8>>, String> {
    let wrong = |why: &str| {
        format!("has no certificate in {field} ({why}): put PEM there that starts with one")
    };
    let mut found = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        match section.map_err(|error| wrong(no_pem(&error)))? {
            (SectionKind::Certificate, der) => found.push(der),
            (kind, _) if found.is_empty() => {
                return Err(wrong(&format!("it starts with a {kind:?}")));
            }
            _ => {}
        }
    }
    if found.is_empty() {
        return Err(wrong(unseen(pem).unwrap_or("nothing in it is PEM")));
    }
    Ok(found)
}

/// The DNS names of a certificate and the second it expires; the common name counts where there is no DNS name.
fn names(der: &[u8]) -> Result<(Vec<String>, i64), String> {
    let certificate = read(der, "tls.crt")?;
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let mut names: Vec<String> = alternative
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        names.extend(common.map(str::to_ascii_lowercase));
    }
    Ok((names, certificate.validity().not_after.timestamp()))
}
