//! The webhook's certificate, and whose reviews it takes: read again when the files change.

use super::WebhookOptions;
use super::clients::Bounded;
use crate::budget::Budget;
use crate::clock::Moment;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use translate::no_pem;

/// How often the files are looked at. Mounted Secrets are replaced by links, which file events miss in part.
const LOOK: Duration = Duration::from_secs(2);
/// An end that is nearer is told, unless a tenth of the certificate's life is even less.
const SOON: i64 = 7 * 86_400;
/// Handshakes that were refused: told at once so often, and once a minute from then on. Anybody may refuse.
const REFUSALS: u32 = 3;
const REFUSALS_A_SECOND: f64 = 1.0 / 60.0;

const PAIR: &str = "--validating-webhook-certificate and --validating-webhook-key";
const AUTHORITIES: &str = "--validating-webhook-client-ca";

/// The files hold no certificate with its key, or no authorities.
#[derive(Debug, Error)]
#[error("{path}: {reason}; name PEM files with {flags}")]
pub struct CertificateError {
    path: String,
    reason: String,
    flags: &'static str,
}

/// The certificate that handshakes get.
#[derive(Debug)]
pub struct Certificate {
    pair: ArcSwap<Pair>,
    refusals: Mutex<Budget>,
}

/// One certificate with its key, and what TLS does with it.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) tls: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
    /// When it begins and ends, in seconds since 1970.
    life: (i64, i64),
}

/// How a certificate is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Good,
    Early,
    EndsSoon,
    Ended,
}

/// The files as they are.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Certificate {
    /// When it expires, in seconds since 1970.
    pub fn not_after(&self) -> i64 {
        self.pair.load().life.1
    }

    /// What the next handshake gets.
    pub(super) fn pair(&self) -> Arc<Pair> {
        self.pair.load_full()
    }

    /// Says why somebody who called us by this name does not take the certificate, if that is what went wrong.
    pub(super) fn refused(&self, pair: &Pair, name: Option<&str>, error: &io::Error) {
        let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        let Some(rustls::Error::AlertReceived(alert)) = inner else {
            return tracing::debug!(%error, "webhook: a handshake failed");
        };
        let mut refusals = self.refusals.lock();
        if refusals.take(Moment::now()).is_err() {
            return;
        }
        let cause = match name.filter(|name| !pair.is_for(name)) {
            Some(_) => "it lacks the name that it was called by: make one for that name",
            None => {
                "see that it has not expired, and that the caBundle of the webhook has its authority"
            }
        };
        tracing::warn!(?alert, name, cause, "a caller refuses the webhook's certificate");
    }

    /// Says how a certificate is, unless that was said.
    fn tell(pair: &Pair, now: i64, told: &mut Standing) {
        let standing = pair.standing(now);
        if std::mem::replace(told, standing) == standing {
            return;
        }
        let days = (pair.life.1 - now) / 86_400;
        match standing {
            Standing::Good => {}
            Standing::Early => {
                tracing::warn!(
                    "the webhook's certificate is not valid yet: the API server refuses it"
                );
            }
            Standing::EndsSoon => {
                tracing::warn!(days, "the webhook's certificate expires soon: renew it");
            }
            Standing::Ended => tracing::error!(
                "the webhook's certificate has expired: the API server refuses it, and with failurePolicy Fail every \
                 change of an Ingress; renew it"
            ),
        }
    }
}

impl Pair {
    fn standing(&self, now: i64) -> Standing {
        let (from, to) = self.life;
        match now {
            now if now < from => Standing::Early,
            now if now >= to => Standing::Ended,
            now if to - now < SOON.min((to - from) / 10) => Standing::EndsSoon,
            _ => Standing::Good,
        }
    }

    /// Whether a certificate is for a name.
    fn is_for(&self, name: &str) -> bool {
        let parsed = ParsedCertificate::try_from(&self.leaf);
        let name = ServerName::try_from(name);
        parsed
            .ok()
            .zip(name.ok())
            .is_some_and(|(parsed, name)| verify_server_name(&parsed, &name).is_ok())
    }
}

/// Reads the files, and follows them until the result is dropped.
pub(super) fn follow(options: &WebhookOptions) -> Result<Arc<Certificate>, CertificateError> {
    let mut before = read(options)?;
    let pair = parse(&before, options)?;
    let mut told = Standing::Good;
    Certificate::tell(&pair, now(), &mut told);
    let refusals = Mutex::new(Budget::new(REFUSALS, REFUSALS_A_SECOND, Moment::now()));
    let current = Arc::new(Certificate { pair: ArcSwap::from_pointee(pair), refusals });
    let (weak, options) = (Arc::downgrade(&current), options.clone());
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            ticks.tick().await;
            let Some(current) = weak.upgrade() else { return };
            Certificate::tell(&current.pair(), now(), &mut told);
            let Some(now) = look(&options).await else { continue };
            if now == before {
                continue;
            }
            match parse(&now, &options) {
                Ok(pair) => {
                    current.pair.store(Arc::new(pair));
                    told = Standing::Good;
                    tracing::info!("the webhook's certificate was read again");
                }
                Err(error) => tracing::error!("the webhook keeps its certificate: {error}"),
            }
            before = now;
        }
    });
    Ok(current)
}

fn now() -> i64 {
    i64::try_from(wire::since_epoch().as_secs()).unwrap_or(i64::MAX)
}

