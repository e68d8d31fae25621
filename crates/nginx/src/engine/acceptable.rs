//! As much of a Configuration as nginx takes: whoever is to blame for the rest is found and left out.

use super::{Failure, Inner};
use crate::blame::{self, Fault, LeftOut};
use crate::conf::{self, Owner, Written};
use model::Configuration;
use std::collections::BTreeSet;

/// Tests of nginx at most until a Configuration is given up.
const TESTS: usize = 64;

impl Inner {
    /// The Configuration, or as much of it as nginx takes. `before`: what runs.
    pub(super) async fn acceptable(
        &self,
        next: &Configuration,
        before: &Configuration,
    ) -> Result<(Configuration, Written, LeftOut), Failure> {
        let (mut left_out, mut found) = (LeftOut::new(), BTreeSet::new());
        for _ in 0..TESTS {
            let candidate = blame::without(next, before, &left_out);
            let (reason, blamed) = match conf::write(&candidate, &self.place) {
                Err(unwritable) => (unwritable.to_string(), unwritable.owner),
                Ok(written) => match self.test(&written).await? {
                    Ok(()) => return Ok((candidate, written, left_out)),
                    Err(fault) => {
                        let blamed = fault.owner(&written.text).cloned();
                        (fault.message, blamed)
                    }
                },
            };
            tracing::debug!(?blamed, reason, "nginx does not take it");
            if let Some(owner) = &blamed
                && blame::leave_out(&mut left_out, owner.clone(), reason.clone(), before)
            {
                continue;
            }
            // Whoever is blamed and already out is only in the way of who is to blame.
            if let Some(innocent) = blamed.filter(|owner| !found.contains(owner)) {
                left_out.remove(&innocent);
            }
            let Some(culprit) = self.search(next, before, &left_out).await? else {
                return Err(Failure::Refused { reason, culprit: None });
            };
            found.insert(culprit.clone());
            blame::leave_out(&mut left_out, culprit, reason, before);
        }
        let reason = format!("{TESTS} objects were left out and it is still not taken");
        Err(Failure::Refused { reason, culprit: None })
    }

    /// Who is to blame where nginx does not say: an Ingress, by halves, or a key of the ConfigMap, one after the other.
    async fn search(
        &self,
        next: &Configuration,
        before: &Configuration,
        left_out: &LeftOut,
    ) -> Result<Option<Owner>, Failure> {
        let is_suspect = |owner: &Owner| left_out.get(owner).is_none_or(|fault| fault.keeps);
        let keys: Vec<Owner> = blame::keys(next).into_iter().filter(is_suspect).collect();
        let mut suspects: Vec<Owner> = blame::ingresses(next).iter().map(Owner::from).collect();
        suspects.retain(is_suspect);
        if !self.is_taken_without(next, before, left_out, &suspects).await? {
            for key in keys {
                let all: Vec<Owner> = suspects.iter().cloned().chain([key.clone()]).collect();
                if self.is_taken_without(next, before, left_out, &all).await? {
                    return Ok(Some(key));
                }
            }
            return Ok(None);
        }
        while suspects.len() > 1 {
            let rest = suspects.split_off(suspects.len() / 2);
            // Taken without these: one of them is to blame.
            if !self.is_taken_without(next, before, left_out, &suspects).await? {
                suspects = rest;
            }
        }
        let Some(suspect) = suspects.pop() else { return Ok(None) };
        if !self.is_taken_without(next, before, left_out, std::slice::from_ref(&suspect)).await? {
            // Either there are others, or a text of the ConfigMap is in all of them.
            for key in keys.into_iter().filter(blame::reaches_locations) {
                let alone = std::slice::from_ref(&key);
                if self.is_taken_without(next, before, left_out, alone).await? {
                    return Ok(Some(key));
                }
            }
        }
        Ok(Some(suspect))
    }

    async fn is_taken_without(
        &self,
        next: &Configuration,
        before: &Configuration,
        left_out: &LeftOut,
        suspects: &[Owner],
    ) -> Result<bool, Failure> {
        let nothing = Fault { reason: String::new(), keeps: false };
        let more = suspects.iter().map(|owner| (owner.clone(), nothing.clone()));
        let all: LeftOut = left_out.clone().into_iter().chain(more).collect();
        match conf::write(&blame::without(next, before, &all), &self.place) {
            Ok(written) => Ok(self.test(&written).await?.is_ok()),
            Err(_) => Ok(false),
        }
    }
}
