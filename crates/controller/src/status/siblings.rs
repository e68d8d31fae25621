//! What the other replicas serve: the leader tells an object what becomes of it once every ready replica shows that it
//! serves the same, and no object waits for that for ever.

use super::later::Naming;
use super::shown::{SHOWN, question, read};
use super::which::Id;
use crate::clock::Moment;
use crate::pod::{OwnPod, Sibling};
use kube::Client;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long an object waits for replicas that do not show the same. They hear of a change within milliseconds of each
/// other, and need a second or two for it where there are very many objects. Whoever is this late may be so for ever.
const BOUND: Duration = Duration::from_secs(5);
/// How long a replica may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it counts who they are.
const LISTED: Duration = Duration::from_secs(2);
/// Between two rounds of questions, and how many a second are asked of all replicas together.
const PAUSE: Duration = Duration::from_millis(100);
const RATE: u32 = 500;
/// Objects that one question is about: it fits into the head of a request.
const AT_ONCE: usize = 500;
/// So much of an answer is read.
const MOST: u64 = 16 << 10;

/// What each replica said, by the name of its Pod: what it shows of a question, or why it does not answer.
type Said = BTreeMap<String, Result<HashSet<u64>, String>>;

/// A round of questions, and what came of it.
#[derive(Debug)]
struct Round {
    asked: Vec<(Id, u64)>,
    /// When the API server said who the replicas are.
    listed: Option<(Moment, Arc<[Sibling]>)>,
    /// Or why it did not.
    said: Result<Said, String>,
}

/// Asks the other replicas.
#[derive(Clone)]
struct Asker {
    client: Client,
    pod: OwnPod,
    port: u16,
}

/// The other replicas, and what waits for them.
pub(super) struct Siblings {
    asker: Asker,
    waiting: Waiting,
    listed: Option<(Moment, Arc<[Sibling]>)>,
    rounds: JoinSet<Round>,
    /// No round before.
    next: Moment,
}

impl Siblings {
    /// Those of this Pod, which answer at this port.
    pub(super) fn new(client: Client, pod: OwnPod, port: u16) -> Self {
        Self {
            asker: Asker { client, pod, port },
            waiting: Waiting::default(),
            listed: None,
            rounds: JoinSet::new(),
            next: Moment::now(),
        }
    }

    /// Whether an object may be told what has this number; otherwise it waits until `heard` names it.
    pub(super) fn may_tell(&mut self, id: &Id, number: u64, now: Moment) -> bool {
        self.waiting.may_tell(id, number, now)
    }

    /// An object is being told, or is gone.
    pub(super) fn forget(&mut self, id: &Id) {
        self.waiting.forget(id);
    }

    /// Nothing waits any more.
    pub(super) fn clear(&mut self) {
        self.waiting = Waiting::default();
    }

    /// Asks as long as something waits; the objects that need not wait any longer. May be given up and called again.
    pub(super) async fn heard(&mut self) -> Vec<Id> {
        if self.rounds.is_empty() {
            if self.waiting.all.is_empty() {
                return std::future::pending().await;
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "they are asked so often and no oftener"
            )]
            tokio::time::sleep(Moment::now().until(self.next)).await;
            let now = Moment::now();
            let listed = self.listed.clone().filter(|(at, _)| at.until(now) < LISTED);
            self.rounds.spawn(self.asker.clone().round(self.waiting.question(now), listed));
        }
        let Some(Ok(round)) = self.rounds.join_next().await else { return Vec::new() };
        let now = Moment::now();
        self.listed = round.listed;
        let replicas = round.said.as_ref().map_or(0, BTreeMap::len);
        let replicas = u32::try_from(replicas).unwrap_or(u32::MAX);
        self.next = now + PAUSE.max(Duration::from_secs(1).saturating_mul(replicas) / RATE);
        self.waiting.heard(&round.asked, round.said, now)
    }
}

impl Asker {
    async fn round(self, asked: Vec<(Id, u64)>, listed: Option<(Moment, Arc<[Sibling]>)>) -> Round {
        let listed = match listed {
            Some(listed) => listed,
            None => match self.others().await {
                Ok(others) => (Moment::now(), others),
                Err(reason) => return Round { asked, listed: None, said: Err(reason) },
            },
        };
        let path = format!("{SHOWN}?{}", question(asked.iter().map(|(_, number)| *number)));
        let path: Arc<str> = path.into();
        let mut asking = JoinSet::new();
        for other in listed.1.iter().cloned() {
            let (path, port) = (path.clone(), self.port);
            asking.spawn(async move {
                let page = other.page((port, &path), MOST, PATIENCE).await;
                (other.name, page.map(|page| read(page.lines()).collect()))
            });
        }
        let said = asking.join_all().await.into_iter().collect();
        Round { asked, listed: Some(listed), said: Ok(said) }
    }