/// The files, unless they are just being replaced.
async fn look(options: &WebhookOptions) -> Option<Files> {
    let options = options.clone();
    tokio::task::spawn_blocking(move || read(&options).ok()).await.ok().flatten()
}

fn read(options: &WebhookOptions) -> Result<Files, CertificateError> {
    let bytes =
        |path: &Path, flags| fs::read(path).map_err(|error| wrong(path, &error.to_string(), flags));
    let authorities = options.client_authorities.as_deref();
    Ok(Files {
        certificate: bytes(&options.certificate, PAIR)?,
        key: bytes(&options.key, PAIR)?,
        authorities: authorities.map(|path| bytes(path, AUTHORITIES)).transpose()?,
    })
}

fn parse(files: &Files, options: &WebhookOptions) -> Result<Pair, CertificateError> {
    let (certificate, key) = (options.certificate.as_path(), options.key.as_path());
    let chain = certificates(&files.certificate, certificate, PAIR)?;
    let leaf = chain[0].clone();
    let parsed = PrivateKeyDer::from_pem_slice(&files.key).map_err(|error| {
        wrong(key, &format!("there is no private key in it ({})", no_pem(&error)), PAIR)
    })?;
    let signing =
        any_supported_type(&parsed).map_err(|error| wrong(key, &error.to_string(), PAIR))?;
    let pair = CertifiedKey::new(chain, signing);
    pair.keys_match().map_err(|error| {
        wrong(key, &format!("it belongs to another certificate ({error})"), PAIR)
    })?;
    let life = x509_parser::parse_x509_certificate(&leaf)
        .map(|(_, read)| {
            (read.validity().not_before.timestamp(), read.validity().not_after.timestamp())
        })
        .map_err(|error| wrong(certificate, &error.to_string(), PAIR))?;
    Ok(Pair { tls: Arc::new(tls(pair, files, options)?), leaf, life })
}

/// What TLS does: who has to have a certificate, if anybody, and which one is ours.
fn tls(
    pair: CertifiedKey,
    files: &Files,
    options: &WebhookOptions,
) -> Result<ServerConfig, CertificateError> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| wrong(&options.certificate, &error.to_string(), PAIR))?;
    let builder = match files.authorities.as_deref().zip(options.client_authorities.as_deref()) {
        None => builder.with_no_client_auth(),
        Some((bytes, path)) => {
            let mut roots = RootCertStore::empty();
            let refused =
                |error: &dyn std::fmt::Display| wrong(path, &error.to_string(), AUTHORITIES);
            for authority in certificates(bytes, path, AUTHORITIES)? {
                roots.add(authority).map_err(|error| refused(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let inner = verifier.build().map_err(|error| refused(&error))?;
            builder.with_client_cert_verifier(Arc::new(Bounded { inner }))
        }
    };
    Ok(builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(pair))))
}

/// One certificate at least.
fn certificates(
    bytes: &[u8],
    path: &Path,
    flags: &'static str,
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(path, no_pem(&error), flags))?;
    if found.is_empty() {
        return Err(wrong(path, "there is no certificate in it", flags));
    }
    Ok(found)
}

fn wrong(path: &Path, reason: &str, flags: &'static str) -> CertificateError {
    CertificateError { path: path.display().to_string(), reason: reason.to_owned(), flags }
}

#[cfg(test)]
mod tests {
    use super::{Certificate, Pair, Standing, WebhookOptions, parse, read};
    use std::path::Path;
    use tempfile::TempDir;

    const DAY: i64 = 86_400;

    /// A pair for `a.b.svc` that is valid for so many days.
    fn pair(days: i64) -> Pair {
        let folder = TempDir::new().expect("a folder");
        let mut params = rcgen::CertificateParams::new(["a.b.svc".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after =
            params.not_before + std::time::Duration::from_secs(days.unsigned_abs() * 86_400);
        let key = rcgen::KeyPair::generate().expect("a key");
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).expect("a file")
        };
        write("cert.pem", params.self_signed(&key).expect("signed").pem());
        write("key.pem", key.serialize_pem());
        let options = options(folder.path());
        parse(&read(&options).expect("files"), &options).expect("a pair")
    }

    fn options(folder: &Path) -> WebhookOptions {
        WebhookOptions {
            address: "127.0.0.1:0".parse().expect("an address"),
            certificate: folder.join("cert.pem"),
            key: folder.join("key.pem"),
            client_authorities: None,
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_told_before_it_comes() {
        let (long, short) = (pair(365), pair(1));
        let (from, to) = long.life;
        let standings =
            [from - 1, from, to - 8 * DAY, to - 6 * DAY, to].map(|now| long.standing(now));
        let wanted =
            [Standing::Early, Standing::Good, Standing::Good, Standing::EndsSoon, Standing::Ended];
        assert_eq!(standings, wanted);
        assert_eq!(
            short.standing(short.life.1 - 3 * 3600),
            Standing::Good,
            "it never has seven days"
        );
        assert_eq!(short.standing(short.life.1 - 3600), Standing::EndsSoon);
        let mut told = Standing::Good;
        Certificate::tell(&long, to, &mut told);
        assert_eq!(told, Standing::Ended);
    }

    #[test]
    fn a_name_that_a_certificate_lacks_is_known() {
        let pair = pair(1);
        assert!(
            pair.is_for("a.b.svc") && !pair.is_for("a.b.svc.cluster.local") && !pair.is_for("")
        );
    }
}
