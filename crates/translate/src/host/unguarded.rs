//! Hosts of which nobody knows whom they keep out: what their owner may guard all of them by is not understood, or its
//! Ingress is not taken. And what a namespace guards of its own on the host of another one by a word about all of it,
//! which is not heard: else whoever has an older Ingress would open that by adding a path to the host.

use super::owners::unheard_or_not;
use super::tls::{asks_clients, keeps_out, strictness};
use super::{Host, heard, heard_or_not};
use crate::ingress::{Draft, Drafts, Standing, origin};
use crate::tenancy::{Item, remedy};
use model::policy::ClientCertificate;
use model::{Backend, Location, Message, Severity, Why};
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The annotations.
const SNIPPET: &str = "server-snippet";
const SECRET: &str = "auth-tls-secret";

impl Host<'_> {
    /// Whom a text keeps out that nobody understands is not known: no path of the host is served until it is mended, of
    /// its namespace at the least.
    pub(super) fn unguarded(&mut self, draft: &Draft) {
        if let Some(reason) = &draft.snippets.unguarded {
            self.close_all(draft, SNIPPET, "understood", reason, draft.host_guards.of_others);
        }
    }

    /// Closes the host where a guard of it is that of an Ingress which is not taken: its own paths are closed anyway,
    /// and those of others were served without it. `counts` is what the host asks its clients for.
    pub(super) fn lost_guards(&mut self, drafts: &Drafts, counts: Option<&ClientCertificate>) {
        let of_others = |draft: &Draft| draft.host_guards.of_others;
        let snippets = self.lost_snippets(drafts);
        let snippets = snippets.iter().map(|draft| (SNIPPET, draft, of_others(draft)));
        let certificate = self.lost_certificate(drafts, counts);
        let certificate = certificate.iter().map(|draft| (SECRET, draft, true));
        for (annotation, draft, of_others) in snippets.chain(certificate) {
            let lacks = if draft.waits.is_some() { "served" } else { "taken" };
            self.close_all(draft, annotation, lacks, &Message::from(""), of_others);
        }
    }

    /// The Ingresses that are not taken and of which one's `server-snippet` may have counted, with a guard: what stands
    /// before the first that is taken. One that may guard all of the host, or one of each namespace.
    fn lost_snippets<'d>(&self, drafts: &'d Drafts) -> Vec<&'d Arc<Draft>> {
        let allowed = self.ground.permissions.cross_namespace;
        let all = heard_or_not(self.name, drafts, allowed, Item::ServerSnippet).filter(has_word);
        let mut all: Vec<_> = all.collect();
        all.sort_by_cached_key(|draft| draft.age());
        let lost = all.into_iter().take_while(|draft| !is_taken(draft));
        let lost = lost.filter(|draft| draft.host_guards.snippet);
        if let Some(guards_all) = lost.clone().find(|draft| draft.host_guards.of_others) {
            return vec![guards_all];
        }
        let mut told = BTreeSet::new();
        lost.filter(|draft| told.insert(&draft.ingress.meta.key.namespace)).collect()
    }

    /// An Ingress that asks for certificates and would say how, were it taken: more strictly than those that are, or
    /// before them.
    fn lost_certificate<'d>(
        &self,
        drafts: &'d Drafts,
        counts: Option<&ClientCertificate>,
    ) -> Option<&'d Arc<Draft>> {
        let allowed = self.ground.permissions.cross_namespace;
        let item = Item::ClientCertificate;
        let mut taken = heard(self.name, drafts, allowed, item);
        let says = taken.find(|draft| counts.is_some() && asked(draft) == counts);
        let all = heard_or_not(self.name, drafts, allowed, item);
        self.lost_beside(says, all.filter(|draft| draft.host_guards.certificate))
    }

    /// Of Ingresses one that is not taken and would say how clients are asked for certificates, were it taken. `says`
    /// is the one that does.
    fn lost_beside<'d>(
        &self,
        says: Option<&Arc<Draft>>,
        mut all: impl Iterator<Item = &'d Arc<Draft>>,
    ) -> Option<&'d Arc<Draft>> {
        let counts = says.and_then(|says| Some((says, asked(says)?)));
        if let Some((_, ClientCertificate::Closed(_))) = counts {
            return None;
        }
        all.find(|draft| {
            if draft.standing != Standing::Rejected {
                return false;
            }
            let Some((says, counts)) = counts else { return true };
            // What cannot be read, or is not yet, may be what another one asks for as well.
            let Some(own) = asked(draft) else { return !self.ask_alike(draft, says) };
            let (mine, theirs) = (strictness(own), strictness(counts));
            own != counts && (mine > theirs || mine == theirs && draft.age() < says.age())
        })
    }

    /// Closes what namespaces that are not heard may guard of their own on the host by a `server-snippet`. Which one
    /// that is, is nginx's choice among those of a namespace: the first that is taken and what mistakes hide before it.
    /// Returns the Ingresses that have them.
    pub(super) fn unheard_snippets(&mut self, drafts: &Drafts) -> BTreeSet<ObjectKey> {
        let allowed = self.ground.permissions.cross_namespace;
        let mut closing = BTreeMap::new();
        for (namespace, of) in unheard_or_not(self.name, drafts, allowed, Item::ServerSnippet) {
            let mut words = of.into_iter().filter(has_word);
            let hidden = words.clone().take_while(|draft| !is_taken(draft));
            let mut firsts = hidden.chain(words.find(is_taken));
            if let Some(draft) = firsts.find(|draft| draft.host_guards.snippet) {
                closing.insert(namespace, draft);
            }
        }
        for (namespace, draft) in &closing {
            self.close_own(namespace, draft, (SNIPPET, Item::ServerSnippet), |_| true);
        }
        closing.into_values().map(|draft| draft.ingress.meta.key.clone()).collect()
    }

    /// Closes what namespaces that are not heard guard of their own on the host by asking for certificates: what the
    /// strictest demand of each does not reach. One that keeps nobody out guards nothing where the host asks for none;
    /// where it asks, what the host's CA says of clients is not what that demand would say.
    pub(super) fn unheard_certificates(
        &mut self,
        drafts: &Drafts,
        counts: Option<&ClientCertificate>,
    ) {
        let allowed = self.ground.permissions.cross_namespace;
        let item = Item::ClientCertificate;
        let host_asks = counts.is_some_and(asks_clients);
        for (namespace, of) in unheard_or_not(self.name, drafts, allowed, item) {
            let taken = of.iter().filter(|draft| is_taken(draft) && asked(draft).is_some());
            // Of those as strict the oldest.
            let says = taken.rev().max_by_key(|draft| asked(draft).map(strictness)).copied();
            let guards = |draft: &&Arc<Draft>| {
                draft.host_guards.certificate || host_asks && draft.host_guards.asks
            };
            if let Some(lost) = self.lost_beside(says, of.iter().copied().filter(guards)) {
                self.close_own(namespace, lost, (SECRET, item), |_| true);
            }
            let demand = says.and_then(|says| asked(says));
            let demand =
                demand.filter(|demand| counts != Some(*demand) && (host_asks || keeps_out(demand)));
            if let Some((says, demand)) = says.zip(demand) {
                let lacks = |at: &Location| at.policy.client_certificate.as_ref() != Some(demand);
                self.close_own(namespace, says, (SECRET, item), lacks);
            }
        }
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

    /// Closes all locations of the host, or those of its namespace, which an Ingress may guard by an annotation that is
    /// not what it should be, and tells those of others.
    fn close_all(
        &mut self,
        draft: &Draft,
        annotation: &str,
        lacks: &str,
        reason: &Message,
        of_others: bool,
    ) {
        let owner = origin(&draft.ingress.meta.key);
        let name = self.name;
        let what = if of_others { "all" } else { "what its namespace has" };
        // What others wrote is not told.
        let denied =
            format!("{annotation} of {owner} may guard {what} of host {name}, and is not {lacks}");
        let mut others = BTreeSet::new();
        for location in &mut self.locations {
            let whose = location.origin.as_deref();
            if !of_others && whose.is_none_or(|whose| whose.namespace != owner.namespace) {
                continue;
            }
            let whose = whose.filter(|whose| **whose != owner);
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

    /// Closes locations of a namespace on the host of another one, which an Ingress of it may guard by an annotation
    /// that is not heard, and tells those that have them.
    fn close_own(
        &mut self,
        namespace: &Arc<str>,
        draft: &Draft,
        (annotation, item): (&str, Item),
        is_concerned: impl Fn(&Location) -> bool,
    ) {
        let whose = origin(&draft.ingress.meta.key);
        let denied = format!(
            "{annotation} of {whose} may guard what its namespace has of host {}, and is not heard there",
            self.name
        );
        let mut others = BTreeSet::new();
        for location in &mut self.locations {
            let Some(own) = location.origin.as_deref() else { continue };
            if own.namespace != *namespace || !is_concerned(location) {
                continue;
            }
            if *own != whose {
                others.insert(own.clone());
            }
            if !matches!(location.backend, Backend::Denied(_)) {
                let location = Arc::make_mut(location);
                (location.backend, location.canary) = (Backend::Denied(denied.clone()), None);
            }
        }
        for other in others {
            let message = format!(
                "{denied}, since another namespace owns the host: the paths of this Ingress there answer 503; write the \
                 guard into annotations of each of them that are heard, or {}",
                remedy(item)
            );
            let key = ObjectKey { namespace: other.namespace, name: other.name };
            let message = Why::OtherNamespace.says(message);
            self.problem(&key, annotation, Severity::Error, message);
        }
    }
}

/// Whether an Ingress has a `server-snippet`, as far as anybody knows.
fn has_word(draft: &&Arc<Draft>) -> bool {
    let raw = draft.root.0.raw.as_ref().is_some_and(|raw| raw.server.is_some());
    draft.snippets.has_server || raw || draft.host_guards.snippet
}

fn is_taken(draft: &&Arc<Draft>) -> bool {
    draft.standing == Standing::Taken
}

/// What an Ingress asks clients for.
fn asked(draft: &Draft) -> Option<&ClientCertificate> {
    draft.root.0.client_certificate.as_ref()
}
