//! As much of a Configuration as nginx takes: whoever is to blame for the rest is found and left out.

use super::judge::Refusal;
use super::state::State;
use super::{Failure, Inner};
use crate::blame::{self, Fault, Instead, LeftOut};
use crate::conf::{self, Owner, Written};
use model::{Configuration, Origin};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
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

impl Inner {
    /// The Configuration, or as much of it as nginx takes.
    pub(super) async fn acceptable(
        &self,
        next: &Configuration,
        state: &State,
    ) -> Result<Accepted, Failure> {
        let (left_out, undecided) = (state.about(next), state.verdicts.undecided());
        let (before, patience) = (&state.running, self.patience);
        let (tests, runs, knows, fresh) = (EACH, None, state.knows, OnceLock::new());
        let mut search =
            Search { inner: self, next, before, fresh, knows, left_out, tests, patience, runs };
        match search.one_by_one().await {
            Ok(Some(accepted)) => Ok(accepted),
            // Each further test could take as long: whoever is likely to blame goes out at once.
            Ok(None) | Err(Failure::Slow(_)) => {
                let classes = search.classes(undecided);
                search.together(classes, String::new()).await
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
        let (runs, fresh) = (Some(state), OnceLock::new());
        let mut search =
            Search { inner: self, next, before, fresh, knows, left_out, tests, patience, runs };
        let newcomers = search.newcomers();
        search.together(newcomers, reason).await
    }
}

/// What is known while nginx is asked again and again.
pub(super) struct Search<'a> {
    inner: &'a Inner,
    pub(super) next: &'a Configuration,
    pub(super) before: &'a Configuration,
    /// Who asks for something else than before, once somebody wants to know.
    fresh: OnceLock<BTreeSet<Owner>>,
    /// Whether it is known which texts of the ConfigMap there were before.
    knows: bool,
    pub(super) left_out: LeftOut,
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
            let blamed = self.whom_to_blame(&refusal).await?;
            let Refusal { reason, is_path, .. } = refusal;
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

    /// Who is to blame where nginx does not say: who is new; a key of the ConfigMap that is; or anybody.
    async fn culprit(&mut self) -> Result<Option<Owner>, Failure> {
        let mut all = suspects(self.next);
        all.retain(|owner| !self.is_out(owner));
        let new: Vec<Owner> = all.iter().filter(|owner| self.is_new(owner)).cloned().collect();
        let mut keys = blame::other_texts(self.next, self.before);
        keys.retain(|key| !self.left_out.contains_key(key));
        if let Some(found) = self.one_of(new.clone(), &keys).await? {
            return Ok(Some(found));
        }
        if new.len() < all.len()
            && let Some(found) = self.one_of(all.clone(), &keys).await?
        {
            return Ok(Some(found));
        }
        let mut rest = blame::keys(self.next);
        rest.retain(|key| !self.is_out(key) && !keys.contains(key));
        for key in keys.into_iter().chain(rest) {
            let without: Vec<Owner> = all.iter().cloned().chain([key.clone()]).collect();
            if self.is_taken_without(&without).await? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Whether no more of somebody can be left out.
    fn is_out(&self, owner: &Owner) -> bool {
        let instead = self.left_out.get(owner).map(|fault| fault.instead);
        !matches!(instead, None | Some(Instead::Before | Instead::Closed))
    }

    /// One of some suspects, if one of them is to blame.
    async fn one_of(
        &mut self,
        mut suspects: Vec<Owner>,
        keys: &[Owner],
    ) -> Result<Option<Owner>, Failure> {
        if suspects.is_empty() || !self.is_taken_without(&suspects).await? {
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
            for key in keys.iter().filter(|key| blame::reaches_locations(key)) {
                if self.is_taken_without(std::slice::from_ref(key)).await?
                    && self.is_refused_alone(key).await?
                {
                    return Ok(Some(key.clone()));
                }
            }
        }
        Ok(Some(suspect))
    }

    /// Leaves out whoever may be to blame, class after class, and brings them back as far as nginx takes them: the many
    /// first that are not wrong. Whoever there is no time for stays out until the next search. `last`: what it said.
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
        while let Some(group) = groups.pop_front() {
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
                Err(_) => groups.extend(halves(group)),
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
        let stays = !self.runs_with_nothing() && blame::keys(self.before).contains(owner);
        let instead = match owner.key {
            None => Instead::Closed,
            Some(_) if stays => Instead::Before,
            Some(_) => Instead::Nothing,
        };
        Fault { instead, ..fault }
    }

    async fn is_taken_without(&mut self, suspects: &[Owner]) -> Result<bool, Failure> {
        Ok(self.tried_without(suspects).await?.is_none())
    }

    /// What nginx refuses without some more of it. Nothing is closed for it: that would hide what else is wrong.
    pub(super) async fn tried_without(
        &mut self,
        suspects: &[Owner],
    ) -> Result<Option<Refusal>, Failure> {
        let had = blame::keys(self.before);
        let out = suspects.iter().map(|owner| {
            let mut fault = undecided(owner);
            if self.is_new(owner) && (had.contains(owner) || blame::is_settings(owner)) {
                fault.instead = Instead::Before;
            }
            (owner.clone(), fault)
        });
        let mut left_out = self.left_out.clone();
        left_out.extend(out.collect::<LeftOut>());
        let configuration = blame::without(self.next, self.before, &left_out);
        Ok(self.ask(&configuration, &blame::covered(&left_out)).await?.err())
    }

    /// What nginx says without some of it; not to have said anything in time is a refusal, too.
    async fn try_in_time(
        &mut self,
        left_out: LeftOut,
    ) -> Result<Result<Accepted, Refusal>, Failure> {
        match self.try_without(left_out).await {
            Err(slow @ Failure::Slow(_)) => Ok(Err(Refusal::nowhere(slow.to_string()))),
            tried => tried,
        }
    }

    /// What nginx says without some of it.
    async fn try_without(
        &mut self,
        mut left_out: LeftOut,
    ) -> Result<Result<Accepted, Refusal>, Failure> {
        blame::mark(self.next, self.before, self.knows, &mut left_out);
        let configuration = blame::without(self.next, self.before, &left_out);
        let configuration = blame::closed(configuration, &left_out);
        let written = match self.ask(&configuration, &blame::covered(&left_out)).await? {
            Ok(written) => written,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(state) = &mut self.runs {
            match self.inner.try_out(state, &configuration, &written).await {
                Err(Failure::Unread { reason }) => return Ok(Err(Refusal::nowhere(reason))),
                read => read?,
            }
        }
        Ok(Ok(Accepted { configuration, written, left_out }))
    }

    /// What nginx says of a Configuration in which the paths of some are `covered`.
    pub(super) async fn ask(
        &mut self,
        configuration: &Configuration,
        covered: &BTreeSet<Origin>,
    ) -> Result<Result<Written, Refusal>, Failure> {
        let written = match conf::write_closing(configuration, &self.inner.environment, covered) {
            Ok(written) => written,
            Err(unwritable) => return Ok(Err(Refusal::unwritable(unwritable))),
        };
        self.tests = self.tests.saturating_sub(1);
        let tested = self.inner.test(&written, self.patience).await?;
        Ok(match tested {
            Ok(()) => Ok(written),
            Err(fault) => Err(Refusal::of(fault, &written.text)),
        })
    }

    /// Who asks for something else than before.
    pub(super) fn fresh(&self) -> &BTreeSet<Owner> {
        self.fresh.get_or_init(|| blame::fresh(self.next, self.before))
    }

    /// Whoever is new or another one than in what runs, the likeliest first: who speaks in nginx's own words; texts of
    /// the ConfigMap; everybody; its settings.
    fn newcomers(&self) -> Vec<Vec<Owner>> {
        let (next, before) = (self.next, self.before);
        let locations = next.servers.values().flat_map(|server| server.locations.iter());
        let speaking = locations.filter(|location| location.policy.raw.is_some());
        let of_paths = speaking.filter_map(|location| location.origin.as_deref());
        let of_hosts =
            next.servers.values().filter_map(|server| Some(&*server.raw.as_ref()?.origin));
        let speaking: BTreeSet<&Origin> = of_paths.chain(of_hosts).collect();
        let all = self.runs_with_nothing();
        let new = suspects(next).into_iter().filter(|owner| all || self.is_new(owner));
        let (speaking, others) = new.partition(|owner| speaking.contains(&owner.origin));
        let is_other = all || next.global.raw != before.global.raw;
        let keys = if is_other { blame::keys(next) } else { Vec::new() };
        let settings = (all || next.global != before.global).then(|| blame::settings(next));
        vec![speaking, keys, others, settings.into_iter().collect()]
    }

    /// Whether it has to run, and nothing is known that it does run with.
    fn runs_with_nothing(&self) -> bool {
        self.runs.as_ref().is_some_and(|state| !state.has_run())
    }

    /// Who may be to blame, the likeliest first: whom there was no time for before, and who is new or another one than
    /// in what runs, each first in the namespaces of which somebody was found; everybody; the raw configuration of the
    /// ConfigMap; its settings.
    fn classes(&self, undecided: &BTreeSet<Owner>) -> Vec<Vec<Owner>> {
        let found = self.left_out.keys().map(|owner| &*owner.origin.namespace);
        let found: BTreeSet<&str> = found.collect();
        let mut classes = vec![Vec::new(); 5];
        for owner in suspects(self.next) {
            let is_beside = found.contains(&*owner.origin.namespace);
            let class = match (undecided.contains(&owner), self.is_new(&owner)) {
                (true, _) if is_beside => 0,
                (false, true) if is_beside => 1,
                (true, _) => 2,
                (false, true) => 3,
                (false, false) => 4,
            };
            classes[class].push(owner);
        }
        classes.extend([blame::keys(self.next), vec![blame::settings(self.next)]]);
        classes
    }
}

/// Two halves of some that are not taken together: by namespaces as long as there are several, those with the fewest
/// first. Or one that has many that are wrong would keep all others out.
fn halves(mut group: Vec<Owner>) -> [Vec<Owner>; 2] {
    let mut namespaces: BTreeMap<&str, usize> = BTreeMap::new();
    for owner in &group {
        *namespaces.entry(&owner.origin.namespace).or_default() += 1;
    }
    if namespaces.len() < 2 {
        let rest = group.split_off(group.len() / 2);
        return [group, rest];
    }
    let mut order: Vec<(usize, &str)> =
        namespaces.iter().map(|(name, count)| (*count, *name)).collect();
    order.sort_unstable();
    let few: BTreeSet<Arc<str>> =
        order[..order.len() / 2].iter().map(|(_, namespace)| Arc::from(*namespace)).collect();
    let (few, many) = group.into_iter().partition(|owner| few.contains(&owner.origin.namespace));
    [few, many]
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
