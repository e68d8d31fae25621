//! The certificate of a handshake.

use super::Certificates;
use super::ocsp::Staples;
use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

/// Gives each handshake the certificate for its name, as of now.
#[derive(Clone, Debug)]
pub(super) struct ByName {
    pub(super) certificates: Arc<ArcSwap<Certificates>>,
    pub(super) staples: Option<Arc<Staples>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let plain = self.certificates.load().choose(hello.server_name());
        Some(match &self.staples {
            None => plain,
            Some(staples) => staples.staple(plain),
        })
    }
}

/// Gives each handshake the certificate of the most special listener for its name.
#[derive(Debug)]
pub(super) struct ByListener {
    /// By the hosts of a listener: a name, `*.parent` for all below it at any depth, `_` for all. None where it has no
    /// certificate that can be used: that of a wider listener is not shown in its place.
    pub(super) keys: HashMap<String, Option<Arc<CertifiedKey>>>,
    pub(super) staples: Option<Arc<Staples>>,
}

impl ByListener {
    fn choose(&self, name: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        let name = name.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        let above = || {
            let mut dots = name.match_indices('.').filter(|(at, _)| *at > 0);
            dots.find_map(|(at, _)| self.keys.get(&format!("*{}", &name[at..])))
        };
        self.keys.get(&name).or_else(above).or_else(|| self.keys.get("_"))?.as_ref()
    }
}

impl ResolvesServerCert for ByListener {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let plain = self.choose(hello.server_name())?.clone();
        Some(match &self.staples {
            None => plain,
            Some(staples) => staples.staple(plain),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_special_listener_has_a_handshake_and_where_none_has_it_there_is_no_certificate() {
        let key = Arc::new(crate::self_signed().expect("a certificate"));
        let with = |hosts: &[&str]| ByListener {
            keys: hosts
                .iter()
                .map(|host| ((*host).to_owned(), Some(Arc::new(CertifiedKey::clone(&key)))))
                .collect(),
            staples: None,
        };
        let is = |all: &ByListener, name: Option<&str>, hosts: &str| {
            all.choose(name).is_some_and(|found| {
                all.keys[hosts].as_ref().is_some_and(|key| Arc::ptr_eq(found, key))
            })
        };
        let all = with(&["_", "*.test", "*.a.test", "x.a.test"]);
        assert!(is(&all, Some("X.a.test."), "x.a.test"));
        assert!(is(&all, Some("z.y.a.test"), "*.a.test"));
        assert!(
            is(&all, Some("a.test"), "*.test")
                && is(&all, Some("test"), "_")
                && is(&all, None, "_")
        );
        assert!(with(&["a.test"]).choose(Some("b.test")).is_none());
    }

    #[test]
    fn a_listener_without_a_certificate_has_no_handshake_and_no_wider_one_has_it_instead() {
        let key = Some(Arc::new(crate::self_signed().expect("a certificate")));
        let keys = [("_", key.clone()), ("*.test", None), ("x.test", key), ("y.x.test", None)];
        let keys = keys.into_iter().map(|(hosts, key)| (hosts.to_owned(), key)).collect();
        let all = ByListener { keys, staples: None };
        for (name, is_shown) in [
            ("a", true),
            ("a.test", false),
            ("z.x.test", false),
            ("x.test", true),
            ("y.x.test", false),
        ] {
            assert_eq!(all.choose(Some(name)).is_some(), is_shown, "{name}");
        }
    }
}
