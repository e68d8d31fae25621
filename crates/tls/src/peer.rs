//! The certificate that a client has shown, and what each verifier thinks of it.

use super::verifier::Judge;
use super::{Verdict, Verifier, distinguished_name};
use bytes::Bytes;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::{CertificateDer, UnixTime};
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use wire::percent::{encoded, is_unreserved};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verdicts that are remembered of a client: its host may ask otherwise than its location, and each of many locations.
/// They are small, and a chain may take 32 signatures.
const REMEMBERED: usize = 64;

#[cfg(test)]
thread_local! {
    /// How often a chain was judged.
    pub(super) static JUDGED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The certificate that a client has shown in its handshake, or in the one of the session that it resumed.
#[derive(Clone, Debug)]
pub struct Peer {
    chain: Vec<CertificateDer<'static>>,
    /// By whom, the last one at the end.
    judged: RefCell<Vec<(Judge, Verdict)>>,
    names: OnceCell<(String, String)>,
    escaped: OnceCell<Bytes>,
}

impl Peer {
    /// The client with this chain; none if it is empty.
    pub fn new(chain: &[CertificateDer<'static>]) -> Option<Self> {
        (!chain.is_empty()).then(|| Self {
            chain: chain.to_vec(),
            judged: RefCell::default(),
            names: OnceCell::new(),
            escaped: OnceCell::new(),
        })
    }

    /// Bytes of its certificates.
    pub fn size(&self) -> usize {
        self.chain.iter().map(|one| one.len()).sum()
    }

    /// What `verifier` thinks of it. It is asked again when a change of the configuration replaces it, and when many
    /// others were asked since.
    pub fn verdict(&self, verifier: &Arc<Verifier>) -> Verdict {
        let mut judged = self.judged.borrow_mut();
        let known = match judged.iter().position(|(judge, _)| judge.is(verifier)) {
            Some(at) => judged.remove(at),
            None => {
                if judged.len() == REMEMBERED {
                    judged.remove(0);
                }
                #[cfg(test)]
                JUDGED.set(JUDGED.get() + 1);
                (verifier.judge(), verifier.verdict(&self.chain, UnixTime::now()))
            }
        };
        let verdict = known.1;
        judged.push(known);
        verdict
    }

    /// What the last one that was asked thought of it.
    pub fn last_verdict(&self) -> Option<Verdict> {
        self.judged.borrow().last().map(|(_, verdict)| *verdict)
    }

    /// Its subject as RFC 2253 writes it.
    pub fn subject(&self) -> &str {
        &self.names().0
    }

    /// Its issuer as RFC 2253 writes it.
    pub fn issuer(&self) -> &str {
        &self.names().1
    }

    fn names(&self) -> &(String, String) {
        self.names.get_or_init(|| {
            let parsed = self.parsed();
            parsed.map_or_else(Default::default, |certificate| {
                let subject = distinguished_name::rfc2253(certificate.subject());
                (subject, distinguished_name::rfc2253(certificate.issuer()))
            })
        })
    }

    /// Its serial number in hexadecimal digits, as OpenSSL prints it.
    pub fn serial(&self) -> String {
        let parsed = self.parsed();
        let bytes = parsed.as_ref().map_or(&[][..], |certificate| certificate.raw_serial());
        let bytes = bytes.strip_prefix(&[0]).unwrap_or(bytes);
        if bytes.is_empty() { "00".to_owned() } else { hex::encode_upper(bytes) }
    }

    /// SHA-1 of the certificate in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
        hex::encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.chain[0]))
    }

    /// From when on until when it is valid, as `Nov 21 12:00:00 2026 GMT`.
    pub fn validity(&self) -> (String, String) {
        let moment = |seconds: i64| {
            let moment = jiff::Timestamp::from_second(seconds).unwrap_or_default();
            moment.strftime("%b %e %H:%M:%S %Y GMT").to_string()
        };
        self.parsed().map_or_else(Default::default, |certificate| {
            let validity = certificate.validity();
            (moment(validity.not_before.timestamp()), moment(validity.not_after.timestamp()))
        })
    }

    /// Days until it ends; 0 once it has.
    pub fn days_left(&self) -> i64 {
        let now = wire::since_epoch().as_secs().cast_signed();
        let end =
            self.parsed().map_or(now, |certificate| certificate.validity().not_after.timestamp());
        (end - now).max(0) / 86_400
    }

    /// The certificate, taken apart.
    fn parsed(&self) -> Option<X509Certificate<'_>> {
        X509Certificate::from_der(&self.chain[0]).ok().map(|(_, certificate)| certificate)
    }

    /// The certificate in PEM, as `PEM_write_bio_X509` writes it.
    pub fn pem(&self) -> String {
        let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
        pem::encode_config(&Pem::new("CERTIFICATE", &*self.chain[0]), lines)
    }

    /// The certificate in PEM with percent-encoding, as `$ssl_client_escaped_cert`.
    pub fn escaped(&self) -> &Bytes {
        self.escaped.get_or_init(|| encoded(self.pem().as_bytes(), is_unreserved).into())
    }
}
