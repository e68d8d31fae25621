//! Certificates in the order in which they expire, with the hosts that use them.

use super::json;
use crate::now::Now;
use crate::query::{Query, Refusal, shown};
use model::{Certificate, CertificateId, Configuration};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Hosts of a certificate, and names of it, that are told.
const HOSTS: usize = 100;

/// Certificates.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Certificates {
    /// How many are served.
    pub(crate) total: usize,
    /// How many were found.
    pub(crate) found: usize,
    /// The number of the first row.
    pub(crate) offset: usize,
    /// Hosts with TLS whose own certificate cannot be used, or that name none: they get the default one. 100 at most;
    /// the problems of their Ingresses say why.
    pub(crate) on_default: Vec<String>,
    /// The Secret of the default certificate; none while the process makes its own.
    pub(crate) default: Option<String>,
    /// The rows.
    pub(crate) certificates: Vec<Row>,
}

/// A certificate.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Row {
    /// `namespace/name` of its Secret.
    pub(crate) secret: String,
    /// The names that it is valid for, 100 at most.
    pub(crate) names: Vec<String>,
    /// How many names it has besides.
    pub(crate) more_names: usize,
    /// Who signed it.
    pub(crate) issuer: String,
    /// When it expires.
    pub(crate) not_after: i64,
    /// Days until then; negative once it has expired.
    pub(crate) days: i64,
    /// The hosts that use it, 100 at most.
    pub(crate) hosts: Vec<String>,
    /// Those of them that it is not valid for.
    pub(crate) mismatched: Vec<String>,
}

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let ((offset, limit), words) = (query.window()?, query.words()?);
    let serving = &now.known.serving;
    let (hosts, on_default) = users(serving);
    let mut found: Vec<&Certificate> = serving
        .certificates
        .values()
        .map(|certificate| &**certificate)
        .filter(|one| {
            let hosts = hosts.get(&one.id).map(Vec::as_slice).unwrap_or_default();
            words.iter().all(|word| has(one, hosts, word))
        })
        .collect();
    found.sort_by_key(|certificate| certificate.not_after);
    let rows = found.iter().skip(offset).take(limit);
    let hosts_of = |one: &Certificate| hosts.get(&one.id).map(Vec::as_slice).unwrap_or_default();
    json(&Certificates {
        total: serving.certificates.len(),
        found: found.len(),
        offset,
        on_default,
        default: serving.default_certificate.as_ref().map(shown),
        certificates: rows.map(|one| Row::new(one, hosts_of(one))).collect(),
    })
}

/// Whether a word is found in what a certificate is called, in its names or in its hosts, all of which have no blanks.
fn has(certificate: &Certificate, hosts: &[&str], word: &str) -> bool {
    certificate.id.to_string().to_lowercase().contains(word)
        || certificate.names.iter().any(|name| name.contains(word))
        || hosts.iter().any(|host| host.contains(word))
}

/// The hosts that use each certificate, of Ingresses and of listeners of Gateways, and those that get the default one.
fn users(serving: &Configuration) -> (BTreeMap<CertificateId, Vec<&str>>, Vec<String>) {
    let (mut hosts, mut on_default) = (BTreeMap::<_, BTreeSet<&str>>::new(), BTreeSet::new());
    let servers = serving.servers.values();
    let of_ingresses = servers.map(|server| (&server.name, server.certificate.as_ref()));
    for (host, id) in of_ingresses.chain(serving.certified_at_shared()) {
        let Some(id) = id else { continue };
        if serving.certificates.contains_key(id) {
            hosts.entry(id.clone()).or_default().insert(host.as_str());
        } else if on_default.len() < HOSTS {
            on_default.insert(shown(host.as_str()));
        }
    }
    for (host, id) in serving.certified_at_own() {
        if let Some(id) = id.filter(|id| serving.certificates.contains_key(*id)) {
            hosts.entry(id.clone()).or_default().insert(host.as_str());
        }
    }
    let listed = hosts.into_iter().map(|(id, hosts)| (id, hosts.into_iter().collect()));
    (listed.collect(), on_default.into_iter().collect())
}

impl Row {
    fn new(certificate: &Certificate, hosts: &[&str]) -> Self {
        let mismatched = hosts.iter().filter(|host| !certificate.covers(host));
        let left = certificate.not_after as f64 - crate::clock::seconds();
        Self {
            secret: shown(&certificate.id),
            names: certificate.names.iter().take(HOSTS).map(shown).collect(),
            more_names: certificate.names.len().saturating_sub(HOSTS),
            issuer: certificate.chain.first().and_then(|der| issuer(der)).unwrap_or_default(),
            not_after: certificate.not_after,
            days: (left / 86_400.0).floor() as i64,
            hosts: hosts.iter().take(HOSTS).map(shown).collect(),
            mismatched: mismatched.take(HOSTS).map(shown).collect(),
        }
    }
}

