//! Certificates and the hosts that have them, in the JSON of ingress-nginx's `/configuration/servers`.

use super::known::Things;
use crate::conf::fingerprint;
use crate::pem;
use model::{Certificate, CertificateId, Configuration, Origin, ServerName};
use std::collections::HashMap;
use std::sync::Arc;

/// The host that stands for every handshake without a certificate of its own; also the uid of what has no other one.
pub(super) const DEFAULT: &str = "_";

/// Hosts by name, and certificates by uid.
#[derive(Clone, Debug, Default)]
pub(super) struct Servers {
    pub(super) hosts: Things<Host>,
    pub(super) certificates: Things<Kept>,
}

/// The certificate of a host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) uid: Arc<str>,
    /// Who asked for the host first.
    pub(super) origin: Option<Arc<Origin>>,
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid
    }
}

/// A certificate, and whose it is: the default one is nobody's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) certificate: Arc<Certificate>,
    pub(super) namespace: Arc<str>,
}

impl Kept {
    /// Bytes in PEM, or a few more.
    pub(super) fn length(&self) -> usize {
        const AROUND: usize = 64;
        let parts = self.certificate.chain.iter().chain([&self.certificate.key.0]);
        // Four letters for three bytes, and an end of line for 64 of them.
        parts.map(|der| der.len() * 11 / 8 + AROUND).sum()
    }
}

/// The hosts of a Configuration; `fallback` serves where it has no default certificate.
pub(super) fn of(configuration: &Configuration, fallback: &Arc<Certificate>) -> Servers {
    let default = configuration
        .default_certificate
        .as_ref()
        .and_then(|id| configuration.certificates.get(id))
        .unwrap_or(fallback);
    let mut uids = Uids { configuration, known: HashMap::new(), servers: Servers::default() };
    let uid = uids.of(default);
    if let Some(kept) = uids.servers.certificates.get_mut(&uid) {
        kept.namespace = "".into();
    }
    uids.servers.hosts.insert(DEFAULT.into(), Host { uid, origin: None });
    for server in configuration.servers.values() {
        let Some(id) = &server.certificate else { continue };
        let uid = uids.named(id);
        let certificate = configuration.certificates.get(id).unwrap_or(default);
        let origin = server.locations.iter().find_map(|location| location.origin.clone());
        let host = Host { uid, origin };
        for name in server.certified_names().filter(|name| certificate.covers(name.as_str())) {
            // A host of its own goes before a name that merely leads to another one.
            let own = configuration.servers.get(&name).and_then(|own| own.certificate.as_ref());
            if own.is_none() {
                uids.servers.hosts.insert(name.as_str().into(), host.clone());
            }
        }
        if server.name != ServerName::catch_all() {
            uids.servers.hosts.insert(server.name.as_str().into(), host);
        }
    }
    uids.servers
}

/// The certificate of handshakes with this name: what lua/fairway/certificates.lua finds among these (`choose`).
pub(super) fn chosen(
    configuration: &Configuration,
    fallback: &Arc<Certificate>,
    host: &str,
) -> Option<Arc<Certificate>> {
    let Servers { hosts, certificates } = of(configuration, fallback);
    let above = || hosts.get(format!("*.{}", host.split_once('.')?.1).as_str());
    let entry = hosts.get(host).or_else(above).filter(|entry| &*entry.uid != DEFAULT);
    let uid = &entry.or_else(|| hosts.get(DEFAULT))?.uid;
    certificates.get(uid).map(|kept| kept.certificate.clone())
}

struct Uids<'a> {
    configuration: &'a Configuration,
    known: HashMap<&'a CertificateId, Arc<str>>,
    servers: Servers,
}

impl<'a> Uids<'a> {
    fn named(&mut self, id: &CertificateId) -> Arc<str> {
        match self.configuration.certificates.get(id) {
            Some(certificate) => self.of(certificate),
            None => DEFAULT.into(),
        }
    }

    /// Another content has another uid, so that workers may keep what they have read.
    fn of(&mut self, certificate: &'a Arc<Certificate>) -> Arc<str> {
        let servers = &mut self.servers;
        let uid = self.known.entry(&certificate.id).or_insert_with(|| {
            let parts = certificate.chain.iter().chain([&certificate.key.0]);
            let content: Vec<u8> = parts.flatten().copied().collect();
            let uid: Arc<str> = format!("{}@{}", certificate.id, fingerprint(&content)).into();
            let namespace = certificate.id.as_str().split_once('/').map_or("", |(it, _)| it).into();
            servers
                .certificates
                .insert(uid.clone(), Kept { certificate: certificate.clone(), namespace });
            uid
        });
        uid.clone()
    }
}