    /// The other replicas that are ready.
    async fn others(&self) -> Result<Arc<[Sibling]>, String> {
        let all = tokio::time::timeout(BOUND, self.pod.siblings(&self.client)).await;
        let all = all.map_err(|_| format!("no answer within {} s", BOUND.as_secs()))??;
        let is_other = |one: &Sibling| one.ready && one.name != self.pod.name;
        Ok(all.into_iter().filter(is_other).collect())
    }
}

/// What waits for other replicas; no network.
#[derive(Debug, Default)]
struct Waiting {
    all: BTreeMap<Id, Wait>,
    /// What was asked last.
    last: Option<Id>,
    /// What need not wait any longer: the number that all have shown, or whatever there is to tell.
    free: BTreeMap<Id, Option<u64>>,
    /// Until then there is nobody to wait for.
    alone: Option<Moment>,
    /// Those that did not answer until an object's time was over: they are not waited for until they do.
    given_up: BTreeSet<String>,
    naming: Naming,
}

#[derive(Debug, Default)]
struct Wait {
    number: u64,
    /// Since it was asked first, however often the number changes meanwhile.
    until: Option<Moment>,
}

impl Waiting {
    fn may_tell(&mut self, id: &Id, number: u64, now: Moment) -> bool {
        let is_alone = self.alone.is_some_and(|until| now < until);
        let free = self.free.get(id);
        if is_alone || free.is_some_and(|shown| shown.is_none_or(|shown| shown == number)) {
            return true;
        }
        self.free.remove(id);
        self.all.entry(id.clone()).or_default().number = number;
        false
    }

    fn forget(&mut self, id: &Id) {
        self.all.remove(id);
        self.free.remove(id);
    }

    /// What the next question is about: those that follow what was asked last. From its first one an object has so
    /// much time and no more.
    fn question(&mut self, now: Moment) -> Vec<(Id, u64)> {
        let last = self.last.take();
        let from = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let following = self.all.range((from, Bound::Unbounded)).take(AT_ONCE);
        let mut ids: Vec<Id> = following.map(|(id, _)| id.clone()).collect();
        let rest = self.all.len().min(AT_ONCE) - ids.len();
        ids.extend(self.all.keys().take(rest).cloned());
        self.last = ids.last().cloned();
        let asked = ids.into_iter().filter_map(|id| {
            let wait = self.all.get_mut(&id)?;
            wait.until.get_or_insert(now + BOUND);
            Some((id, wait.number))
        });
        asked.collect()
    }

    /// Takes what was said; the objects that need not wait any longer.
    fn heard(&mut self, asked: &[(Id, u64)], said: Result<Said, String>, now: Moment) -> Vec<Id> {
        let said = said.unwrap_or_else(|reason| {
            if self.naming.is_due(now) {
                tracing::warn!(
                    reason,
                    "it is not known who the other replicas are: statuses do not wait until they serve the same"
                );
            }
            Said::new()
        });
        if said.is_empty() {
            self.alone = Some(now + LISTED);
        }
        self.given_up.retain(|name| matches!(said.get(name), Some(Err(_))));
        let shown = asked.iter().filter(|(id, number)| {
            let is_same = self.all.get(id).is_some_and(|wait| wait.number == *number);
            is_same && self.behind(&said, *number).next().is_none()
        });
        let shown: Vec<_> = shown.map(|(id, number)| (id.clone(), Some(*number))).collect();
        for (id, _) in &shown {
            self.all.remove(id);
        }
        let is_over = |wait: &Wait| said.is_empty() || wait.until.is_some_and(|until| until <= now);
        let over = self.all.extract_if(.., |_, wait| is_over(wait));
        let over: Vec<_> = over.map(|(id, _)| (id, None)).collect();
        if !(over.is_empty() || said.is_empty()) {
            self.tell_late(asked, &said, over.len(), now);
        }
        let freed: Vec<_> = shown.into_iter().chain(over).collect();
        self.free.extend(freed.iter().cloned());
        freed.into_iter().map(|(id, _)| id).collect()
    }

