//! Which certificate a handshake gets: that of its exact name, of the wildcard above it, or the default one
//! (compat/behaviour.md section 11).

use super::aliases::AliasCertificates;
use super::long_keys::LongKeys;
use imbl::OrdMap;
use model::{CertificateId, Changes, Configuration, Others, ServerName, is_same_owner};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long the certificate is valid that is made at each start.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// The certificates of a Configuration, ready for handshakes.
#[derive(Clone, Debug)]
pub struct Certificates {
    hosts: OrdMap<ServerName, CertificateId>,
    /// Who owns wildcard hosts among them, where that matters.
    owners: OrdMap<ServerName, Arc<str>>,
    /// Those of Gateways; wildcards are below all of their names.
    routes: OrdMap<ServerName, Routed>,
    /// Whether one of them is a wildcard.
    wildcards: bool,
    aliases: AliasCertificates,
    keys: OrdMap<CertificateId, Arc<CertifiedKey>>,
    long_keys: LongKeys,
    default: Option<CertificateId>,
    fallback: Arc<CertifiedKey>,
}

/// A certificate of Gateways.
#[derive(Clone, Debug)]
struct Routed {
    id: CertificateId,
    /// Whether its listener names the host.
    named: bool,
    /// Whose handshakes do not get it.
    not_shown_to: Option<Arc<Others>>,
}

impl Certificates {
    /// None but the process's own.
    pub fn new(fallback: Arc<CertifiedKey>) -> Self {
        Self {
            hosts: OrdMap::new(),
            owners: OrdMap::new(),
            routes: OrdMap::new(),
            wildcards: false,
            aliases: AliasCertificates::default(),
            keys: OrdMap::new(),
            long_keys: LongKeys::default(),
            default: None,
            fallback,
        }
    }

    /// Those of `configuration`, of which `changes` differ from the one before.
    pub fn follow(&self, configuration: &Configuration, changes: &Changes) -> Self {
        let mut next = self.clone();
        // The operator has chosen the default one: it is bounded by nothing, as long as it is that.
        let default = configuration.default_certificate.as_ref();
        let defaults = [self.default.as_ref(), default];
        let defaults = defaults.into_iter().flatten().filter(|_| self.default.as_ref() != default);
        for id in changes.certificates.iter().chain(defaults) {
            next.load(id, configuration);
        }
        for name in &changes.servers {
            let owner = configuration.servers.get(name).and_then(|server| server.owner.clone());
            match owner.filter(|_| name.as_str().starts_with("*.")) {
                Some(owner) => next.owners.insert(name.clone(), owner),
                None => next.owners.remove(name),
            };
            match configuration.servers.get(name).and_then(|server| server.certificate.clone()) {
                Some(id) => next.hosts.insert(name.clone(), id),
                None => next.hosts.remove(name),
            };
        }
        // Those of listeners with an address of their own are their listeners' alone.
        for key in changes.routes.iter().filter(|key| key.is_shared()) {
            let routed = configuration.routes.get(key).and_then(|host| {
                let (named, not_shown_to) = (host.named, host.not_shown_to.clone());
                Some(Routed { id: host.certificate.clone()?, named, not_shown_to })
            });
            match routed {
                Some(routed) => next.routes.insert(key.host.clone(), routed),
                None => next.routes.remove(&key.host),
            };
        }
        // They stand before all other names.
        let first = next.hosts.keys().next();
        next.wildcards = first.is_some_and(|name| name.as_str().starts_with("*."));
        next.aliases.follow(configuration, changes);
        next.default.clone_from(&configuration.default_certificate);
        next
    }

    /// Handshakes that failed since their namespace had none left with long keys, since the start.
    pub fn refused_handshakes(&self) -> u64 {
        self.long_keys.refused()
    }

    fn load(&mut self, id: &CertificateId, configuration: &Configuration) {
        let key = configuration.certificates.get(id).and_then(|certificate| {
            load(&certificate.chain, &certificate.key.0)
                .inspect_err(|error| tracing::error!(certificate = %id, %error, "a certificate cannot be used"))
                .ok()
        });
        let Some(key) = key else {
            self.keys.remove(id);
            self.long_keys.forget(id);
            return;
        };
        let key = if configuration.default_certificate.as_ref() == Some(id) {
            self.long_keys.forget(id);
            key
        } else {
            self.long_keys.bounded(id, key)
        };
        self.keys.insert(id.clone(), Arc::new(key));
    }

