//! What Ingresses ask of the TLS connections of their host: the strictest demand for certificates of clients, and the
//! first cipher suites (compat/decisions.md).

use crate::ingress::{Draft, Rank, Standing, origin};
use model::policy::{Ciphers, ClientCertificate, ClientDemand};
use model::{Problem, ServerName, Severity};
use std::collections::BTreeMap;
use std::sync::Arc;

const SECRET: &str = "auth-tls-secret";

type Drafts = BTreeMap<Rank, Arc<Draft>>;

fn taken(drafts: &Drafts) -> impl Iterator<Item = &Arc<Draft>> {
    drafts.values().filter(|draft| draft.standing == Standing::Taken)
}

/// The strictest demand, the oldest among equals. A path whose Ingress asks for another one keeps it besides.
pub(crate) fn client_certificate(
    host: &ServerName,
    drafts: &Drafts,
    problems: &mut Vec<Problem>,
) -> Option<ClientCertificate> {
    let asked = || {
        taken(drafts).filter_map(|draft| Some((draft, draft.root.0.client_certificate.as_ref()?)))
    };
    let strictest = asked().map(|(_, asked)| strictness(asked)).max()?;
    let (owner, counts) = asked().find(|(_, asked)| strictness(asked) == strictest)?;
    for (draft, other) in asked().filter(|(_, other)| *other != counts) {
        if matches!(other, ClientCertificate::Closed(_)) {
            continue;
        }
        let key = &owner.ingress.meta.key;
        let message = format!(
            "Ingress {}/{} asks the clients of host {host} for a certificate in another way, which is the stricter or \
             older one and counts for the whole host; the paths of this Ingress ask for both, make them agree",
            key.namespace, key.name
        );
        problems.push(Problem {
            origin: origin(&draft.ingress.meta.key),
            key: Some(SECRET.to_owned()),
            severity: Severity::Warning,
            message,
        });
    }
    Some(counts.clone())
}

fn strictness(asked: &ClientCertificate) -> (bool, ClientDemand) {
    match asked {
        ClientCertificate::Closed(_) => (true, ClientDemand::Required),
        ClientCertificate::Verified(verification) => (false, verification.demand),
    }
}

/// The first of each (compat/annotations.csv).
pub(crate) fn ciphers(drafts: &Drafts) -> Option<Ciphers> {
    let asked = || taken(drafts).filter_map(|draft| draft.root.0.ciphers.as_ref());
    let suites = asked().map(|asked| &asked.suites).find(|suites| !suites.is_empty());
    let prefer_server = asked().find_map(|asked| asked.prefer_server);
    asked().next()?;
    Some(Ciphers { suites: suites.cloned().unwrap_or_default(), prefer_server })
}
