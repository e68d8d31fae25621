//! The roots of a host: those of one name and one key are one.

use super::may_sign;
use rustls::pki_types::{CertificateDer, TrustAnchor};
use std::collections::HashMap;
use webpki::anchor_from_trusted_cert;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The roots of a host. However many certificates one name and one key have, who descends from them is looked at once.
#[derive(Debug, Default)]
pub(super) struct Roots {
    anchors: Vec<TrustAnchor<'static>>,
    /// The certificates of each, in the order of the Secret.
    certificates: HashMap<TrustAnchor<'static>, Vec<Root>>,
}

#[derive(Debug)]
struct Root {
    der: CertificateDer<'static>,
    starts: i64,
    ends: i64,
    signs: bool,
}

impl Roots {
    /// Adds a certificate, or gives back what is no root.
    pub(super) fn add(
        &mut self,
        der: CertificateDer<'static>,
    ) -> Result<(), CertificateDer<'static>> {
        let anchor = anchor_from_trusted_cert(&der).map(|anchor| anchor.to_owned());
        let read = X509Certificate::from_der(&der).map(|(_, read)| {
            let (starts, ends) = (read.validity().not_before, read.validity().not_after);
            let found = (starts.timestamp(), ends.timestamp(), may_sign::clients(&read).is_ok());
            (read.subject().as_raw() == read.issuer().as_raw()).then_some(found)
        });
        let (Ok(anchor), Ok(Some((starts, ends, signs)))) = (anchor, read) else { return Err(der) };
        let same = self.certificates.entry(anchor).or_insert_with_key(|anchor| {
            self.anchors.push(anchor.clone());
            Vec::new()
        });
        same.push(Root { der, starts, ends, signs });
        Ok(())
    }

    /// What webpki looks among.
    pub(super) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// The certificate of one of them: the first that is valid at this second and may sign, as one that was renewed
    /// stands beside the new one for a while. Where none may, whoever asks finds out.
    pub(super) fn certificate<'a>(
        &'a self,
        anchor: &TrustAnchor<'a>,
        now: i64,
    ) -> Option<&'a CertificateDer<'static>> {
        let same = self.certificates.get(anchor)?;
        let is_valid = |root: &&Root| (root.starts..=root.ends).contains(&now);
        let valid = same.iter().filter(is_valid);
        let fit = valid.clone().find(|root| root.signs).or(valid.clone().next());
        fit.or(same.first()).map(|root| &root.der)
    }
}