fn issuer(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(shown(certificate.issuer()))
}

#[cfg(test)]
mod tests {
    use super::{HOSTS, Row, has, users};
    use model::{
        Certificate, CertificateId, Configuration, Kind, Listener, ListenerId, Origin, PrivateKey,
        RouteHost, RouteKey, Server, ServerName, Speaks,
    };
    use std::sync::Arc;

    fn certificate() -> Certificate {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, "Own <b>");
        let der = params.self_signed(&key).expect("a certificate").der().to_vec();
        Certificate {
            id: CertificateId::new("shop/tls"),
            chain: vec![der],
            key: PrivateKey(key.serialize_der()),
            names: vec!["a.test".to_owned()].into(),
            not_after: 1000,
        }
    }

    #[test]
    fn a_certificate_says_who_uses_it_and_who_should_not_and_never_its_key() {
        let certificate = certificate();
        let row = Row::new(&certificate, &["a.test", "b.test"]);
        assert_eq!((row.mismatched.as_slice(), row.days < 0), (&["b.test".to_owned()][..], true));
        assert_eq!(row.issuer, "CN=Own <b>");
        let text = serde_json::to_string(&row).expect("JSON");
        let fields: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(fields.as_object().expect("an object").len(), 8, "no field more: {text}");
    }

    #[test]
    fn of_many_names_some_are_told_and_the_rest_is_counted() {
        let names: Vec<String> = (0..30_000).map(|number| format!("n{number}.test")).collect();
        let certificate = Certificate { names: names.into(), ..certificate() };
        let row = Row::new(&certificate, &["n29999.test", "a.test"]);
        assert_eq!((row.names.len(), row.more_names), (HOSTS, 29_900));
        assert_eq!(row.mismatched, ["a.test"]);
        assert!(serde_json::to_string(&row).expect("JSON").len() < 4096);
        let found = |word| has(&certificate, &["shop.test"], word);
        assert!(found("n29999") && found("shop.t") && found("shop/tls") && !found("nowhere"));
    }

    #[test]
    fn hosts_of_gateways_use_the_certificates_of_their_listeners() {
        let own = certificate();
        let name = ServerName::new("*.g.test");
        let host = RouteHost { certificate: Some(own.id.clone()), ..RouteHost::new(name.clone()) };
        let id = ListenerId {
            address: "192.0.2.1:443".parse().expect("an address"),
            hosts: ServerName::new("a.test"),
        };
        let listener = Listener {
            id: id.clone(),
            port: None,
            speaks: Speaks::Https,
            certificate: Some(own.id.clone()),
            clients: None,
            origin: Origin::new(Kind::Gateway, "shop", "gw"),
        };
        let key = RouteKey { listener: None, host: name };
        let configuration = Configuration {
            routes: [(key, Arc::new(host))].into_iter().collect(),
            listeners: [(id, Arc::new(listener))].into_iter().collect(),
            certificates: [(own.id.clone(), Arc::new(own.clone()))].into_iter().collect(),
            ..Configuration::default()
        };
        let (hosts, on_default) = users(&configuration);
        assert_eq!((hosts[&own.id].as_slice(), on_default.len()), (&["*.g.test", "a.test"][..], 0));
        assert_eq!(Row::new(&own, &hosts[&own.id]).mismatched, ["*.g.test"]);
    }

    #[test]
    fn hosts_whose_certificate_is_not_there_get_the_default_one() {
        let server = |name: &str, id: Option<&str>| {
            let (name, certificate) = (ServerName::new(name), id.map(CertificateId::new));
            (name.clone(), Arc::new(Server { certificate, ..Server::new(name) }))
        };
        let own = certificate();
        let servers = [
            server("a.test", Some("shop/tls")),
            server("b.test", Some("default")),
            server("c.test", None),
        ];
        let configuration = Configuration {
            servers: servers.into_iter().collect(),
            certificates: [(own.id.clone(), Arc::new(own.clone()))].into_iter().collect(),
            ..Configuration::default()
        };
        let (hosts, on_default) = users(&configuration);
        assert_eq!(
            (hosts[&own.id].as_slice(), on_default.as_slice()),
            (&["a.test"][..], &["b.test".to_owned()][..])
        );
    }
}
