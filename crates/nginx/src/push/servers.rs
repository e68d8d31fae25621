//! Certificates and the hosts that have them, in the JSON of ingress-nginx's `/configuration/servers`.

use crate::conf::fingerprint;
use crate::pem;
use model::{Certificate, CertificateId, Configuration, ServerName};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The host that stands for every handshake without a certificate of its own; also the uid of what has no other one.
const DEFAULT: &str = "_";

/// Hosts by name with the uid of their certificate, and certificates by uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Servers {
    pub(super) hosts: BTreeMap<String, String>,
    pub(super) certificates: BTreeMap<String, Arc<Certificate>>,
}

/// What is sent: `-1` takes a host away, nothing a certificate.
#[derive(Debug, Default, Serialize)]
pub(super) struct Posted<'a> {
    pub(super) certificates: BTreeMap<&'a str, String>,
    pub(super) servers: BTreeMap<&'a str, &'a str>,
}

/// The hosts of a Configuration; `fallback` serves where it has no default certificate.
pub(super) fn of(configuration: &Configuration, fallback: &Arc<Certificate>) -> Servers {
    let default = configuration
        .default_certificate
        .as_ref()
        .and_then(|id| configuration.certificates.get(id))
        .unwrap_or(fallback);
    let mut uids = Uids { configuration, known: HashMap::new(), servers: Servers::default() };
    let default_uid = uids.of(default);
    uids.servers.hosts.insert(DEFAULT.to_owned(), default_uid);
    for server in configuration.servers.values() {
        let Some(id) = &server.certificate else { continue };
        let uid = uids.named(id);
        let certificate = configuration.certificates.get(id).unwrap_or(default);
        for name in server.certified_names().filter(|name| certificate.covers(name.as_str())) {
            // A host of its own goes before a name that merely leads to another one.
            let own = configuration.servers.get(&name).and_then(|own| own.certificate.as_ref());
            if own.is_none() {
                uids.servers.hosts.insert(name.to_string(), uid.clone());
            }
        }
        if server.name != ServerName::catch_all() {
            uids.servers.hosts.insert(server.name.to_string(), uid);
        }
    }
    uids.servers
}

struct Uids<'a> {
    configuration: &'a Configuration,
    known: HashMap<&'a CertificateId, String>,
    servers: Servers,
}

impl<'a> Uids<'a> {
    fn named(&mut self, id: &CertificateId) -> String {
        match self.configuration.certificates.get(id) {
            Some(certificate) => self.of(certificate),
            None => DEFAULT.to_owned(),
        }
    }

    /// Another content has another uid, so that workers may keep what they have read.
    fn of(&mut self, certificate: &'a Arc<Certificate>) -> String {
        let servers = &mut self.servers;
        let uid = self.known.entry(&certificate.id).or_insert_with(|| {
            let parts = certificate.chain.iter().chain([&certificate.key.0]);
            let content: Vec<u8> = parts.flatten().copied().collect();
            let uid = format!("{}@{}", certificate.id, fingerprint(&content));
            servers.certificates.insert(uid.clone(), certificate.clone());
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
    use super::of;
    use model::{Alias, Certificate, CertificateId, Configuration, PrivateKey, Server, ServerName};
    use std::sync::Arc;

    fn certificate(id: &str, names: &[&str]) -> Arc<Certificate> {
        Arc::new(Certificate {
            id: CertificateId::new(id),
            chain: vec![id.as_bytes().to_vec()],
            key: PrivateKey(Vec::new()),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
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
        let uid =
            |host: &str| servers.hosts.get(host).map(|uid| uid.split('@').next().unwrap_or(uid));
        assert_eq!(uid("_"), Some("fallback"));
        assert_eq!(uid("shop.example"), Some("demo/shop"));
        assert_eq!(uid("a.shop.example"), Some("demo/shop"));
        assert_eq!(uid("own.shop.example"), Some("_"), "the default one");
        assert_eq!(uid("elsewhere.example"), None, "it is not covered");
        assert_eq!(servers.certificates.len(), 2);
    }
}
