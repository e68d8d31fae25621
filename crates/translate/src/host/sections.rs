//! Which certificate the TLS sections of an Ingress have for a host. An Ingress may have as many sections as hosts, so
//! they are read once for all of its hosts. The certificates in them may have millions of names: these are gone
//! through, for all hosts at once, where looking for one host after the other would take longer.

use super::{Host, Surroundings, heard_or_not, not_heard, unheard};
use crate::certificate::Judged;
use crate::ingress::{Draft, Drafts};
use crate::problems::LONGEST;
use crate::tenancy::Item;
use model::{CertificateId, Message, ServerName, Severity};
use objects::{Ingress, ObjectKey};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Hosts of an Ingress for each of which its sections are read anew: most have few, and nothing is put aside.
const FEW: usize = 8;
/// Looking for a host in a certificate takes as long as going through so many of its names.
const LOOK: usize = 16;

/// The TLS sections of an Ingress.
#[derive(Debug)]
pub(crate) struct Sections {
    ingress: Arc<Ingress>,
    /// By each host that is listed, in lower case, the first section that lists it.
    listed: HashMap<String, usize>,
    /// The Secrets of all sections, each once.
    secrets: Vec<ObjectKey>,
    /// Those of them whose names are not among `wanted`, and how often each was looked into.
    looks: BTreeMap<usize, usize>,
    /// By each name that a host of the Ingress may have in a certificate, the first of the other Secrets with it.
    wanted: HashMap<String, Option<usize>>,
    unusable: Option<Unusable>,
}

/// Sections whose Secret cannot be used: the first of those without hosts, and the first for each parent of a wildcard.
#[derive(Debug, Default)]
struct Unusable {
    open: Option<usize>,
    below: HashMap<String, usize>,
}

/// What certificates call a host: its name, and the wildcard that covers it (RFC 6125 6.4.3).
fn covering(host: &str) -> impl Iterator<Item = String> {
    let wildcard = host.split_once('.').map(|(_, parent)| format!("*.{parent}"));
    std::iter::once(host.to_owned()).chain(wildcard)
}

impl Sections {
    fn of(ingress: &Arc<Ingress>) -> Self {
        let (mut listed, mut seen) = (HashMap::new(), HashSet::new());
        for (number, section) in ingress.tls.iter().enumerate() {
            for host in &section.hosts {
                listed.entry(host.to_ascii_lowercase()).or_insert(number);
            }
        }
        let names = (0..ingress.tls.len()).filter_map(|number| secret(ingress, number));
        let secrets: Vec<_> = names.filter(|secret| seen.insert(secret.clone())).collect();
        let looks = (0..secrets.len()).map(|secret| (secret, 0)).collect();
        let (wanted, ingress) = (HashMap::new(), Arc::clone(ingress));
        Self { ingress, listed, secrets, looks, wanted, unusable: None }
    }

    /// The Secret of the first section that lists a host of `draft`, else of the first one whose certificate covers it.
    fn secret_for(
        &mut self,
        host: &str,
        draft: &Draft,
        surroundings: &mut impl Surroundings,
    ) -> Option<ObjectKey> {
        if let Some(section) = self.listed.get(&host.to_ascii_lowercase()) {
            return secret(&self.ingress, *section);
        }
        let of_name = |name: String| self.wanted.get(&name).copied().flatten();
        let mut found = covering(host).filter_map(of_name).min();
        let mut known = Vec::new();
        for (secret, looks) in &mut self.looks {
            if found.is_some_and(|found| found < *secret) {
                break;
            }
            let judged = surroundings.certificate(&self.secrets[*secret]).ok();
            let names = judged.as_ref().map_or(0, |judged| judged.certificate.names.len());
            if judged.as_ref().is_some_and(|judged| judged.certificate.covers(host)) {
                found = Some(*secret);
            }
            *looks += 1;
            if *looks * LOOK > names {
                known.push((*secret, judged));
            }
        }
        for (secret, judged) in known {
            self.looks.remove(&secret);
            self.go_through(secret, judged.as_deref(), draft);
        }
        found.map(|secret| self.secrets[secret].clone())
    }

    /// Goes through the names of a Secret, once for all hosts.
    fn go_through(&mut self, secret: usize, judged: Option<&Judged>, draft: &Draft) {
        let Some(judged) = judged else { return };
        if self.wanted.is_empty() {
            let hosts = draft.servers();
            let names = hosts.flat_map(|host| covering(host.as_str()).collect::<Vec<_>>());
            self.wanted = names.map(|name| (name, None)).collect();
        }
        for name in judged.certificate.names.iter() {
            if let Some(first) = self.wanted.get_mut(name) {
                *first = Some(first.map_or(secret, |first| first.min(secret)));
            }
        }
    }

    /// What is wrong with the Secret of a section that stands for the host without listing it: by a wildcard, or as one
    /// without hosts.
    fn wrong_for(&mut self, host: &str, surroundings: &mut impl Surroundings) -> Option<Message> {
        if self.listed.contains_key(&host.to_ascii_lowercase()) {
            return None;
        }
        let ingress = &self.ingress;
        let unusable = self.unusable.get_or_insert_with(|| Unusable::of(ingress, surroundings));
        let parent = host.split_once('.').map_or("", |(_, parent)| parent);
        let below = unusable.below.get(&parent.to_ascii_lowercase());
        let first = unusable.open.iter().chain(below).min()?;
        let secret = secret(ingress, *first)?;
        let wrong = surroundings.certificate(&secret).err()?;
        Some(wrong.within(format!("Secret {}/{} {wrong}", secret.namespace, secret.name)))
    }
}

