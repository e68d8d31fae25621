//! As much of a Configuration as nginx takes: whoever is to blame for the rest is found and left out.

use super::state::State;
use super::{Failure, Inner};
use crate::blame::{self, Fault, Instead, LeftOut};
use crate::conf::{self, Owner, Written};
use model::{Configuration, Origin, Server};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Tests of nginx at most until nobody is looked for any more by himself.
const EACH: usize = 40;
/// Tests of nginx at most that bring those back whom nobody blames.
const TOGETHER: usize = 24;
/// Whoever makes a test take so many times as long as it takes without him is too slow; and the part of a test's
/// patience that everybody has.
const SLOWER: u32 = 4;
/// For how many times a test's patience those are brought back whom nobody blames.
const IN_ALL: u32 = 2;
/// Why somebody is out who may be innocent.
const UNDECIDED: &str =
    "so much else is wrong that there was no time to find out whether this is right";

/// A Configuration that nginx takes, and what is not in it.
pub(super) struct Accepted {
    pub(super) configuration: Configuration,
    pub(super) written: Written,
    pub(super) left_out: LeftOut,
}

/// Why nginx does not take something, and who is to blame for it as far as it says.
struct Refusal {
    reason: String,
    blamed: BTreeSet<Owner>,
    /// Whether it is the paths of whoever is to blame.
    is_path: bool,
}

impl Inner {
    /// The Configuration, or as much of it as nginx takes.
    pub(super) async fn acceptable(
        &self,
        next: &Configuration,
        state: &State,
    ) -> Result<Accepted, Failure> {
        let (left_out, undecided) = (state.about(next), state.verdicts.undecided());
        let (before, patience) = (&state.running, self.patience);
        let (tests, runs, knows) = (EACH, None, state.knows);
        let mut search =
            Search { inner: self, next, before, knows, left_out, tests, patience, runs };
        match search.one_by_one().await {
            Ok(Some(accepted)) => Ok(accepted),
            // Each further test could take as long: whoever is likely to blame goes out at once.
            Ok(None) | Err(Failure::Slow(_)) => {
                search.together(classes(next, before, undecided).into(), String::new()).await
            }
            Err(failure) => Err(failure),
        }
    }

    /// As much of a Configuration as nginx runs with, where it took more than that in a test: whoever is new goes out,
    /// and comes back by halves.
    pub(super) async fn runnable(
        &self,
        state: &mut State,
        next: &Configuration,
        left_out: LeftOut,
        reason: String,
    ) -> Result<Accepted, Failure> {
        let before = &state.running.clone();
        let (patience, tests, knows) = (self.patience, TOGETHER, state.knows);
        let runs = Some(state);
        let mut search =
            Search { inner: self, next, before, knows, left_out, tests, patience, runs };
        search.together(newcomers(next, before), reason).await
    }
}

/// What is known while nginx is asked again and again.
struct Search<'a> {
    inner: &'a Inner,
    next: &'a Configuration,
    before: &'a Configuration,
    /// Whether it is known which texts of the ConfigMap there were before.
    knows: bool,
    left_out: LeftOut,
    /// Tests that may still be made.
    tests: usize,
    /// How long each of them may take.
    patience: Duration,
    /// Where it has to run with what it takes in a test: what it runs with.
    runs: Option<&'a mut State>,
}

