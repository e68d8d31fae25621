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

    /// Many hosts, and which of them it [covers](Self::covers). It may have tens of thousands of names: they are sorted
    /// once for all hosts.
    pub fn covering<'a>(
        &'a self,
        hosts: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = (&'a str, bool)> {
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        names.sort_unstable();
        let is_one = move |wanted: &str| {
            let compare = |name: &&str| {
                #[cfg(test)]
                tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
                (*name).cmp(wanted)
            };
            names.binary_search_by(compare).is_ok()
        };
        hosts.map(move |host| {
            let parent = host.split_once('.').map(|(_, parent)| parent);
            let covers =
                is_one(host) || parent.is_some_and(|parent| is_one(&format!("*.{parent}")));
            (host, covers)
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

#[cfg(test)]
mod tests {
    use super::{Certificate, PrivateKey};
    use crate::CertificateId;

    thread_local! {
        /// Names that were looked at for many hosts.
        pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    fn of(names: Vec<String>) -> Certificate {
        let key = PrivateKey(Vec::new());
        Certificate { id: CertificateId::new("a/b"), chain: Vec::new(), key, names, not_after: 0 }
    }

    #[test]
    fn many_hosts_are_covered_as_each_is_alone() {
        let names = ["z.test", "*.shop.test", "a.test", "*.", "*", "a.test", ""];
        let certificate = of(names.map(str::to_owned).to_vec());
        let hosts = [
            "a.test",
            "b.test",
            "shop.test",
            "x.shop.test",
            "x.y.shop.test",
            "*.shop.test",
            "z.test",
            "*",
            "",
            "x.",
            "x",
            "*.",
        ];
        let covered: Vec<_> = certificate.covering(hosts.into_iter()).collect();
        assert_eq!(covered, hosts.map(|host| (host, certificate.covers(host))));
        assert!(covered[3].1 && !covered[4].1);
    }

    #[test]
    fn for_each_of_many_hosts_few_names_are_looked_at() {
        let name = |number: usize| format!("n{number}.test");
        let certificate = of((0..4096).rev().map(name).collect());
        let hosts: Vec<String> = (0..8192).map(name).collect();
        LOOKED_AT.set(0);
        let covered = certificate.covering(hosts.iter().map(String::as_str)).filter(|(_, it)| *it);
        assert_eq!(covered.count(), 4096);
        assert!(LOOKED_AT.get() <= 8192 * 2 * 13, "{}", LOOKED_AT.get());
    }
}