impl Unusable {
    fn of(ingress: &Ingress, surroundings: &mut impl Surroundings) -> Self {
        let mut all = Self::default();
        for (number, section) in ingress.tls.iter().enumerate() {
            let Some(secret) = secret(ingress, number) else { continue };
            let parents = section.hosts.iter().filter_map(|host| host.strip_prefix("*."));
            let mut parents = parents.peekable();
            let is_open = section.hosts.is_empty();
            if (is_open || parents.peek().is_some()) && surroundings.certificate(&secret).is_err() {
                all.open = all.open.or(is_open.then_some(number));
                for parent in parents {
                    all.below.entry(parent.to_ascii_lowercase()).or_insert(number);
                }
            }
        }
        all
    }
}

/// The Secret of a section, if it names one.
fn secret(ingress: &Ingress, section: usize) -> Option<ObjectKey> {
    let name = ingress.tls.get(section)?.secret.as_deref().filter(|name| !name.is_empty())?;
    Some(ObjectKey::new(Arc::clone(&ingress.meta.key.namespace), name))
}

/// What a certificate is for, no longer than a message may be.
fn listed(names: &[String]) -> String {
    let mut bytes = 0;
    let shown = names.iter().take_while(|name| {
        let fits = bytes <= LONGEST;
        bytes += name.len();
        fits
    });
    shown.map(String::as_str).collect::<Vec<_>>().join(", ")
}

impl Host<'_> {
    /// The first Ingress of the host with a TLS section decides (compat/behaviour.md section 11). One that waits for
    /// room does in its turn, and one with a mistake where nobody else does: others on the host are not served in
    /// clear for it.
    pub(super) fn certificate(
        &mut self,
        drafts: &Drafts,
        surroundings: &mut impl Surroundings,
    ) -> Option<CertificateId> {
        if *self.name == ServerName::catch_all() {
            return None;
        }
        let allowed = self.ground.permissions.cross_namespace;
        let has_tls = |draft: &&Arc<Draft>| !draft.ingress.tls.is_empty();
        let ours = heard_or_not(self.name, drafts, allowed, Item::Certificate).find(has_tls);
        if ours.is_none() {
            for draft in unheard(self.name, drafts, allowed, Item::Certificate).filter(has_tls) {
                let message = not_heard(self.name, Item::Certificate);
                self.problem(&draft.ingress.meta.key, "spec.tls", Severity::Warning, message);
            }
        }
        let draft = &**ours?;
        if draft.waits.is_some_and(|waits| !waits.certificates) {
            return Some(CertificateId::of_default());
        }
        let key = &draft.ingress.meta.key;
        let known = surroundings.take_sections(key);
        let mut sections = known.unwrap_or_else(|| Sections::of(&draft.ingress));
        let certificate = self.certificate_of(&mut sections, draft, surroundings);
        let beside = draft.canary.as_ref().map_or(0, |canary| canary.hosts.len());
        if draft.hosts.len() + beside > FEW {
            surroundings.put_sections(key, sections);
        }
        Some(certificate.unwrap_or_else(CertificateId::of_default))
    }

    /// The certificate that the sections of an Ingress have for the host; none: it has the default one.
    fn certificate_of(
        &mut self,
        sections: &mut Sections,
        draft: &Draft,
        surroundings: &mut impl Surroundings,
    ) -> Option<CertificateId> {
        let ingress = &draft.ingress.meta.key;
        let found = sections.secret_for(self.name.as_str(), draft, surroundings);
        let Some(secret) = found else {
            self.tell_without_secret(sections, ingress, surroundings);
            return None;
        };
        let wrong = match surroundings.certificate(&secret) {
            Ok(judged) if judged.certificate.covers(self.name.as_str()) => {
                for said in judged.said() {
                    let message = format!("Secret {}/{} {said}", secret.namespace, secret.name);
                    let message = said.within(message);
                    self.problem(ingress, "spec.tls", Severity::Warning, message);
                }
                return Some(judged.certificate.id.clone());
            }
            Ok(judged) => {
                let names = listed(&judged.certificate.names);
                format!("is for {names}, not for {}", self.name).into()
            }
            Err(wrong) => wrong,
        };
        let message = format!(
            "Secret {}/{} {wrong}; host {} has the default certificate",
            secret.namespace, secret.name, self.name
        );
        self.problem(ingress, "spec.tls", Severity::Warning, wrong.within(message));
        None
    }

    /// Says why no Secret is for the host.
    fn tell_without_secret(
        &mut self,
        sections: &mut Sections,
        ingress: &ObjectKey,
        surroundings: &mut impl Surroundings,
    ) {
        let name = self.name;
        let wrong = sections.wrong_for(name.as_str(), surroundings);
        let severity = if wrong.is_some() { Severity::Warning } else { Severity::Notice };
        let message = match wrong {
            Some(wrong) => {
                wrong.within(format!("{wrong}; host {name} has the default certificate"))
            }
            None => format!(
                "no Secret of the TLS sections is for host {name}, which has the default certificate; list it beside its Secret"
            )
            .into(),
        };
        self.problem(ingress, "spec.tls", severity, message);
    }
}
