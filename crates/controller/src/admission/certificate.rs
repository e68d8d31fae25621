//! The webhook's certificate, read again when its files change.

use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How often the files are looked at. Mounted Secrets are replaced by links, which file events miss in part.
const LOOK: Duration = Duration::from_secs(2);

/// The files hold no certificate with its key.
#[derive(Debug, Error)]
#[error(
    "{path}: {reason}; name PEM files with --validating-webhook-certificate and --validating-webhook-key"
)]
pub struct CertificateError {
    path: String,
    reason: String,
}

/// The certificate that handshakes get.
#[derive(Debug)]
pub(super) struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The two files as they are.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Reads the files, and follows them until the result is dropped.
pub(super) fn follow(certificate: &Path, key: &Path) -> Result<Arc<Current>, CertificateError> {
    let mut before = read(certificate, key)?;
    let current = Arc::new(Current(ArcSwap::from_pointee(parse(&before, certificate, key)?)));
    let (weak, certificate, key) =
        (Arc::downgrade(&current), certificate.to_owned(), key.to_owned());
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            ticks.tick().await;
            let Some(current) = weak.upgrade() else { return };
            let Some(now) = look(&certificate, &key).await else { continue };
            if now == before {
                continue;
            }
            match parse(&now, &certificate, &key) {
                Ok(parsed) => {
                    current.0.store(Arc::new(parsed));
                    tracing::info!("the webhook's certificate was read again");
                }
                Err(error) => tracing::error!("the webhook keeps its certificate: {error}"),
            }
            before = now;
        }
    });
    Ok(current)
}

/// The files, unless they are just being replaced.
async fn look(certificate: &Path, key: &Path) -> Option<Files> {
    let (certificate, key): (PathBuf, PathBuf) = (certificate.to_owned(), key.to_owned());
    tokio::task::spawn_blocking(move || read(&certificate, &key).ok()).await.ok().flatten()
}

fn read(certificate: &Path, key: &Path) -> Result<Files, CertificateError> {
    let bytes = |path: &Path| fs::read(path).map_err(|error| wrong(path, &error.to_string()));
    Ok(Files { certificate: bytes(certificate)?, key: bytes(key)? })
}

fn parse(files: &Files, certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&files.certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(certificate, &error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "there is no certificate in it"));
    }
    let parsed = PrivateKeyDer::from_pem_slice(&files.key)
        .map_err(|error| wrong(key, &format!("there is no private key in it ({error})")))?;
    let signing = any_supported_type(&parsed).map_err(|error| wrong(key, &error.to_string()))?;
    let pair = CertifiedKey::new(chain, signing);
    pair.keys_match()
        .map_err(|error| wrong(key, &format!("it belongs to another certificate ({error})")))?;
    Ok(pair)
}

fn wrong(path: &Path, reason: &str) -> CertificateError {
    CertificateError { path: path.display().to_string(), reason: reason.to_owned() }
}
