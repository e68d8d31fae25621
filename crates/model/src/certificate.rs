//! Certificates as they are served: the chain and its key, already known to belong together.

use crate::CertificateId;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

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
    pub names: CertificateNames,
    /// When the leaf expires, in seconds since the epoch.
    pub not_after: i64,
}

/// The names of a certificate, in its order. It may have tens of thousands of them: one is found without going through
/// all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    listed: Box<[String]>,
    /// Their places, in the order of the alphabet.
    sorted: Box<[u32]>,
}

impl CertificateNames {
    /// Whether one of them is for `host` (RFC 6125 6.4.3: a wildcard covers exactly one label).
    pub fn cover(&self, host: &str) -> bool {
        self.has("", host) || host.split_once('.').is_some_and(|(_, parent)| self.has("*.", parent))
    }

    /// Whether there is a name that begins and ends so.
    fn has(&self, begin: &str, end: &str) -> bool {
        let compare = |place: &u32| {
            #[cfg(test)]
            tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
            let name = &self.listed[*place as usize];
            name.bytes().cmp(begin.bytes().chain(end.bytes()))
        };
        self.sorted.binary_search_by(compare).is_ok()
    }
}

impl From<Vec<String>> for CertificateNames {
    fn from(listed: Vec<String>) -> Self {
        let mut sorted: Box<[u32]> = (0..).take(listed.len()).collect();
        sorted.sort_unstable_by_key(|place| &listed[*place as usize]);
        Self { listed: listed.into(), sorted }
    }
}

impl Deref for CertificateNames {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.listed
    }
}

impl Serialize for CertificateNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.listed.serialize(serializer)
    }
}

impl Certificate {
    /// Whether the leaf is valid for `host`.
    pub fn covers(&self, host: &str) -> bool {
        self.names.cover(host)
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

#[cfg(test)]
mod tests {
    use super::CertificateNames;

    thread_local! {
        /// Names that were looked at.
        pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn a_host_is_covered_by_its_own_name_or_by_a_wildcard_for_its_first_label() {
        let names = ["z.test", "*.shop.test", "a.test", "*.", "*", "a.test", ""].map(str::to_owned);
        let sorted = CertificateNames::from(names.to_vec());
        assert!(sorted.iter().eq(&names), "they stay in their order");
        let one_by_one = |host: &str| {
            let parent = host.split_once('.').map(|(_, rest)| rest);
            names.iter().any(|name| match name.strip_prefix("*.") {
                Some(rest) => name == host || parent == Some(rest),
                None => name == host,
            })
        };
        for (host, is_covered) in [
            ("a.test", true),
            ("b.test", false),
            ("shop.test", false),
            ("x.shop.test", true),
            ("x.y.shop.test", false),
            ("*.shop.test", true),
            ("z.test", true),
            ("*", true),
            ("", true),
            ("x.", true),
            ("x", false),
            ("*.", true),
        ] {
            assert_eq!((sorted.cover(host), one_by_one(host)), (is_covered, is_covered), "{host}");
        }
        assert!(!CertificateNames::default().cover("a.test"));
    }

    #[test]
    fn for_each_of_many_hosts_few_names_are_looked_at() {
        let name = |number: usize| format!("n{number}.test");
        let names = CertificateNames::from((0..4096).rev().map(name).collect::<Vec<_>>());
        let hosts: Vec<String> = (0..8192).map(name).collect();
        LOOKED_AT.set(0);
        assert_eq!(hosts.iter().filter(|host| names.cover(host)).count(), 4096);
        assert!(LOOKED_AT.get() <= 8192 * 2 * 13, "{}", LOOKED_AT.get());
    }
}