/// Chain and key in PEM.
pub(super) fn in_pem(certificate: &Certificate) -> String {
    let chain = certificate.chain.iter().map(AsRef::as_ref);
    pem::certificates(chain) + &pem::private_key(&certificate.key.0)
}

#[cfg(test)]
mod tests {
    use super::{chosen, of};
    use model::{Alias, Certificate, CertificateId, Configuration, PrivateKey, Server, ServerName};
    use std::sync::Arc;

    fn certificate(id: &str, names: &[&str]) -> Arc<Certificate> {
        Arc::new(Certificate {
            id: CertificateId::new(id),
            chain: vec![id.as_bytes().to_vec()],
            key: PrivateKey(Vec::new()),
            names: names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into(),
            not_after: 0,
        })
    }

    #[test]
    fn aliases_have_the_certificate_if_it_covers_them_and_a_host_of_its_own_goes_before() {
        let mut configuration = Configuration::default();
        let shop = certificate("demo/shop", &["shop.example", "*.shop.example"]);
        configuration.certificates.insert(shop.id.clone(), shop.clone());
        let mut server = Server::new(ServerName::new("shop.example"));
        server.certificate = Some(shop.id.clone());
        server.aliases = ["a.shop.example", "own.shop.example", "elsewhere.example"]
            .map(|name| Alias::Name(ServerName::new(name)))
            .to_vec();
        configuration.servers.insert(server.name.clone(), Arc::new(server));
        let mut own = Server::new(ServerName::new("own.shop.example"));
        own.certificate = Some(CertificateId::of_default());
        configuration.servers.insert(own.name.clone(), Arc::new(own));
        let servers = of(&configuration, &certificate("fallback", &[]));
        let uid = |host: &str| {
            servers.hosts.get(host).map(|it| it.uid.split('@').next().unwrap_or(&it.uid))
        };
        assert_eq!(uid("_"), Some("fallback"));
        assert_eq!(uid("shop.example"), Some("demo/shop"));
        assert_eq!(uid("a.shop.example"), Some("demo/shop"));
        assert_eq!(uid("own.shop.example"), Some("_"), "the default one");
        assert_eq!(uid("elsewhere.example"), None, "it is not covered");
        assert_eq!(servers.certificates.len(), 2);
    }
    #[test]
    fn a_handshake_gets_what_was_pushed_for_its_name() {
        let mut configuration = Configuration::default();
        let mut add = |name: &str, id: &str, aliases: &[&str]| {
            let mut server = Server::new(ServerName::new(name));
            server.certificate = Some(CertificateId::new(id));
            let alias = |name: &&str| Alias::Name(ServerName::new(*name));
            server.aliases = aliases.iter().map(alias).collect();
            configuration.servers.insert(server.name.clone(), Arc::new(server));
        };
        add("shop.example", "demo/shop", &["a.example", "own.example"]);
        add("own.example", "demo/own", &[]);
        add("*.wide.example", "demo/wide", &[]);
        add("gone.example", "demo/gone", &["b.wide.example"]);
        let all = [
            certificate("demo/shop", &["*.example"]),
            certificate("demo/own", &["own.example"]),
            certificate("demo/wide", &["*.wide.example"]),
            certificate("demo/default", &["b.wide.example"]),
        ];
        configuration.default_certificate = Some(all[3].id.clone());
        configuration.certificates = all.into_iter().map(|it| (it.id.clone(), it)).collect();
        let fallback = certificate("fallback", &[]);
        for (host, id) in [
            ("shop.example", "demo/shop"),
            ("a.example", "demo/shop"),
            ("own.example", "demo/own"),
            ("x.wide.example", "demo/wide"),
            ("x.y.wide.example", "demo/default"),
            // The alias has an entry, though the certificate of its server is not there.
            ("b.wide.example", "demo/default"),
            ("gone.example", "demo/default"),
            ("elsewhere.example", "demo/default"),
        ] {
            let found = chosen(&configuration, &fallback, host).expect("one is always there");
            assert_eq!(found.id.as_str(), id, "{host}");
        }
        configuration.default_certificate = None;
        let found = chosen(&configuration, &fallback, "elsewhere.example").expect("the process's");
        assert!(Arc::ptr_eq(&found, &fallback));
    }
}
