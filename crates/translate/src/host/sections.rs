//! Which certificate the TLS sections of an Ingress have for a host. An Ingress may have as many sections as hosts, so
//! they are read once for all of its hosts.

use super::{Host, Surroundings, heard, not_heard, unheard};
use crate::ingress::{Draft, Drafts};
use crate::problems::LONGEST;
use crate::tenancy::Item;
use model::{CertificateId, Message, ServerName, Severity};
use objects::{Ingress, ObjectKey};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Hosts of an Ingress for each of which its sections are read anew: most have few, and nothing is put aside.
const FEW: usize = 8;

/// The TLS sections of an Ingress.
#[derive(Debug)]
pub(crate) struct Sections {
    ingress: Arc<Ingress>,
    /// By each host that is listed, in lower case, the first section that lists it.
    listed: HashMap<String, usize>,
    /// The Secrets of all sections, each once, and how many of them were looked at for hosts that nobody lists.
    secrets: Vec<ObjectKey>,
    looked_at: usize,
    /// By each name in the certificates of these, the first of them.
    names: HashMap<String, usize>,
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
        let secrets = names.filter(|secret| seen.insert(secret.clone())).collect();
        let (names, ingress) = (HashMap::new(), Arc::clone(ingress));
        Self { ingress, listed, secrets, looked_at: 0, names, unusable: None }
    }

    /// The Secret of the first section that lists the host, else of the first one whose certificate covers it.
    fn secret_for(
        &mut self,
        host: &str,
        surroundings: &mut impl Surroundings,
    ) -> Option<ObjectKey> {
        if let Some(section) = self.listed.get(&host.to_ascii_lowercase()) {
            return secret(&self.ingress, *section);
        }
        let known = |names: &HashMap<String, usize>| {
            covering(host).filter_map(|name| names.get(&name).copied()).min()
        };
        let mut found = known(&self.names);
        while let (None, Some(secret)) = (found, self.secrets.get(self.looked_at)) {
            if let Ok(judged) = surroundings.certificate(secret) {
                for name in &judged.certificate.names {
                    self.names.entry(name.clone()).or_insert(self.looked_at);
                }
                found = known(&self.names);
            }
            self.looked_at += 1;
        }
        found.map(|secret| self.secrets[secret].clone())
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
    /// The first Ingress of the host with a TLS section decides (compat/behaviour.md section 11).
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
        let ours = heard(self.name, drafts, allowed, Item::Certificate).find(has_tls);
        if ours.is_none() {
            for draft in unheard(self.name, drafts, allowed, Item::Certificate).filter(has_tls) {
                let message = not_heard(self.name, Item::Certificate);
                self.problem(&draft.ingress.meta.key, "spec.tls", Severity::Warning, message);
            }
        }
        let Draft { ingress, hosts, .. } = &**ours?;
        let key = &ingress.meta.key;
        let known = surroundings.take_sections(key);
        let mut sections = known.unwrap_or_else(|| Sections::of(ingress));
        let certificate = self.certificate_of(&mut sections, key, surroundings);
        if hosts.len() > FEW {
            surroundings.put_sections(key, sections);
        }
        Some(certificate.unwrap_or_else(CertificateId::of_default))
    }

    /// The certificate that the sections of an Ingress have for the host; none: it has the default one.
    fn certificate_of(
        &mut self,
        sections: &mut Sections,
        ingress: &ObjectKey,
        surroundings: &mut impl Surroundings,
    ) -> Option<CertificateId> {
        let Some(secret) = sections.secret_for(self.name.as_str(), surroundings) else {
            self.tell_without_secret(sections, ingress, surroundings);
            return None;
        };
        let wrong = match surroundings.certificate(&secret) {
            Ok(judged) if judged.covers(self.name.as_str()) => {
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