    /// The entry of an Ingress that names the host, by rule or alias.
    fn named(&self, host: &str) -> Option<&CertificateId> {
        self.hosts.get(host).or_else(|| self.aliases.get(host))
    }

    /// The entry of a host, or of the wildcard above it.
    fn entry(&self, host: &str) -> Option<&CertificateId> {
        // Every request asks, whether or not it is to be redirected.
        let may_be = self.wildcards || !self.aliases.is_empty();
        let wildcard = || {
            let (_, parent) = host.split_once('.')?;
            self.named(&format!("*.{parent}"))
        };
        self.named(host).or_else(|| if may_be { wildcard() } else { None })
    }

    /// The entry of a host among those of Gateways: its own, or that of the longest wildcard above it that has its
    /// handshakes.
    fn routed(&self, host: &str) -> Option<&CertificateId> {
        if self.routes.is_empty() {
            return None;
        }
        let above = || {
            let mut dots = host.match_indices('.').filter(|(at, _)| *at > 0);
            dots.find_map(|(at, _)| self.shown(&format!("*{}", &host[at..]), host))
        };
        self.shown(host, host).or_else(above)
    }

    /// The entry of Gateways under this name, if handshakes with the host get it.
    fn shown(&self, name: &str, host: &str) -> Option<&CertificateId> {
        let Routed { id, not_shown_to, .. } = self.routes.get(name)?;
        not_shown_to.as_ref().is_none_or(|others| !others.have(host)).then_some(id)
    }

    /// The entry of Gateways for handshakes that nothing else is for.
    fn last(&self, host: Option<&str>) -> Option<&CertificateId> {
        self.shown("_", host.unwrap_or_default())
    }

    /// Whether a host with this owner has a certificate, if only the default one: its own, or that of a wildcard host
    /// of the same owner.
    pub fn has(&self, host: &str, owner: Option<&Arc<str>>) -> bool {
        let counts = || {
            let (_, parent) = host.split_once('.')?;
            let above = self.owners.get(&*format!("*.{parent}"));
            Some(is_same_owner(above, owner))
        };
        !self.hosts.is_empty()
            && self.entry(host).is_some()
            && (self.owners.is_empty() || self.named(host).is_some() || counts() != Some(false))
    }

    /// A certificate, if it can be used.
    pub(super) fn key(&self, id: &CertificateId) -> Option<&Arc<CertifiedKey>> {
        self.keys.get(id)
    }

    /// The Secret of a certificate, `namespace/name`, if handshakes may get it; an empty one for that of this process.
    pub(super) fn secret(&self, key: &Arc<CertifiedKey>) -> Option<&str> {
        let own = || Arc::ptr_eq(&self.fallback, key).then_some("");
        let found = self.keys.iter().find(|(_, served)| Arc::ptr_eq(served, key));
        found.map(|(id, _)| id.as_str()).or_else(own)
    }

    /// The certificate that the process made for itself, in DER.
    pub fn own(&self) -> Option<&[u8]> {
        self.fallback.cert.first().map(AsRef::as_ref)
    }

    /// Which certificate a handshake with this name gets; none: the self-signed one of this process.
    pub fn chosen(&self, name: Option<&str>) -> Option<CertificateId> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let mut all = self.candidates(name.as_deref());
        all.find(|id| self.keys.contains_key(*id)).cloned()
    }

    /// The certificate for a handshake with this name.
    pub fn choose(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let mut all = self.candidates(name.as_deref());
        all.find_map(|id| self.keys.get(id)).unwrap_or(&self.fallback).clone()
    }

    /// Those that a handshake with this name may get, the best one first: of Ingresses and listeners whoever names the
    /// host, then the wildcards.
    fn candidates<'a>(&'a self, name: Option<&'a str>) -> impl Iterator<Item = &'a CertificateId> {
        let named = name.and_then(|name| self.named(name));
        let is_named = |name: &&str| self.routes.get(*name).is_some_and(|routed| routed.named);
        let listener = name.filter(is_named).and_then(|name| self.shown(name, name));
        let own = name.and_then(|name| self.entry(name));
        let routed = name.and_then(|name| self.routed(name));
        let default = self.default.as_ref();
        [named, listener, own, routed, default, self.last(name)].into_iter().flatten()
    }
}

