//! Who is to blame for what nginx does not take: whoever is new there. nginx names the second of two texts that do not
//! go together, and a text of the ConfigMap may be that and have run for years.

use super::acceptable::Search;
use super::{Failure, trial};
use crate::blame::{self, Instead};
use crate::conf::{self, Owner, SERVER_SNIPPET, Text, Unwritable};
use model::ServerName;
use std::collections::BTreeSet;

/// What nginx does not take, and where that is.
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) place: Place,
    /// Whether it is the paths of whoever is to blame.
    pub(super) is_path: bool,
}

/// Where it is, as far as nginx says.
#[derive(PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere.
    Nowhere,
    /// These have values that cannot be written.
    Values(BTreeSet<Owner>),
    /// In a line of somebody, in the location of somebody, in the server of a host.
    Line { owner: Option<Owner>, location: Option<Owner>, host: Option<ServerName> },
    /// In one of those who have a variable that nobody declares.
    Variable(BTreeSet<Owner>),
}

impl Refusal {
    /// What a test says of a text.
    pub(super) fn of(fault: trial::Fault, text: &Text) -> Self {
        let line = |line| Place::Line {
            owner: text.owner_of(line).cloned(),
            location: text.location_of(line).cloned(),
            host: text.host_of(line).cloned(),
        };
        let having =
            |name| Place::Variable(text.owners_of_variable(name).into_iter().cloned().collect());
        let unknown = || fault.unknown_variable().map_or(Place::Nowhere, having);
        Self {
            place: fault.line.map_or_else(unknown, line),
            is_path: fault.line.is_some_and(|line| text.begins_at(line)),
            reason: fault.message,
        }
    }

    /// What cannot be written at all.
    pub(super) fn unwritable(unwritable: Unwritable) -> Self {
        let reason = unwritable.to_string();
        Self { reason, place: Place::Values(unwritable.owners), is_path: false }
    }

    /// The same where nobody knows where it is.
    pub(super) fn nowhere(reason: String) -> Self {
        Self { reason, place: Place::Nowhere, is_path: false }
    }

    /// Whether it is the same thing at the same place.
    pub(super) fn is(&self, other: &Self) -> bool {
        let is_same = self.place == other.place;
        let has_variable = |it: &Self| matches!(it.place, Place::Variable(_));
        self.reason == other.reason && (is_same || has_variable(self) && has_variable(other))
    }
}

/// Whether it is a key of the ConfigMap.
fn is_text(owner: &Owner) -> bool {
    owner.key.is_some() && owner.host.is_none()
}