impl Search<'_> {
    /// Leaves out whoever nginx blames, until it takes the rest; nothing if nobody can be found, or not in time.
    async fn one_by_one(&mut self) -> Result<Option<Accepted>, Failure> {
        let mut found = BTreeSet::new();
        while self.tests > 0 {
            let refusal = match self.try_without(self.left_out.clone()).await? {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(refusal) => refusal,
            };
            let Refusal { reason, blamed, is_path } = refusal;
            tracing::debug!(?blamed, reason, "nginx does not take it");
            let mut is_new = false;
            for owner in &blamed {
                is_new |= self.leave_out(owner, &reason, is_path);
            }
            if is_new {
                continue;
            }
            // Whoever is blamed and already out is only in the way of who is to blame.
            for innocent in blamed.difference(&found) {
                self.left_out.remove(innocent);
            }
            self.tests = self.tests.saturating_sub(1);
            let Some(culprit) = self.culprit().await? else { return Ok(None) };
            self.leave_out(&culprit, &reason, is_path);
            found.insert(culprit);
        }
        Ok(None)
    }

    fn leave_out(&mut self, owner: &Owner, reason: &str, is_path: bool) -> bool {
        let (owner, reason) = (owner.clone(), reason.to_owned());
        blame::leave_out(&mut self.left_out, owner, reason, self.before, is_path)
    }

    /// Who is to blame where nginx does not say: an Ingress or what a host has as a whole, by halves, or a key of the
    /// ConfigMap, one after the other.
    async fn culprit(&mut self) -> Result<Option<Owner>, Failure> {
        let is_suspect = |owner: &Owner| {
            let instead = self.left_out.get(owner).map(|fault| fault.instead);
            matches!(instead, None | Some(Instead::Before | Instead::Closed))
        };
        let keys: Vec<Owner> = blame::keys(self.next).into_iter().filter(is_suspect).collect();
        let mut suspects = suspects(self.next);
        suspects.retain(is_suspect);
        if !self.is_taken_without(&suspects).await? {
            for key in keys {
                let all: Vec<Owner> = suspects.iter().cloned().chain([key.clone()]).collect();
                if self.is_taken_without(&all).await? {
                    return Ok(Some(key));
                }
            }
            return Ok(None);
        }
        while suspects.len() > 1 {
            let rest = suspects.split_off(suspects.len() / 2);
            // Taken without these: one of them is to blame.
            if !self.is_taken_without(&suspects).await? {
                suspects = rest;
            }
        }
        let Some(suspect) = suspects.pop() else { return Ok(None) };
        if !self.is_taken_without(std::slice::from_ref(&suspect)).await? {
            // Either there are others, or a text of the ConfigMap is in all of them.
            for key in keys.into_iter().filter(blame::reaches_locations) {
                if self.is_taken_without(std::slice::from_ref(&key)).await? {
                    return Ok(Some(key));
                }
            }
        }
        Ok(Some(suspect))
    }

    /// Leaves out whoever may be to blame, class after class, and brings them back as far as nginx takes them: the many
    /// first that are not wrong. Whoever there is no time for stays out until the next change. `last`: what it said.
    async fn together(
        &mut self,
        classes: Vec<Vec<Owner>>,
        mut last: String,
    ) -> Result<Accepted, Failure> {
        self.tests = TOGETHER;
        let (mut out, mut groups) = (self.left_out.clone(), VecDeque::new());
        let mut best = None;
        for class in classes {
            let class: Vec<Owner> = class.into_iter().filter(|it| !out.contains_key(it)).collect();
            if class.is_empty() {
                continue;
            }
            out.extend(class.iter().map(|owner| (owner.clone(), self.out(owner))));
            groups.push_front(class);
            let asked = Instant::now();
            match self.try_in_time(out.clone()).await? {
                Ok(accepted) => {
                    best = Some(accepted);
                    self.patience =
                        (asked.elapsed() * SLOWER).clamp(self.patience / SLOWER, self.patience);
                    break;
                }
                Err(refusal) => last = refusal.reason,
            }
        }
        let Some(mut best) = best else {
            let reason =
                format!("nothing that is asked for is in it, and it is still not taken: {last}");
            return Err(Failure::Refused { reason });
        };
        // What ran into trouble may have done so by chance: only a test says the same each time.
        if self.runs.is_none()
            && let ([group], false) = (groups.make_contiguous(), last.is_empty())
            && let [owner] = &group[..]
            && let Some(fault) = best.left_out.get_mut(owner)
        {
            // It was not taken with him, and is without him.
            (fault.reason, fault.decided) = (last, true);
            return Ok(best);
        }
        let until = Instant::now() + self.inner.patience * IN_ALL;
        while let Some(mut group) = groups.pop_front() {
            if group.is_empty() || self.tests == 0 || Instant::now() > until {
                continue;
            }
            let mut fewer = best.left_out.clone();
            fewer.retain(|owner, _| !group.contains(owner));
            match self.try_in_time(fewer).await? {
                Ok(accepted) => best = accepted,
                Err(refusal) if group.len() == 1 => {
                    if let Some(fault) = best.left_out.get_mut(&group[0]) {
                        (fault.reason, fault.decided) = (refusal.reason, true);
                    }
                }
                Err(_) => {
                    let rest = group.split_off(group.len() / 2);
                    groups.extend([group, rest]);
                }
            }
        }
        Ok(best)
    }

    /// What becomes of somebody who may be to blame. Where nginx runs with what was before and has taken the paths in a
    /// test, the texts before stay, and the paths are closed as they are.
    fn out(&self, owner: &Owner) -> Fault {
        let fault = undecided(owner);
        if self.runs.is_none() {
            return fault;
        }
        let instead = match owner.key {
            None => Instead::Closed,
            Some(_) if blame::keys(self.before).contains(owner) => Instead::Before,
            Some(_) => Instead::Nothing,
        };
        Fault { instead, ..fault }
    }

    async fn is_taken_without(&mut self, suspects: &[Owner]) -> Result<bool, Failure> {
        let mut left_out = self.left_out.clone();
        left_out.extend(suspects.iter().map(|owner| (owner.clone(), undecided(owner))));
        Ok(self.try_without(left_out).await?.is_ok())
    }

    /// What nginx says without some of it; not to have said anything in time is a refusal, too.
    async fn try_in_time(
        &mut self,
        left_out: LeftOut,
    ) -> Result<Result<Accepted, Refusal>, Failure> {
        match self.try_without(left_out).await {
            Err(slow @ Failure::Slow(_)) => {
                let (reason, blamed) = (slow.to_string(), BTreeSet::new());
                Ok(Err(Refusal { reason, blamed, is_path: false }))
            }
            tried => tried,
        }
    }

    /// What nginx says without some of it.
    async fn try_without(
        &mut self,
        mut left_out: LeftOut,
    ) -> Result<Result<Accepted, Refusal>, Failure> {
        if !self.knows {
            blame::mark(self.next, &mut left_out);
        }
        let configuration = blame::without(self.next, self.before, &left_out);
        let configuration = blame::closed(configuration, &left_out);
        let covered = blame::covered(&left_out);
        let written = match conf::write_closing(&configuration, &self.inner.environment, &covered) {
            Ok(written) => written,
            Err(unwritable) => {
                let reason = unwritable.to_string();
                return Ok(Err(Refusal { reason, blamed: unwritable.owners, is_path: false }));
            }
        };
        self.tests = self.tests.saturating_sub(1);
        Ok(match self.inner.test(&written, self.patience).await? {
            Ok(()) => {
                if let Some(state) = &mut self.runs {
                    match self.inner.try_out(state, &configuration, &written).await {
                        Err(Failure::Unread { reason }) => {
                            let blamed = BTreeSet::new();
                            return Ok(Err(Refusal { reason, blamed, is_path: false }));
                        }
                        read => read?,
                    }
                }
                Ok(Accepted { configuration, written, left_out })
            }
            Err(fault) => {
                let blamed = fault.owner(&written.text).cloned().into_iter().collect();
                let is_path = fault.line.is_some_and(|line| written.text.begins_at(line));
                Err(Refusal { reason: fault.message, blamed, is_path })
            }
        })
    }
}

