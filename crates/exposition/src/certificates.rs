//! Certificates of hosts, as ingress-nginx tells of them.

use model::{Certificate, CertificateId, Configuration, Server};
use request_metrics::label_value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use x509_parser::oid_registry::{
    OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519, OID_X509_SERIALNUMBER,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What is told of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// The issuer's serialNumber and the certificate's own.
    pub(crate) identifier: String,
    pub(crate) organization: String,
    pub(crate) common_name: String,
    pub(crate) serial: String,
    pub(crate) algorithm: &'static str,
    pub(crate) not_after: i64,
}

/// The certificate of a host.
pub(crate) struct Shown<'a> {
    pub(crate) host: &'a str,
    /// Empty for the certificate that the process made for itself.
    pub(crate) namespace: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) details: Arc<Details>,
}

/// Certificates that were read before, so that a scrape reads only new ones.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<CertificateId, (Arc<Certificate>, Arc<Details>)>);

impl Known {
    /// The certificates of all hosts that have one, of Ingresses and of listeners of Gateways; `own` is that of the
    /// process.
    pub(crate) fn of<'a>(
        &mut self,
        configuration: &'a Configuration,
        own: Option<&[u8]>,
    ) -> Vec<Shown<'a>> {
        self.0.retain(|id, _| configuration.certificates.contains_key(id));
        let default = configuration.default_certificate.as_ref();
        let own = own.and_then(read).map(Arc::new);
        let shown = |server: &'a Arc<Server>| {
            let asked = server.certificate.as_ref();
            let is_catch_all = server.name.as_str() == "_";
            if asked.is_none() && !is_catch_all {
                return None;
            }
            let found = asked.and_then(|id| configuration.certificates.get_key_value(id));
            let found = found.or_else(|| configuration.certificates.get_key_value(default?));
            let host = server.name.as_str();
            let Some((id, certificate)) = found else {
                return Some(Shown { host, namespace: "", secret: "", details: own.clone()? });
            };
            let (namespace, secret) = id.as_str().split_once('/').unwrap_or_default();
            Some(Shown { host, namespace, secret, details: self.details(id, certificate)? })
        };
        let mut all: Vec<_> = configuration.servers.values().filter_map(shown).collect();
        // The same labels twice are no metrics.
        let mut told: HashSet<_> =
            all.iter().map(|one| (one.host, one.namespace, one.secret)).collect();
        let of_gateways =
            configuration.certified_at_shared().chain(configuration.certified_at_own());
        for (host, id) in of_gateways.filter_map(|(host, id)| Some((host.as_str(), id?))) {
            let (namespace, secret) = id.as_str().split_once('/').unwrap_or_default();
            if let Some(certificate) = configuration.certificates.get(id)
                && told.insert((host, namespace, secret))
                && let Some(details) = self.details(id, certificate)
            {
                all.push(Shown { host, namespace, secret, details });
            }
        }
        all
    }

    fn details(
        &mut self,
        id: &CertificateId,
        certificate: &Arc<Certificate>,
    ) -> Option<Arc<Details>> {
        if let Some((known, details)) = self.0.get(id)
            && Arc::ptr_eq(known, certificate)
        {
            return Some(details.clone());
        }
        let details = Arc::new(read(certificate.chain.first()?)?);
        self.0.insert(id.clone(), (certificate.clone(), details.clone()));
        Some(details)
    }
}