impl Search<'_> {
    /// Whoever is to blame for a refusal; nobody if that is not known.
    pub(super) async fn whom_to_blame(
        &mut self,
        refusal: &Refusal,
    ) -> Result<BTreeSet<Owner>, Failure> {
        let found = match &refusal.place {
            Place::Nowhere | Place::Line { owner: None, .. } => None,
            Place::Values(owners) => return Ok(owners.clone()),
            Place::Variable(having) => self.having(refusal, having).await?,
            Place::Line { owner: Some(owner), location, host } if is_text(owner) => {
                let beside = self.with_location_of_all(owner);
                if !beside.is_empty() && self.is_past(refusal, &beside).await? {
                    return Ok(beside.into_iter().collect());
                }
                let location = location.clone().filter(|location| self.is_new(location));
                let of_host = || self.new_parts(host.as_ref());
                let beside = location.map_or_else(of_host, |location| vec![location]);
                self.of_text(refusal, owner, beside).await?
            }
            Place::Line { owner: Some(owner), host, .. } => {
                let mut others =
                    if self.is_new(owner) { Vec::new() } else { self.new_parts(host.as_ref()) };
                others.retain(|other| other != owner);
                let found = self.first_past(refusal, others).await?;
                found.or_else(|| Some(owner.clone()))
            }
        };
        Ok(found.into_iter().collect())
    }

    /// The texts of hosts that have a location of the `server-snippet` of the ConfigMap, if that is the text. Or who
    /// has such a text could keep the operator's out by a name that he guesses, until a start.
    fn with_location_of_all(&self, text: &Owner) -> Vec<Owner> {
        if text.key != Some(SERVER_SNIPPET) {
            return Vec::new();
        }
        let servers = conf::with_location_of_all(self.next).into_iter();
        let texts = servers.filter_map(|server| Owner::of_host(server, SERVER_SNIPPET));
        texts.filter(|owner| !self.left_out.contains_key(owner)).collect()
    }

    /// Who is to blame where it is a text of the ConfigMap that nginx names: those beside it that are new, unless it is
    /// refused all alone, or is new itself where nobody else is.
    async fn of_text(
        &mut self,
        refusal: &Refusal,
        text: &Owner,
        beside: Vec<Owner>,
    ) -> Result<Option<Owner>, Failure> {
        let is_new = self.is_new(text);
        let mut others = blame::other_texts(self.next, self.before);
        others.retain(|other| other != text && !self.left_out.contains_key(other));
        let may_be_texts = is_new || !others.is_empty();
        let is_texts = may_be_texts && (beside.is_empty() || self.is_refused_alone(text).await?);
        if let (false, [one]) = (is_texts, &*beside) {
            return Ok(Some(one.clone()));
        }
        let beside = if is_texts { Vec::new() } else { beside };
        match self.first_past(refusal, beside).await? {
            Some(found) => Ok(Some(found)),
            None if is_new => Ok(Some(text.clone())),
            None => self.first_past(refusal, others).await,
        }
    }

    /// Who of those that have an unknown variable is to blame: who is new, and has more of it than a word in a pattern.
    async fn having(
        &mut self,
        refusal: &Refusal,
        having: &BTreeSet<Owner>,
    ) -> Result<Option<Owner>, Failure> {
        let (new, old): (Vec<_>, Vec<_>) = having.iter().cloned().partition(|it| self.is_new(it));
        if !new.is_empty() {
            return self.by_halves(refusal, new).await;
        }
        // Whoever declared it is gone.
        let (texts, old): (Vec<_>, Vec<_>) = old.into_iter().partition(is_text);
        if !old.is_empty()
            && let Some(found) = self.by_halves(refusal, old).await?
        {
            return Ok(Some(found));
        }
        let others = blame::other_texts(self.next, self.before);
        let found = self.first_past(refusal, others).await?;
        Ok(found.or_else(|| texts.into_iter().next()))
    }

    /// One of them without all of whom something is not refused any more; nobody if it is nevertheless.
    async fn by_halves(
        &mut self,
        refusal: &Refusal,
        mut suspects: Vec<Owner>,
    ) -> Result<Option<Owner>, Failure> {
        if suspects.len() > 1 && !self.is_past(refusal, &suspects).await? {
            return Ok(None);
        }
        while suspects.len() > 1 {
            let rest = suspects.split_off(suspects.len() / 2);
            if !self.is_past(refusal, &suspects).await? {
                suspects = rest;
            }
        }
        Ok(suspects.pop())
    }

    /// The first one without whom something is not refused any more.
    async fn first_past(
        &mut self,
        refusal: &Refusal,
        suspects: Vec<Owner>,
    ) -> Result<Option<Owner>, Failure> {
        for suspect in suspects {
            if self.is_past(refusal, std::slice::from_ref(&suspect)).await? {
                return Ok(Some(suspect));
            }
        }
        Ok(None)
    }

    /// Whether nginx takes it, or refuses something else, without some more of it.
    async fn is_past(&mut self, refusal: &Refusal, out: &[Owner]) -> Result<bool, Failure> {
        let other = self.tried_without(out).await?;
        Ok(other.is_none_or(|other| !other.is(refusal)))
    }

    /// Whether a text of the ConfigMap is refused where there is nobody but it.
    pub(super) async fn is_refused_alone(&mut self, text: &Owner) -> Result<bool, Failure> {
        let without = blame::without(self.next, self.before, &self.left_out);
        let tried = self.ask(&blame::alone(&without), &BTreeSet::new()).await?;
        Ok(tried.err().is_some_and(|refusal| match &refusal.place {
            Place::Nowhere | Place::Line { owner: None, .. } => true,
            Place::Line { owner: Some(owner), .. } => owner == text,
            Place::Values(owners) | Place::Variable(owners) => owners.contains(text),
        }))
    }

    /// Whether somebody asks for something else than what runs.
    pub(super) fn is_new(&self, owner: &Owner) -> bool {
        if !is_text(owner) {
            return self.fresh().contains(owner);
        }
        let instead = self.left_out.get(owner).map(|fault| fault.instead);
        instead != Some(Instead::Before)
            && blame::other_texts(self.next, self.before).contains(owner)
    }

    /// What a host has as a whole and is new.
    fn new_parts(&self, host: Option<&ServerName>) -> Vec<Owner> {
        let server = host.and_then(|host| self.next.servers.get(host));
        let parts = server.into_iter().flat_map(|server| blame::parts(server));
        parts.filter(|part| self.is_new(part) && !self.left_out.contains_key(part)).collect()
    }
}
