//! Hosts of which nobody knows whom they keep out: what their owner may guard all of them by is not understood, or its
//! Ingress is not taken.

use super::{Host, heard, heard_or_not};
use crate::ingress::{Draft, Drafts, Standing, origin};
use crate::tenancy::Item;
use model::policy::ClientCertificate;
use model::{Backend, Message, Severity};
use objects::ObjectKey;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The annotations.
const SNIPPET: &str = "server-snippet";
const SECRET: &str = "auth-tls-secret";

impl Host<'_> {
    /// Whom a text keeps out that nobody understands is not known: no path of the host is served until it is mended.
    pub(super) fn unguarded(&mut self, draft: &Draft) {
        if let Some(reason) = &draft.snippets.unguarded {
            self.close_all(draft, SNIPPET, "understood", reason);
        }
    }

    /// Closes the host where a guard of it is that of an Ingress which is not taken: its own paths are closed anyway,
    /// and those of others were served without it. `counts` is what the host asks its clients for.
    pub(super) fn lost_guards(&mut self, drafts: &Drafts, counts: Option<&ClientCertificate>) {
        let lost = [
            (SNIPPET, self.lost_snippet(drafts).cloned()),
            (SECRET, self.lost_certificate(drafts, counts).cloned()),
        ];
        for (annotation, draft) in lost {
            if let Some(draft) = draft {
                let lacks = if draft.waits.is_some() { "served" } else { "taken" };
                self.close_all(&draft, annotation, lacks, &Message::from(""));
            }
        }
    }

    /// The Ingress whose `server-snippet` would count if all were taken, where it is not and has a guard.
    fn lost_snippet<'d>(&self, drafts: &'d Drafts) -> Option<&'d Arc<Draft>> {
        let allowed = self.ground.permissions.cross_namespace;
        let has_word = |draft: &&Arc<Draft>| {
            let raw = draft.root.0.raw.as_ref().is_some_and(|raw| raw.server.is_some());
            draft.snippets.has_server || raw || draft.host_guards.snippet
        };
        let all = heard_or_not(self.name, drafts, allowed, Item::ServerSnippet).filter(has_word);
        let first = all.min_by(|one, other| one.age().cmp(&other.age()))?;
        let is_lost = first.standing == Standing::Rejected && first.host_guards.snippet;
        Some(first).filter(|_| is_lost)
    }

    /// An Ingress that asks for certificates and would say how, were it taken: more strictly than those that are, or
    /// before them.
    fn lost_certificate<'d>(
        &self,
        drafts: &'d Drafts,
        counts: Option<&ClientCertificate>,
    ) -> Option<&'d Arc<Draft>> {
        if let Some(ClientCertificate::Closed(_)) = counts {
            return None;
        }
        let allowed = self.ground.permissions.cross_namespace;
        let item = Item::ClientCertificate;
        let asked = |draft: &Draft| draft.root.0.client_certificate.clone();
        let mut taken = heard(self.name, drafts, allowed, item);
        let says = taken.find(|draft| counts.is_some() && asked(draft).as_ref() == counts);
        let mut lost = heard_or_not(self.name, drafts, allowed, item)
            .filter(|draft| draft.standing == Standing::Rejected && draft.host_guards.certificate);
        lost.find(|draft| {
            let Some(says) = says else { return true };
            // What cannot be read, or is not yet, may be what another one asks for as well.
            let Some(own) = asked(draft) else { return !self.ask_alike(draft, says) };
            let Some(counts) = counts.filter(|counts| **counts != own) else { return false };
            let (own, counts) = (super::tls::strictness(&own), super::tls::strictness(counts));
            own > counts || own == counts && draft.age() < says.age()
        })
    }

    /// Whether two Ingresses ask for certificates by the same texts.
    fn ask_alike(&self, one: &Draft, other: &Draft) -> bool {
        let prefix = self.full_name("auth-tls-");
        let texts = |draft: &'_ Draft| {
            let all = draft.ingress.meta.annotations.iter();
            let own = all.filter(|(name, _)| name.starts_with(&prefix));
            own.map(|(name, text)| (name.clone(), text.clone())).collect::<Vec<_>>()
        };
        texts(one) == texts(other)
    }

    /// Closes all locations of the host, which an Ingress may guard by an annotation that is not what it should be, and
    /// tells those of others.
    fn close_all(&mut self, draft: &Draft, annotation: &str, lacks: &str, reason: &Message) {
        let owner = origin(&draft.ingress.meta.key);
        let name = self.name;
        // What others wrote is not told.
        let denied =
            format!("{annotation} of {owner} may guard all of host {name}, and is not {lacks}");
        let mut others = BTreeSet::new();
        for location in &mut self.locations {
            let whose = location.origin.as_deref().filter(|whose| **whose != owner);
            others.extend(whose.cloned());
            if !matches!(location.backend, Backend::Denied(_)) {
                let location = Arc::make_mut(location);
                (location.backend, location.canary) = (Backend::Denied(denied.clone()), None);
            }
        }
        let key = self.full_name(annotation);
        for whose in others {
            let whose = ObjectKey { namespace: whose.namespace, name: whose.name };
            let message = format!("{denied}: paths of the host answer 503 until it is mended");
            self.problem(&whose, &key, Severity::Error, reason.within(message));
        }
    }
}