fn read(der: &[u8]) -> Option<Details> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let issuer = certificate.issuer();
    let text = |found: Option<&x509_parser::x509::AttributeTypeAndValue<'_>>| {
        label_value(found.and_then(|found| found.as_str().ok()).unwrap_or_default()).into_owned()
    };
    let serial = label_value(&certificate.serial.to_string()).into_owned();
    let number = text(issuer.iter_by_oid(&OID_X509_SERIALNUMBER).next());
    let algorithm = &certificate.public_key().algorithm.algorithm;
    Some(Details {
        identifier: format!("{number}-{serial}"),
        organization: text(issuer.iter_organization().next()),
        common_name: text(issuer.iter_common_name().next()),
        serial,
        algorithm: match algorithm {
            rsa if *rsa == OID_PKCS1_RSAENCRYPTION => "RSA",
            ecdsa if *ecdsa == OID_KEY_TYPE_EC_PUBLIC_KEY => "ECDSA",
            ed25519 if *ed25519 == OID_SIG_ED25519 => "Ed25519",
            // As Go names what it does not know.
            _ => "0",
        },
        not_after: certificate.validity().not_after.timestamp(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Known, read};
    use model::{
        Certificate, CertificateId, Configuration, Kind, Listener, ListenerId, Origin, PrivateKey,
        RouteHost, RouteKey, Server, ServerName, Speaks,
    };
    use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber};
    use std::sync::Arc;

    fn der() -> Vec<u8> {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
        params.serial_number = Some(SerialNumber::from(66_000));
        params.distinguished_name.push(DnType::CommonName, "Test Issuer");
        params.distinguished_name.push(DnType::OrganizationName, "Tests");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn a_certificate_is_told_as_in_go() {
        let details = read(&der()).expect("a certificate");
        assert_eq!((details.identifier.as_str(), details.serial.as_str()), ("-66000", "66000"));
        let issuer = (details.organization.as_str(), details.common_name.as_str());
        assert_eq!((issuer, details.algorithm), (("Tests", "Test Issuer"), "ECDSA"));
        assert!(read(b"no certificate").is_none());
    }

    #[test]
    fn however_long_an_issuer_is_each_line_is_short() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, "c".repeat(40_000));
        params.distinguished_name.push(DnType::OrganizationName, "o".repeat(40_000));
        let details = read(params.self_signed(&key).expect("a certificate").der());
        let details = details.expect("it is read");
        assert_eq!((details.common_name.len(), details.organization.len()), (256, 256));
    }

    #[test]
    fn hosts_of_gateways_are_told_with_the_certificates_of_their_listeners_and_none_twice() {
        let own = CertificateId::new("demo/tls");
        let certificate = |id: &CertificateId| {
            let (id, names) = (id.clone(), Vec::new().into());
            let key = PrivateKey(Vec::new());
            Arc::new(Certificate { id, chain: vec![der()], key, names, not_after: 0 })
        };
        let host = |name: &str, id: &CertificateId| {
            let name = ServerName::new(name);
            let host = RouteHost { certificate: Some(id.clone()), ..RouteHost::new(name.clone()) };
            (RouteKey { listener: None, host: name }, Arc::new(host))
        };
        let listener = |hosts: &str, id: &CertificateId| {
            let address = "192.0.2.1:443".parse().expect("an address");
            let key = ListenerId { address, hosts: ServerName::new(hosts) };
            let listener = Listener {
                id: key.clone(),
                port: None,
                speaks: Speaks::Https,
                certificate: Some(id.clone()),
                clients: None,
                origin: Origin::new(Kind::Gateway, "demo", "gw"),
            };
            (key, Arc::new(listener))
        };
        let (other, gone) = (CertificateId::new("team/gw"), CertificateId::new("team/gone"));
        let name = ServerName::new("a.test");
        let server = Server { certificate: Some(own.clone()), ..Server::new(name.clone()) };
        let configuration = Configuration {
            servers: [(name, Arc::new(server))].into_iter().collect(),
            routes: [host("a.test", &own), host("*.g.test", &other), host("x.test", &gone)]
                .into_iter()
                .collect(),
            listeners: [listener("*.g.test", &other), listener("own.test", &other)]
                .into_iter()
                .collect(),
            certificates: [&own, &other]
                .map(|id| (id.clone(), certificate(id)))
                .into_iter()
                .collect(),
            ..Configuration::default()
        };
        let mut known = Known::default();
        let shown = known.of(&configuration, None);
        let told: Vec<_> = shown.iter().map(|one| (one.host, one.namespace, one.secret)).collect();
        assert_eq!(
            told,
            [("a.test", "demo", "tls"), ("*.g.test", "team", "gw"), ("own.test", "team", "gw")]
        );
    }

    #[test]
    fn hosts_without_a_certificate_say_nothing_and_the_catch_all_has_one_always() {
        let id = CertificateId::new("demo/tls");
        let certificate = Certificate {
            id: id.clone(),
            chain: vec![der()],
            key: PrivateKey(Vec::new()),
            names: Vec::new().into(),
            not_after: 0,
        };
        let server = |name: &str, certificate| {
            let name = ServerName::new(name);
            (name.clone(), Arc::new(Server { certificate, ..Server::new(name) }))
        };
        let configuration = Configuration {
            servers: [
                server("_", None),
                server("a.test", Some(id.clone())),
                server("b.test", None),
            ]
            .into_iter()
            .collect(),
            certificates: [(id, Arc::new(certificate))].into_iter().collect(),
            ..Configuration::default()
        };
        let (own, mut known) = (der(), Known::default());
        let shown = known.of(&configuration, Some(&own));
        let told: Vec<_> = shown.iter().map(|one| (one.host, one.namespace, one.secret)).collect();
        assert_eq!(told, [("_", "", ""), ("a.test", "demo", "tls")]);
    }
}
