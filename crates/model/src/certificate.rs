//! Certificates as they are served: the chain and its key, already known to belong together.

use crate::CertificateId;
use serde::{Serialize, Serializer};
use std::fmt;

/// A private key in DER (PKCS#8, PKCS#1 or SEC1). It is never printed and never serialised.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PrivateKey(pub Vec<u8>);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

impl Serialize for PrivateKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

/// A certificate chain with the key of its first certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Where it came from.
    pub id: CertificateId,
    /// The chain in DER, leaf first.
    #[serde(skip)]
    pub chain: Vec<Vec<u8>>,
    /// The key of the leaf.
    pub key: PrivateKey,
    /// The DNS names the leaf is valid for, lower case, wildcards as `*.name`.
    pub names: Vec<String>,
    /// When the leaf expires, in seconds since the epoch.
    pub not_after: i64,
}

impl Certificate {
    /// Whether the leaf is valid for `host` (RFC 6125 6.4.3: a wildcard covers exactly one label).
    pub fn covers(&self, host: &str) -> bool {
        let parent = host.split_once('.').map(|(_, rest)| rest);
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(rest) => name == host || parent == Some(rest),
            None => name == host,
        })
    }

    /// What is to be said of it where clients refuse it at `now`, in seconds since the epoch, or will soon:
    /// ingress-nginx warns as early. Completes the sentence "Secret x: …".
    pub fn ending(&self, now: i64) -> Option<String> {
        const SOON: i64 = 10 * DAY;
        match self.not_after.saturating_sub(now) {
            left if left < 0 => Some(format!(
                "its certificate ended {} ago, clients refuse it; renew it",
                days(-left)
            )),
            left if left < SOON => {
                Some(format!("its certificate ends in {}; renew it", days(left)))
            }
            _ => None,
        }
    }
}

const DAY: i64 = 86_400;

/// So many seconds, in words.
pub fn days(seconds: i64) -> String {
    match seconds / DAY {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}
