//! What is known of the things that nginx was told of: those that it has, and those that it does not take, so that
//! these are not told again at everybody's next change.

use super::known::{Pushed, Things};
use std::sync::Arc;

/// The part of a thing's size that must have become free before it is tried again for which there was no room: how much
/// it lacked nobody says.
const PART: usize = 8;
/// What somebody has of whom nobody knows how much: as much as a request may have.
const UNKNOWN: usize = 1 << 20;

/// Bytes that became free in nginx's memory, all in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made(u64);

impl Made {
    fn more(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes as u64);
    }

    /// Whether enough became free since then for another try of so many bytes.
    fn suffices(self, since: Self, bytes: usize) -> bool {
        self.0 - since.0 >= (bytes / PART).max(1) as u64
    }
}

/// What became of a thing.
#[derive(Debug)]
pub(super) enum Fate<V> {
    /// Nobody knows which it has, or whether it is there.
    Unknown,
    /// Nginx has it.
    Taken(V),
    /// Nginx does not take it, and has nothing in its place.
    Refused {
        /// What it refused.
        thing: V,
        /// What it said.
        reason: String,
        /// How much room had been made, where there was too little.
        made: Option<Made>,
    },
}

/// What nginx has of one sort, and what of it it does not take.
#[derive(Debug)]
pub(super) struct Known<V>(Things<Fate<V>>);

impl<V> Default for Known<V> {
    fn default() -> Self {
        Self(Things::new())
    }
}

impl<V: Pushed> Known<V> {
    /// What has become of this thing; none where it is to be told.
    pub(super) fn fate(&self, key: &str, wanted: &V, now: Made) -> Option<&Fate<V>> {
        let settled = |fate: &&Fate<V>| match fate {
            Fate::Unknown => false,
            Fate::Taken(thing) => thing == wanted,
            Fate::Refused { thing, made, .. } => {
                thing == wanted && made.is_none_or(|made| !now.suffices(made, thing.bytes()))
            }
        };
        self.0.get(key).filter(settled)
    }

    /// Whether nginx has it for sure.
    pub(super) fn has(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some(Fate::Taken(_)))
    }

    /// Whether nginx may have something there.
    pub(super) fn may_have(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some(Fate::Taken(_) | Fate::Unknown))
    }

    /// Whatever nginx may have, and what it does not take.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// Nginx has it.
    pub(super) fn take(&mut self, key: &Arc<str>, thing: &V, made: &mut Made) {
        let before = self.0.insert(key.clone(), Fate::Taken(thing.clone()));
        if let Some(Fate::Taken(before)) = before {
            made.more(before.bytes().saturating_sub(thing.bytes()));
        }
    }

    /// Nginx does not take it, and has none; `made`, where there is no room for it until more is made.
    pub(super) fn refuse(&mut self, key: &Arc<str>, thing: &V, reason: String, made: Option<Made>) {
        self.0.insert(key.clone(), Fate::Refused { thing: thing.clone(), reason, made });
    }

    /// Nginx has it no more.
    pub(super) fn remove(&mut self, key: &str, made: &mut Made) {
        match self.0.remove(key) {
            Some(Fate::Taken(thing)) => made.more(key.len() + thing.bytes()),
            Some(Fate::Unknown) => made.more(UNKNOWN),
            Some(Fate::Refused { .. }) | None => {}
        }
    }

    /// Of what nginx does not take this is wanted no more.
    pub(super) fn forget_refused(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.0.retain(|key, fate| !matches!(fate, Fate::Refused { .. }) || !is_gone(key));
    }

    /// What was refused may be taken now, whatever room there is.
    pub(super) fn try_refused_again(&mut self) {
        self.0.retain(|_, fate| !matches!(fate, Fate::Refused { made: None, .. }));
    }

    /// Nobody knows whether nginx has it.
    pub(super) fn doubt_of(&mut self, key: &Arc<str>) {
        self.0.insert(key.clone(), Fate::Unknown);
    }

    /// Nothing of it is known for sure any more.
    pub(super) fn doubt(&mut self) {
        self.0.values_mut().for_each(|fate| *fate = Fate::Unknown);
    }
}