/// Takes a chain and its key, which is known to belong to it.
pub(super) fn load(chain: &[Vec<u8>], key: &[u8]) -> Result<CertifiedKey, rustls::Error> {
    let chain = chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
    let key = PrivateKeyDer::try_from(key.to_vec())
        .map_err(|text| rustls::Error::General(text.to_owned()))?;
    Ok(CertifiedKey::new(chain, rustls::crypto::aws_lc_rs::sign::any_supported_type(&key)?))
}

/// The certificate that answers where there is no better one, as ingress-nginx makes it at each start.
pub fn self_signed() -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
    signed_with(&KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?)
}

/// One in its place where nobody shakes hands: an RSA key takes a hundred times as long to make.
pub fn never_shown() -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
    signed_with(&KeyPair::generate()?)
}

fn signed_with(key: &KeyPair) -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Acme Co");
    name.push(DnType::CommonName, "Kubernetes Ingress Controller Fake Certificate");
    let mut params = CertificateParams::new(vec!["ingress.local".to_owned()])?;
    params.distinguished_name = name;
    let now = SystemTime::now();
    params.not_before = now.into();
    params.not_after = (now + YEAR).into();
    let certificate = params.self_signed(key)?;
    Ok(load(&[certificate.der().to_vec()], &key.serialize_der())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn whose_hosts_somebody_else_has_are_not_shown_the_certificate_above_them() {
        let key = || Arc::new(never_shown().expect("a certificate"));
        let mut all = Certificates::new(key());
        let others: Others = ["*.shop.test", "op.test"].map(ServerName::new).into_iter().collect();
        let others = Some(Arc::new(others));
        for (name, others) in [("_", others.clone()), ("*.test", others), ("*.bank.test", None)] {
            let id = CertificateId::new(format!("b/{name}"));
            all.keys.insert(id.clone(), key());
            let routed = Routed { id, named: false, not_shown_to: others };
            all.routes.insert(ServerName::new(name), routed);
        }
        let mut shown = BTreeSet::new();
        for (name, expected) in [
            ("pay.shop.test", None),
            ("op.test", None),
            ("any.test", Some("b/*.test")),
            ("shop.test", Some("b/*.test")),
            ("x.bank.test", Some("b/*.bank.test")),
            ("elsewhere", Some("b/_")),
        ] {
            let found = all.choose(Some(name));
            let own = expected.map_or(&all.fallback, |id| &all.keys[&CertificateId::new(id)]);
            assert!(Arc::ptr_eq(&found, own), "{name}");
            shown.insert(all.chosen(Some(name)));
        }
        assert_eq!(shown.len(), 4, "{shown:?}");
    }

    #[test]
    fn a_wildcard_of_an_ingress_takes_no_handshake_from_a_listener_that_names_the_host() {
        let key = || Arc::new(never_shown().expect("a certificate"));
        let mut all = Certificates::new(key());
        for id in ["x/wild", "x/own", "gw/pay", "gw/own", "gw/wild"] {
            all.keys.insert(CertificateId::new(id), key());
        }
        all.hosts.insert(ServerName::new("*.s.test"), CertificateId::new("x/wild"));
        all.hosts.insert(ServerName::new("own.s.test"), CertificateId::new("x/own"));
        all.wildcards = true;
        for (name, id, named) in [
            ("pay.s.test", "gw/pay", true),
            ("own.s.test", "gw/own", true),
            ("*.s.test", "gw/wild", true),
            // The host of a route at a wider listener.
            ("route.s.test", "gw/wild", false),
        ] {
            let routed = Routed { id: CertificateId::new(id), named, not_shown_to: None };
            all.routes.insert(ServerName::new(name), routed);
        }
        for (name, expected) in [
            ("pay.s.test", "gw/pay"),
            ("own.s.test", "x/own"),
            ("else.s.test", "x/wild"),
            ("route.s.test", "x/wild"),
            ("deep.else.s.test", "gw/wild"),
        ] {
            assert_eq!(all.chosen(Some(name)), Some(CertificateId::new(expected)), "{name}");
            assert!(Arc::ptr_eq(&all.choose(Some(name)), &all.keys[&CertificateId::new(expected)]));
        }
    }
}
