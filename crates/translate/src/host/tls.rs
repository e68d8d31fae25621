//! What Ingresses ask of the TLS connections of their host: the strictest demand for certificates of clients, and the
//! first cipher suites (compat/decisions.md).

use super::{Host, heard, not_heard, unheard};
use crate::ingress::{Draft, Drafts};
use crate::tenancy::Item;
use model::Backend;
use model::policy::{Ciphers, ClientCertificate, ClientDemand, Policy};
use objects::ObjectKey;
use std::sync::Arc;

const SECRET: &str = "auth-tls-secret";

impl Host<'_> {
    /// The strictest demand of the host's owner, the oldest among equals. A path whose Ingress asks for another one
    /// keeps it besides. Where the host asks for none, the paths of another namespace's Ingress that does are closed,
    /// unless it keeps nobody out; where the host asks, those that keep nobody out are closed, since another one's word
    /// would vouch for their clients. What stands beside such a path in its namespace would have its demand,
    /// were the host its own, and is closed, too.
    pub(super) fn client_certificate(&mut self, drafts: &Drafts) -> Option<ClientCertificate> {
        let allowed = self.ground.permissions.cross_namespace;
        let counts = self.strictest(drafts);
        let asks = |draft: &&Arc<Draft>| {
            let own = draft.root.0.client_certificate.as_ref();
            own.is_some() && own != counts.as_ref()
        };
        let unheard = unheard(self.name, drafts, allowed, Item::ClientCertificate).filter(asks);
        let keeps_out =
            |draft: &Arc<Draft>| draft.root.0.client_certificate.as_ref().is_some_and(keeps_out);
        let nobody_asks = !counts.as_ref().is_some_and(asks_clients);
        // Whether it is closed.
        let unheard: Vec<(&ObjectKey, bool)> = unheard
            .map(|draft| (&draft.ingress.meta.key, keeps_out(draft) == nobody_asks))
            .collect();
        let of = |closed: bool| {
            unheard.iter().filter(move |(_, is_closed)| *is_closed == closed).map(|(key, _)| *key)
        };
        let asks = if nobody_asks { "no certificate" } else { "certificates of another CA" };
        self.change(of(true), |location| {
            let reason = format!("the host asks its clients for {asks}");
            (location.backend, location.canary) = (Backend::Denied(reason), None);
        });
        if nobody_asks {
            // No engine is to close what is open.
            self.change(of(false), |location| {
                let open = Policy { client_certificate: None, ..Policy::clone(&location.policy) };
                location.policy = Arc::new(open);
            });
        }
        for (key, is_closed) in unheard {
            let mut message = not_heard(self.name, Item::ClientCertificate);
            if is_closed {
                let then = "; until then the paths of this Ingress there answer 503";
                message = message.within(format!("{message}{then}"));
            }
            self.annotation(key, SECRET, message);
        }
        self.unheard_certificates(drafts, counts.as_ref());
        counts
    }

    fn strictest(&mut self, drafts: &Drafts) -> Option<ClientCertificate> {
        let allowed = self.ground.permissions.cross_namespace;
        let asked = || {
            heard(self.name, drafts, allowed, Item::ClientCertificate)
                .filter_map(|draft| Some((draft, draft.root.0.client_certificate.as_ref()?)))
        };
        let strictest = asked().map(|(_, asked)| strictness(asked)).max()?;
        let (owner, counts) = asked().find(|(_, asked)| strictness(asked) == strictest)?;
        let others = asked().filter(|(_, other)| *other != counts);
        let others: Vec<_> =
            others.filter(|(_, other)| !matches!(other, ClientCertificate::Closed(_))).collect();
        for (draft, _) in others {
            let key = &owner.ingress.meta.key;
            let message = format!(
                "Ingress {}/{} asks the clients of host {} for a certificate in another way, which is the stricter or \
                 older one and counts for the whole host; the paths of this Ingress ask for both, make them agree",
                key.namespace, key.name, self.name
            );
            self.annotation(&draft.ingress.meta.key, SECRET, message);
        }
        Some(counts.clone())
    }

    /// The first of each (compat/annotations.csv).
    pub(super) fn ciphers(&mut self, drafts: &Drafts) -> Option<Ciphers> {
        let allowed = self.ground.permissions.cross_namespace;
        for draft in unheard(self.name, drafts, allowed, Item::Ciphers) {
            if draft.root.0.ciphers.is_some() {
                let message = not_heard(self.name, Item::Ciphers);
                self.annotation(&draft.ingress.meta.key, "ssl-ciphers", message);
            }
        }
        let asked = || {
            heard(self.name, drafts, allowed, Item::Ciphers)
                .filter_map(|draft| draft.root.0.ciphers.as_ref())
        };
        let suites = asked().map(|asked| &asked.suites).find(|suites| !suites.is_empty());
        let prefer_server = asked().find_map(|asked| asked.prefer_server);
        asked().next()?;
        Some(Ciphers { suites: suites.cloned().unwrap_or_default(), prefer_server })
    }
}

/// Whether a demand keeps anybody out: who may show any certificate, or none, comes in, whatever his subject is.
pub(super) fn keeps_out(asked: &ClientCertificate) -> bool {
    match asked {
        ClientCertificate::Closed(_) => true,
        ClientCertificate::Verified(verification) => {
            verification.demand >= ClientDemand::Optional || verification.subject.is_some()
        }
    }
}

/// Whether clients are asked for a certificate at all.
pub(super) fn asks_clients(asked: &ClientCertificate) -> bool {
    match asked {
        ClientCertificate::Closed(_) => true,
        ClientCertificate::Verified(verification) => verification.demand != ClientDemand::Off,
    }
}

/// How much a demand keeps out: what keeps out most counts.
pub(super) fn strictness(asked: &ClientCertificate) -> (bool, ClientDemand) {
    match asked {
        ClientCertificate::Closed(_) => (true, ClientDemand::Required),
        ClientCertificate::Verified(verification) => (false, verification.demand),
    }
}