/// Whoever is new or another one than in what runs, the likeliest first: who speaks in nginx's own words; texts of the
/// ConfigMap; everybody; its settings.
fn newcomers(next: &Configuration, before: &Configuration) -> Vec<Vec<Owner>> {
    let changed = changed(next, before);
    let locations = next.servers.values().flat_map(|server| server.locations.iter());
    let speaking = locations.filter(|location| location.policy.raw.is_some());
    let of_paths = speaking.filter_map(|location| location.origin.as_deref());
    let of_hosts = next.servers.values().filter_map(|server| Some(&*server.raw.as_ref()?.origin));
    let speaking: BTreeSet<&Origin> = of_paths.chain(of_hosts).collect();
    let new = suspects(next).into_iter().filter(|owner| changed.contains(&owner.origin));
    let (speaking, others) = new.partition(|owner| speaking.contains(&owner.origin));
    let is_other = next.global.raw != before.global.raw;
    let keys = if is_other { blame::keys(next) } else { Vec::new() };
    let settings = (next.global != before.global).then(|| blame::settings(next));
    vec![speaking, keys, others, settings.into_iter().collect()]
}

/// Whoever is out without anybody knowing whether he is to blame.
fn undecided(owner: &Owner) -> Fault {
    let of_ingress = owner.key.is_none();
    let instead = if of_ingress { Instead::Covered } else { Instead::Nothing };
    Fault { reason: UNDECIDED.to_owned(), instead, decided: false }
}

/// Every Ingress, and what hosts have as a whole.
fn suspects(next: &Configuration) -> Vec<Owner> {
    let mut suspects: Vec<Owner> = blame::ingresses(next).iter().map(Owner::from).collect();
    suspects.extend(blame::hosts(next));
    suspects
}

/// Who may be to blame, the likeliest first: whom there was no time for before; who is new or another one than in what
/// runs; everybody; the raw configuration of the ConfigMap; its settings.
fn classes(
    next: &Configuration,
    before: &Configuration,
    undecided: &BTreeSet<Owner>,
) -> [Vec<Owner>; 5] {
    let changed = changed(next, before);
    let (left, rest): (Vec<_>, Vec<_>) =
        suspects(next).into_iter().partition(|owner| undecided.contains(owner));
    let (new, old) = rest.into_iter().partition(|owner| changed.contains(&owner.origin));
    [left, new, old, blame::keys(next), vec![blame::settings(next)]]
}

/// Who has a location on a host that is new or another one than in what runs.
fn changed<'a>(next: &'a Configuration, before: &Configuration) -> BTreeSet<&'a Origin> {
    let mut changed: BTreeSet<&Origin> = BTreeSet::new();
    for (name, server) in &next.servers {
        let running = before.servers.get(name);
        let is_same = |one: &Server| {
            let without = |one: &Server| Server { certificate: None, ..one.clone() };
            without(one) == without(server)
        };
        if !running.is_some_and(|running| is_same(running)) {
            changed.extend(blame::origins(server));
        }
    }
    changed
}
