//! The certificates between a client's and a root: those of which each has signed the one below it.

use super::signatures::is_issued;
use super::ways::{Effort, LOOKED_AT};
use rustls::pki_types::CertificateDer;
use std::collections::{HashMap, HashSet};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Certificates at most that may lead from a client's to a root. webpki goes every way that names allow, up to 200,000
/// steps, in each of which it reads all of them, and looks at no signature before it has come to a root: whoever sends
/// 40 of his own, or has them in a Secret, stops a thread. Few of which each is signed by the next have few ways.
const MOST: usize = 10;
/// Keys of one name among them at most. webpki comes back to no key of a name, but to each other one of it, and a
/// certificate can be made so that many keys have signed it: ten of one name would be 150,000 ways. An authority that
/// has renewed its key has two.
const KEYS: usize = 2;

/// Authorities that are no roots, by their names: they help to find the way to one.
#[derive(Debug, Default)]
pub(super) struct Authorities(HashMap<Box<[u8]>, Vec<CertificateDer<'static>>>);

/// What may lead from a client's certificate to a root.
#[derive(Debug, Default)]
pub(super) struct Between<'a> {
    /// Those that lead there, from below.
    pub(super) certificates: Vec<CertificateDer<'a>>,
    /// Another one has the right name, and has not signed what is below.
    pub(super) is_forged: bool,
}

/// A certificate and what is in it.
type Read<'a> = (&'a CertificateDer<'a>, X509Certificate<'a>);

impl Authorities {
    /// Adds one, if it can be read.
    pub(super) fn add(&mut self, der: CertificateDer<'static>) {
        if let Ok((_, read)) = X509Certificate::from_der(&der) {
            let name = Box::from(read.subject().as_raw());
            self.0.entry(name).or_default().push(der);
        }
    }

    /// What has signed `leaf`, what has signed that, and so on, among these and what a client has sent.
    pub(super) fn above<'a>(
        &'a self,
        leaf: &X509Certificate<'_>,
        sent: &'a [CertificateDer<'a>],
    ) -> Between<'a> {
        let sent: Vec<Read<'a>> = sent.iter().filter_map(read).collect();
        let mut found: Vec<Read<'a>> = Vec::new();
        let (mut is_forged, mut looked_at, mut next) = (false, 0, 0);
        let effort = Effort::between();
        let mut below = leaf.clone();
        loop {
            let name = below.issuer().as_raw();
            let named = sent.iter().filter(|(_, one)| one.subject().as_raw() == name).cloned();
            let known = self.0.get(name).into_iter().flatten().filter_map(read);
            let mut tried: Vec<&CertificateDer<'_>> = Vec::new();
            for (der, one) in named.chain(known) {
                looked_at += 1;
                if found.len() == MOST || !effort.is_left() || looked_at > LOOKED_AT {
                    break;
                }
                if tried.contains(&der) || found.iter().any(|(known, _)| *known == der) {
                    continue;
                }
                if is_one_key_too_many(&one, &found) {
                    continue;
                }
                tried.push(der);
                if effort.takes(&one) && is_issued(&below, &one) {
                    found.push((der, one))
                } else {
                    is_forged = true
                }
            }
            let Some((_, one)) = found.get(next) else { break };
            below = one.clone();
            next += 1;
        }
        let certificates = found.into_iter().map(|(der, _)| CertificateDer::from(der.as_ref()));
        Between { certificates: certificates.collect(), is_forged }
    }
}

/// Whether a certificate has another key than those of its name that were found, which are as many as there may be.
fn is_one_key_too_many(one: &X509Certificate<'_>, found: &[Read<'_>]) -> bool {
    let (name, key) = (one.subject().as_raw(), one.public_key().raw);
    let alike = found.iter().filter(|(_, known)| known.subject().as_raw() == name);
    let keys: HashSet<&[u8]> = alike.map(|(_, known)| known.public_key().raw).collect();
    keys.len() >= KEYS && !keys.contains(key)
}

fn read<'a>(der: &'a CertificateDer<'a>) -> Option<Read<'a>> {
    X509Certificate::from_der(der).ok().map(|(_, one)| (der, one))
}
