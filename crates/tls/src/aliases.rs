//! Certificates of names that lead to a server besides its own: they have the server's certificate if that covers them,
//! else they count as without one (compat/behaviour.md section 11).

use imbl::OrdMap;
use model::{Certificate, CertificateId, Changes, Configuration, Server, ServerName};
use std::sync::Arc;

/// Certificates of names that lead to a server besides its own.
#[derive(Clone, Debug, Default)]
pub(super) struct AliasCertificates {
    servers: OrdMap<ServerName, Arc<Server>>,
    by_name: OrdMap<ServerName, CertificateId>,
    certificates: OrdMap<CertificateId, Arc<Certificate>>,
    default: Option<CertificateId>,
}

impl AliasCertificates {
    /// Those of `configuration`, of which `changes` differ from the one before.
    pub(super) fn follow(&mut self, configuration: &Configuration, changes: &Changes) {
        // A name may move from one server to another: first all that was goes.
        for server in changes.servers.iter().filter_map(|name| self.servers.get(name)) {
            for name in server.certified_names() {
                self.by_name.remove(&name);
            }
        }
        for server in changes.servers.iter().filter_map(|name| configuration.servers.get(name)) {
            let Some(id) = &server.certificate else { continue };
            self.by_name.extend(server.certified_names().map(|name| (name, id.clone())));
        }
        self.servers.clone_from(&configuration.servers);
        self.certificates.clone_from(&configuration.certificates);
        self.default.clone_from(&configuration.default_certificate);
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The certificate of a name, `*.parent` included, if it covers it.
    pub(super) fn get(&self, name: &str) -> Option<&CertificateId> {
        if self.by_name.is_empty() {
            return None;
        }
        let id = self.by_name.get(name)?;
        let of_default = || self.certificates.get(self.default.as_ref()?);
        let certificate = self.certificates.get(id).or_else(of_default)?;
        certificate.covers(name).then_some(id)
    }
}