    /// The replicas that do not show this number, though they are waited for.
    fn behind<'s>(&self, said: &'s Said, number: u64) -> impl Iterator<Item = &'s str> {
        said.iter()
            .filter(move |(name, said)| match said {
                Ok(shown) => !shown.contains(&number),
                Err(_) => !self.given_up.contains(*name),
            })
            .map(|(name, _)| &**name)
    }

    /// Says for whom statuses waited in vain; those that did not even answer are not waited for from now on.
    fn tell_late(&mut self, asked: &[(Id, u64)], said: &Said, statuses: usize, now: Moment) {
        let behind: BTreeSet<&str> =
            asked.iter().flat_map(|(_, number)| self.behind(said, *number)).collect();
        let mut is_news = self.naming.is_due(now);
        let mut named = Vec::new();
        for name in behind {
            match &said[name] {
                Ok(_) => named.push(name.to_owned()),
                Err(reason) => {
                    is_news |= self.given_up.insert(name.to_owned());
                    named.push(format!("{name} ({reason})"));
                }
            }
        }
        // Where each of them is as far by now, what is told has changed too fast.
        if is_news && !named.is_empty() {
            tracing::warn!(
                statuses,
                replicas = named.join(", "),
                "not every replica showed within {} s that it serves what these statuses say: they are written all the \
                 same, and nobody waits for whoever does not answer until it does",
                BOUND.as_secs()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, Asker, BOUND, Id, LISTED, SHOWN, Said, Waiting};
    use crate::Known;
    use crate::clock::Moment;
    use crate::pod::{OwnPod, Sibling};
    use crate::status::Shown;
    use crate::status::shown::number as number_of;
    use crate::status::which::Which;
    use objects::ObjectKey;
    use runtime::admin::{Admin, Page};
    use std::collections::BTreeSet;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;
    use translate::gateway::SetStatus;

    const SECOND: Duration = Duration::from_secs(1);

    fn id(name: &str) -> Id {
        (Which::Gateway, ObjectKey::new("demo", name))
    }

    /// What replicas say: the numbers that they show, or nothing.
    fn said(all: &[(&str, Option<&[u64]>)]) -> Result<Said, String> {
        let one = |(name, shown): &(&str, Option<&[u64]>)| {
            let shown = shown.map(|shown| shown.iter().copied().collect());
            ((*name).to_owned(), shown.ok_or_else(|| "no answer".to_owned()))
        };
        Ok(all.iter().map(one).collect())
    }

    /// Asks, is told this, and says which objects are free then.
    fn round(waiting: &mut Waiting, all: &[(&str, Option<&[u64]>)], now: Moment) -> Vec<String> {
        let asked = waiting.question(now);
        let freed = waiting.heard(&asked, said(all), now);
        freed.into_iter().map(|(_, key)| key.name.to_string()).collect()
    }

    #[test]
    fn an_object_waits_for_the_replica_that_lags_and_the_others_do_not() {
        let (mut waiting, now) = (Waiting::default(), Moment::now());
        assert!(!waiting.may_tell(&id("a"), 1, now) && !waiting.may_tell(&id("b"), 2, now));
        assert_eq!(round(&mut waiting, &[("x", Some(&[1, 2])), ("y", Some(&[2]))], now), ["b"]);
        assert!(!waiting.may_tell(&id("a"), 1, now) && waiting.may_tell(&id("b"), 2, now));
        waiting.forget(&id("b"));
        assert!(!waiting.may_tell(&id("b"), 2, now), "each change is asked after anew");
        let both: &[u64] = &[1, 2];
        assert_eq!(round(&mut waiting, &[("x", Some(both)), ("y", Some(both))], now), ["a", "b"]);
        assert!(waiting.may_tell(&id("a"), 1, now));
    }

    #[test]
    fn what_was_shown_counts_for_that_and_for_nothing_newer() {
        let (mut waiting, now) = (Waiting::default(), Moment::now());
        waiting.may_tell(&id("a"), 1, now);
        let asked = waiting.question(now);
        waiting.may_tell(&id("a"), 2, now);
        assert!(waiting.heard(&asked, said(&[("x", Some(&[1]))]), now).is_empty());
        assert_eq!(round(&mut waiting, &[("x", Some(&[2]))], now), ["a"]);
        assert!(!waiting.may_tell(&id("a"), 3, now), "it changed before it could be told");
        assert!(round(&mut waiting, &[("x", Some(&[2]))], now).is_empty());
    }

    #[test]
    fn nothing_waits_for_longer_than_its_time_however_often_it_changes() {
        let (mut waiting, start) = (Waiting::default(), Moment::now());
        for number in 0..5 {
            let now = start + SECOND * u32::try_from(number).expect("a few");
            assert!(!waiting.may_tell(&id("a"), number, now));
            assert!(round(&mut waiting, &[("x", Some(&[]))], now).is_empty());
        }
        assert_eq!(round(&mut waiting, &[("x", Some(&[]))], start + BOUND), ["a"]);
        assert!(waiting.may_tell(&id("a"), 7, start + BOUND), "whatever there is to tell");
        waiting.forget(&id("a"));
        assert!(!waiting.may_tell(&id("a"), 8, start + BOUND));
        assert!(round(&mut waiting, &[("x", Some(&[]))], start + BOUND).is_empty(), "it answers");
    }

    #[test]
    fn who_does_not_answer_is_waited_for_once_and_again_when_it_does() {
        let (mut waiting, start) = (Waiting::default(), Moment::now());
        let over = start + BOUND;
        let silent: &[(&str, Option<&[u64]>)] = &[("x", Some(&[1, 2])), ("y", None)];
        waiting.may_tell(&id("a"), 1, start);
        assert!(round(&mut waiting, silent, start).is_empty());
        assert_eq!(round(&mut waiting, silent, over), ["a"]);
        waiting.may_tell(&id("b"), 2, over);
        assert_eq!(round(&mut waiting, silent, over), ["b"], "x shows it");
        waiting.may_tell(&id("c"), 3, over);
        assert!(round(&mut waiting, silent, over).is_empty(), "x does not");
        assert!(round(&mut waiting, &[("x", Some(&[3])), ("y", Some(&[]))], over).is_empty());
        assert!(round(&mut waiting, &[("x", Some(&[3])), ("y", None)], over).is_empty());
    }

    #[test]
    fn where_nobody_else_is_and_where_nobody_knows_nothing_waits() {
        for nobody in [said(&[]), Err("403 Forbidden".to_owned())] {
            let (mut waiting, now) = (Waiting::default(), Moment::now());
            assert!(!waiting.may_tell(&id("a"), 1, now));
            let asked = waiting.question(now);
            assert_eq!(waiting.heard(&asked, nobody, now), [id("a")]);
            assert!(waiting.may_tell(&id("b"), 2, now));
            assert!(!waiting.may_tell(&id("b"), 2, now + LISTED), "somebody may have come");
        }
    }

    #[test]
    fn of_very_many_objects_each_is_asked_after_and_has_its_time_from_then_on() {
        let (mut waiting, start) = (Waiting::default(), Moment::now());
        let all = u64::try_from(AT_ONCE).expect("a few") * 2 + 1;
        (0..all).for_each(|number| {
            waiting.may_tell(&id(&format!("g{number:04}")), number, start);
        });
        let mut asked = BTreeSet::new();
        for _ in 0..3 {
            let question = waiting.question(start);
            assert_eq!(question.len(), AT_ONCE);
            asked.extend(question);
        }
        assert_eq!(asked.len(), waiting.all.len());
        waiting.may_tell(&id("z"), all, start);
        assert_eq!(waiting.question(start + BOUND).len(), AT_ONCE);
        let late = waiting.heard(&[], said(&[("x", None)]), start + BOUND);
        assert!(late.len() == asked.len() && !late.contains(&id("z")), "{}", late.len());
    }

    fn asker(server: SocketAddr, port: u16) -> Asker {
        let uri = format!("http://{server}").parse().expect("a URL");
        let client = kube::Client::try_from(kube::Config::new(uri)).expect("a client");
        Asker { client, pod: OwnPod::default(), port }
    }

    #[tokio::test]
    async fn the_longest_question_is_answered_by_the_admin_server_of_another_replica() {
        let mut known = Known::default();
        let mut asked = Vec::new();
        for number in 0..AT_ONCE {
            let id = id(&format!("g{number}"));
            let status = Arc::new(SetStatus {
                generation: 1,
                gateway: id.1.clone(),
                conditions: Vec::new(),
                listeners: Vec::new(),
            });
            asked.push((
                (Which::Set, id.1.clone()),
                number_of(&(Which::Set, id.1.clone()), &status),
            ));
            known.statuses.sets.insert(id.1, status);
        }
        let shown = Shown::default();
        let page = move |question: &str| {
            let answer = shown.answer(&known, question);
            std::future::ready(Page::of_type("text/plain", answer))
        };
        let bound = Admin::default().asked(SHOWN, page);
        let bound = bound.bind(([127, 0, 0, 1], 0).into(), "--healthz-port").expect("a free port");
        let server = bound.address();
        tokio::spawn(bound.serve());
        // Nobody listens at the address of the second one.
        let replica = |number: u8| Sibling {
            name: number.to_string(),
            node: None,
            address: Some([127, 0, 0, number].into()),
            ready: true,
            since: None,
        };
        let listed = (Moment::now(), Arc::from([replica(1), replica(2)]));
        let asker = asker(server, server.port());
        let round = asker.round(asked.clone(), Some(listed)).await;
        let said = round.said.expect("they are known");
        assert_eq!(said["1"], Ok(asked.into_iter().map(|(_, number)| number).collect()));
        assert!(said["2"].as_ref().is_err_and(|why| why.starts_with("127.0.0.2:")), "{said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_says_nothing_holds_up_nothing_for_longer_than_a_replica() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let asker = asker(address, 0);
        let began = tokio::time::Instant::now();
        let round = asker.round(vec![(id("a"), 1)], None).await;
        assert!(round.said.is_err_and(|reason| reason.contains("no answer")));
        assert_eq!(began.elapsed().as_secs(), BOUND.as_secs());
    }
}
