//! The loop: news of the watches in, Snapshots out; everything that is ready at once goes into one Snapshot.

use super::ClusterOptions;
use super::contents::Contents;
use super::outage::{Outage, RESUMES};
use super::watches::{Watched, Watches};
use crate::client::reason;
use crate::feed::Publisher;
use crate::following::without_waiting_secrets;
use crate::watch::{Change, Guarded, News, WatchId, backoff};
use crate::{Error, Following};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client};
use objects::{Kind, Object, ObjectKey, Snapshot, interleaved};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a Snapshot is held back for the data of a Secret that was just referred to: without them it would say
/// that a certificate is missing which is on its way. It seldom takes more than milliseconds, and when the API server
/// is too slow for that there are no other news either.
const HOLD: Duration = Duration::from_secs(1);

/// How long a GatewayClass that was deleted counts on: whoever installs it anew deletes it and makes it again.
const CLASS_STAYS: Duration = Duration::from_secs(10);

/// How long a first Snapshot waits for kinds that guard something, and for objects that flags name, where they are
/// forbidden: an API server that starts forbids for a moment what it allows.
const RIGHTS_COME: Duration = Duration::from_secs(20);

/// Kinds without which others would have less guards than they should: policies without TLS, and hosts of ListenerSets
/// that a wider listener would have.
const GUARDS: [Kind; 2] = [Kind::BackendTlsPolicy, Kind::ListenerSet];

/// News that are taken into one Snapshot at most, so that an endless stream of them cannot keep it back.
const BATCH: usize = 16 * 1024;

/// What a watch has said so far.
enum State {
    Waiting {
        trouble: Option<String>,
    },
    Listed,
    /// Listing is forbidden, and that is no reason to wait.
    Forbidden,
    /// The API server does not have the kind.
    Absent,
}

/// The loop behind a cluster's Feed.
pub(super) struct Follower {
    /// Whether a person waits for one look.
    once: bool,
    client: Client,
    contents: Contents,
    watched: Vec<Watched>,
    states: Vec<State>,
    news: mpsc::Receiver<(WatchId, News)>,
    /// Data of Secrets that are being asked for.
    fetches: JoinSet<(ObjectKey, Option<Object>)>,
    /// In which versions these were known when they were asked for.
    fetching: HashMap<ObjectKey, Option<u64>>,
    /// Until when the Snapshot is held back for them.
    hold: Option<Instant>,
    outage: Outage,
    /// Until when the Snapshot is held back for kinds that appear or go: routes are not without their policies.
    turning: Option<Instant>,
    /// GatewayClasses that were deleted, and until when they count on.
    leaving: BTreeMap<ObjectKey, Instant>,
    following: Following,
    /// Whether all namespaces are watched: whoever watches one may have no right to IngressClasses by design.
    is_everywhere: bool,
    /// IngressClasses are forbidden, and Ingresses name some: nobody knows whose these are.
    lacks_classes: bool,
    /// The same where that is no reason to wait, which was told.
    does_without_classes: bool,
    /// Kinds that guard something here, and are forbidden.
    lacks: BTreeSet<Kind>,
    /// Whether an object is forbidden that a flag names.
    lacks_named: bool,
    /// Until when a first Snapshot waits for them.
    rights_come: Option<Instant>,
    /// When the first of the news came that no Snapshot has yet.
    since: Option<Instant>,
}

impl Follower {
    pub(super) fn start(
        options: &ClusterOptions,
        streaming: bool,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (sender, wanted) = watch::channel(None);
        let Watches { watched, news } = Watches::start(options, streaming, &wanted, tasks);
        let has_selector = options.namespace_selector.is_some();
        let secrets_of = options.secrets_of.clone();
        Self {
            client: options.client.clone(),
            once: options.once,
            contents: Contents::new(&options.pinned, secrets_of, has_selector, sender),
            states: watched.iter().map(|_| State::Waiting { trouble: None }).collect(),
            outage: Outage::new(watched.len()),
            watched,
            news,
            fetches: JoinSet::new(),
            fetching: HashMap::new(),
            hold: None,
            turning: None,
            leaving: BTreeMap::new(),
            following: options.following.clone(),
            is_everywhere: options.namespace.is_none(),
            lacks_classes: false,
            does_without_classes: false,
            lacks: BTreeSet::new(),
            lacks_named: false,
            rights_come: None,
            since: None,
        }
    }

    /// The first Snapshot, when every kind was listed. IngressClasses are waited for where Ingresses name some: a new
    /// replica without the right to them would serve none of what the old one does. Policies and ListenerSets are
    /// waited for a little while, then what depends on them is closed; and so are objects of other namespaces that
    /// flags name, then they count as absent.
    pub(super) async fn first(&mut self, patience: Instant) -> Result<Snapshot, Error> {
        loop {
            let is_whole = self.is_complete(|_| true) && self.fetching.is_empty();
            let rights = self.rights_come.filter(|until| Instant::now() < *until);
            let lacks_nothing = self.lacks.is_empty() && !self.lacks_named;
            if is_whole && !self.lacks_classes && (lacks_nothing || rights.is_none()) {
                break;
            }
            let until = rights.map_or(patience, |rights| rights.min(patience));
            match timeout_at(until, self.turn()).await {
                Ok(turn) => turn?,
                // Rights that do not come are no reason not to start, however little time is left for them.
                Err(_) if is_whole && !self.lacks_classes => break,
                Err(_) if until < patience => {}
                Err(_) => return Err(self.incomplete(self.missing())),
            }
        }
        Ok(self.contents.publish().unwrap_or_default())
    }

    /// Publishes every change from then on.
    pub(super) async fn run(mut self, publisher: Publisher) {
        loop {
            let ends = self.held_until().into_iter().chain(self.leaving.values().copied());
            let turned = match ends.min() {
                Some(until) => timeout_at(until, self.turn()).await.unwrap_or(Ok(())),
                None => self.turn().await,
            };
            self.let_go();
            if let Err(error) = turned {
                // Refusals end a start, but not what runs: the watches keep trying.
                tracing::warn!(%error, "the last Snapshot stays");
            }
            if self.held_until().is_some() {
                continue;
            }
            self.hold = None;
            let since = self.since.take().unwrap_or_else(Instant::now);
            if let Some(snapshot) = self.contents.publish() {
                publisher.publish(snapshot, since.into_std());
            }
        }
    }

    /// Until when the Snapshot is held back, if it is.
    fn held_until(&self) -> Option<Instant> {
        let until = self.hold.max(self.outage.until()).max(self.turning);
        until.filter(|until| Instant::now() < *until)
    }

    /// Takes out the GatewayClasses that nobody has made again.
    fn let_go(&mut self) {
        let now = Instant::now();
        for key in self.leaving.extract_if(.., |_, until| *until <= now).map(|(key, _)| key) {
            self.contents.apply(Change::Removed(Kind::GatewayClass, key));
        }
    }

    /// Notes whether a watch follows.
    fn note(&mut self, watch: WatchId, news: &News) {
        let is_listed = |state: &&State| matches!(state, State::Listed);
        match news {
            News::Trouble { .. } if !is_listed(&&self.states[watch]) => {}
            News::Trouble { .. } => {
                self.outage.lose(watch, self.states.iter().filter(is_listed).count());
            }
            News::Listed(_) | News::Changed(_) | News::Followed | News::Turns | News::Absent(_) => {
                self.outage.follow(watch)
            }
        }
    }

    /// Waits for something to happen, and takes all that is ready then.
    async fn turn(&mut self) -> Result<(), Error> {
        tokio::select! {
            Some((watch, news)) = self.news.recv() => self.take(watch, news)?,
            Some(fetched) = self.fetches.join_next() => self.fetched(fetched),
            else => std::future::pending::<()>().await,
        }
        self.since.get_or_insert_with(Instant::now);
        for _ in 1..BATCH {
            let Ok((watch, news)) = self.news.try_recv() else { break };
            self.take(watch, news)?;
        }
        while let Some(fetched) = self.fetches.try_join_next() {
            self.fetched(fetched);
        }
        if self.is_complete(|kind| {
            matches!(
                kind,
                Kind::Ingress
                    | Kind::ConfigMap
                    | Kind::Namespace
                    | Kind::Gateway
                    | Kind::ListenerSet
            )
        }) {
            self.contents.know_wanted();
        }
        for secret in self.contents.settle() {
            self.fetch(secret);
        }
        if self.fetching.is_empty() {
            self.hold = None;
        }
        self.need_classes();
        self.need_guards();
        self.need_named();
        if self.is_complete(|kind| kind.is_of_gateways() || kind == Kind::Namespace) {
            self.turning = None;
        }
        Ok(())
    }

    /// Notes which of the kinds that guard something nobody knows; of those that are forbidden it is told, with the
    /// remedy. Who only looks is told that he may not list them.
    fn need_guards(&mut self) {
        let all = self.watched.iter().zip(&self.states);
        // Without its classes no Gateway is anybody's, which is no reason to take away what one has.
        let counts = |kind: Kind| GUARDS.contains(&kind) || kind == Kind::GatewayClass;
        let guards = all.filter(|(watched, _)| !self.once && counts(watched.kind));
        let (mut unlisted, mut lacks) = (BTreeSet::new(), BTreeSet::new());
        for (Watched { kind, .. }, state) in guards {
            if matches!(state, State::Forbidden | State::Waiting { .. }) {
                unlisted.insert(*kind);
            }
            if matches!(state, State::Forbidden)
                && GUARDS.contains(kind)
                && self.contents.may_need(*kind)
            {
                lacks.insert(*kind);
            }
        }
        self.contents.set_unlisted(unlisted);
        for kind in GUARDS {
            let (before, now) = (self.lacks.contains(&kind), lacks.contains(&kind));
            if before != now {
                self.following.need(kind, now);
            }
            if now && !before {
                self.rights_come.get_or_insert_with(|| Instant::now() + RIGHTS_COME);
                tracing::error!(
                    "{kind} of the Gateway API is forbidden, so nobody knows what they say, and {} closed. Let the \
                     ServiceAccount list and watch {} of gateway.networking.k8s.io (deploy/rbac.yaml)",
                    what_closes(kind),
                    kind.plural()
                );
            }
        }
        self.lacks = lacks;
    }

    /// Notes whether an object is forbidden that a flag names, of which its watch tells.
    fn need_named(&mut self) {
        let mut states = self.watched.iter().zip(&self.states);
        let is_lacking = |(watched, state): (&Watched, &State)| {
            watched.is_named && matches!(state, State::Forbidden)
        };
        self.lacks_named = !self.once && states.any(is_lacking);
        if self.lacks_named {
            self.rights_come.get_or_insert_with(|| Instant::now() + RIGHTS_COME);
        }
    }

    /// Whether IngressClasses are forbidden and needed; told once, with the remedy.
    fn need_classes(&mut self) {
        let mut states = self.watched.iter().zip(&self.states);
        let is_forbidden = states.any(|(watched, state)| {
            watched.kind == Kind::IngressClass && matches!(state, State::Forbidden)
        });
        let may_need = is_forbidden && !self.once && !self.does_without_classes;
        let naming = if may_need { self.contents.naming_classes() } else { 0 };
        // With rights in one namespace only, it was meant like that.
        if !self.is_everywhere {
            if naming > 0 {
                self.does_without_classes = true;
                tracing::warn!(
                    ingresses = naming,
                    "IngressClasses may not be read, and Ingresses name some in spec.ingressClassName: these are not \
                     served, only those with the annotation kubernetes.io/ingress.class"
                );
            }
            return;
        }
        if (naming > 0) == self.lacks_classes {
            return;
        }
        self.lacks_classes = naming > 0;
        self.following.need(Kind::IngressClass, self.lacks_classes);
        if self.lacks_classes {
            tracing::error!(
                ingresses = naming,
                "IngressClasses are forbidden, and Ingresses name some: these are not served. Let the ServiceAccount \
                 list and watch ingressclasses of networking.k8s.io (deploy/rbac.yaml)"
            );
        }
    }

    fn take(&mut self, watch: WatchId, news: News) -> Result<(), Error> {
        self.note(watch, &news);
        let Watched { kind, optional, .. } = self.watched[watch];
        match news {
            News::Changed(change) => self.apply(change),
            News::Followed => {}
            News::Turns => {
                self.states[watch] = State::Waiting { trouble: None };
                let now = Instant::now();
                if self.turning.is_none_or(|until| until <= now) {
                    self.turning = Some(now + RESUMES);
                }
            }
            News::Absent(changes) => {
                self.states[watch] = State::Absent;
                changes.into_iter().for_each(|change| self.contents.apply(change));
            }
            News::Listed(changes) => {
                self.states[watch] = State::Listed;
                if kind == Kind::IngressClass {
                    self.contents.set_classes_known(true);
                }
                if kind == Kind::Secret {
                    self.contents.secrets_are_listed();
                }
                for change in interleaved(changes) {
                    self.apply(change);
                }
            }
            News::Trouble { code, reason } => {
                let State::Waiting { trouble } = &mut self.states[watch] else { return Ok(()) };
                match code {
                    Some(403) if optional => {
                        self.states[watch] = State::Forbidden;
                        if kind == Kind::IngressClass {
                            self.contents.set_classes_known(false);
                        }
                    }
                    Some(400 | 422) => {
                        return Err(Error::Refused { what: kind.name().to_owned(), reason });
                    }
                    Some(401) => return Err(Error::Unauthorized { reason }),
                    // Rights do not come by waiting for them.
                    Some(403) if self.once => {
                        return Err(self.incomplete(format!("{kind} ({reason})")));
                    }
                    _ => *trouble = Some(reason),
                }
            }
        }
        Ok(())
    }

    /// Takes a change. A GatewayClass that is deleted counts on for a while, with all of its Gateways.
    fn apply(&mut self, change: Change) {
        match &change {
            Change::Removed(Kind::GatewayClass, key) => {
                self.leaving.insert(key.clone(), Instant::now() + CLASS_STAYS);
                return;
            }
            Change::Put(object) if object.kind() == Kind::GatewayClass => {
                self.leaving.remove(object.key());
            }
            _ => {}
        }
        self.contents.apply(change);
    }

    /// Whether all watches of some kinds have said what there is.
    fn is_complete(&self, of: impl Fn(Kind) -> bool) -> bool {
        let mut watches = self.watched.iter().zip(&self.states);
        watches.all(|(watched, state)| !of(watched.kind) || !matches!(state, State::Waiting { .. }))
    }

    fn incomplete(&self, missing: String) -> Error {
        Error::Incomplete { missing, rights: if self.once { "list" } else { "list and watch" } }
    }

    /// What was not listed, and why.
    fn missing(&self) -> String {
        let waiting = self.watched.iter().zip(&self.states).filter_map(|(watched, state)| {
            let State::Waiting { trouble } = state else { return None };
            Some((watched.kind, trouble.as_deref()))
        });
        let mut waiting: Vec<_> = waiting.collect();
        without_waiting_secrets(&mut waiting);
        let text = |(kind, why): (Kind, Option<&str>)| {
            format!("{kind} ({})", why.unwrap_or("no answer in time"))
        };
        let mut missing: Vec<String> = waiting.into_iter().map(text).collect();
        if self.lacks_classes {
            missing.push(format!("{} (403 Forbidden)", Kind::IngressClass));
        }
        missing.dedup();
        if missing.is_empty() {
            missing.push("the data of Secrets (no answer in time)".to_owned());
        }
        missing.join(", ")
    }

    fn fetch(&mut self, key: ObjectKey) {
        if let Entry::Vacant(vacant) = self.fetching.entry(key.clone()) {
            vacant.insert(self.contents.version_of(&key));
            self.hold.get_or_insert_with(|| Instant::now() + HOLD);
            self.fetches.spawn(fetch(self.client.clone(), key));
        }
    }

    fn fetched(&mut self, fetched: Result<(ObjectKey, Option<Object>), tokio::task::JoinError>) {
        let (key, object) =
            fetched.expect("asking for a Secret neither panics nor is it cancelled");
        let asked = self.fetching.remove(&key).flatten();
        let is_late = object.is_some_and(|object| !self.contents.fetched(object, asked));
        if is_late && self.contents.lacks_data(&key) {
            self.fetch(key);
        }
    }
}

/// What is closed while nobody knows what a kind says.
fn what_closes(kind: Kind) -> &'static str {
    match kind {
        Kind::ListenerSet => {
            "listeners without a host name, or with a wildcard, of Gateways of Fairway that let ListenerSets in are"
        }
        _ => "the backends of routes at Gateways of Fairway are",
    }
}

/// Asks for one Secret until there is an answer. By a list, since that is what the watches may do anyway: reading a
/// Secret by its name is another permission.
async fn fetch(client: Client, key: ObjectKey) -> (ObjectKey, Option<Object>) {
    let secrets: Api<Guarded<Secret>> = Api::namespaced(client, &key.namespace);
    let named = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let mut told = false;
    for pause in backoff() {
        match secrets.list(&named).await {
            Ok(list) => {
                let found = list.items.into_iter().next();
                return (key, found.and_then(|found| found.into_object().ok()));
            }
            Err(error) if !std::mem::replace(&mut told, true) => {
                let (namespace, name, reason) = (&key.namespace, &key.name, reason(&error));
                tracing::warn!(%namespace, %name, reason, "cannot read a Secret; trying again");
            }
            Err(_) => {}
        }
        drop(timeout(pause, std::future::pending::<()>()).await);
    }
    (key, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feed;
    use k8s_openapi::api::networking::v1::Ingress;
    use objects::Trim;
    use objects::gateway::{RawGateway, RawGatewayClass, RawHttpRoute};
    use serde_json::json;
    use std::sync::Arc;

    const INGRESSES: WatchId = 0;
    const CLASSES: WatchId = 1;

    /// A Follower of these kinds, which need not be listed where that is said.
    fn follower(
        kinds: &[(Kind, bool)],
        is_everywhere: bool,
    ) -> (Follower, mpsc::Sender<(WatchId, News)>) {
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let (sender, news) = mpsc::channel(8);
        let following = Following::default();
        for (kind, optional) in kinds {
            following.add(*kind, *optional).lost(Some(403), "403 Forbidden: no");
        }
        let watched = kinds.iter().map(|(kind, optional)| Watched {
            kind: *kind,
            optional: *optional,
            is_named: false,
        });
        let follower = Follower {
            once: false,
            client: Client::try_from(config).expect("a client"),
            contents: Contents::new(&[], Arc::new(|_| Vec::new()), false, watch::channel(None).0),
            watched: watched.collect(),
            states: kinds.iter().map(|_| State::Waiting { trouble: None }).collect(),
            news,
            fetches: JoinSet::new(),
            fetching: HashMap::new(),
            hold: None,
            outage: Outage::new(kinds.len()),
            turning: None,
            leaving: BTreeMap::new(),
            following,
            is_everywhere,
            lacks_classes: false,
            does_without_classes: false,
            lacks: BTreeSet::new(),
            lacks_named: false,
            rights_come: None,
            since: None,
        };
        (follower, sender)
    }

    fn refused() -> News {
        News::Trouble { code: Some(403), reason: "403 Forbidden: no".to_owned() }
    }

    /// A Follower whose IngressClasses are forbidden, and whose one Ingress is this.
    async fn forbidden(
        is_everywhere: bool,
        annotations: serde_json::Value,
        class: Option<&str>,
    ) -> (Follower, mpsc::Sender<(WatchId, News)>) {
        let kinds = [(Kind::Ingress, false), (Kind::IngressClass, true)];
        let (follower, sender) = follower(&kinds, is_everywhere);
        sender.send((CLASSES, refused())).await.expect("somebody listens");
        let ingress = json!({
            "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
            "spec": {"ingressClassName": class},
        });
        let ingress: Ingress = serde_json::from_value(ingress).expect("it fits");
        let there = Change::Put(ingress.trim().expect("it is well formed"));
        sender.send((INGRESSES, News::Listed(vec![there]))).await.expect("somebody listens");
        (follower, sender)
    }

    async fn first(follower: &mut Follower) -> Result<Snapshot, Error> {
        follower.first(Instant::now() + Duration::from_secs(5)).await
    }

    #[tokio::test(start_paused = true)]
    async fn classes_that_ingresses_name_are_waited_for_where_they_are_forbidden() {
        let (mut follower, sender) = forbidden(true, json!({}), Some("nginx")).await;
        let error = first(&mut follower).await.expect_err("it is not ready");
        assert!(error.to_string().contains("IngressClass (403 Forbidden); allow"), "{error}");
        let missing = follower.following.missing().unwrap_or_default();
        assert!(missing.contains("IngressClass: 403 Forbidden"), "{missing}");
        assert!(follower.following.kinds().contains_key("IngressClass"), "alerts see it");
        sender.send((CLASSES, News::Listed(Vec::new()))).await.expect("somebody listens");
        let snapshot = first(&mut follower).await.expect("the right has come");
        assert!(snapshot.classes.is_some());

        let (mut follower, sender) = forbidden(true, json!({}), Some("nginx")).await;
        first(&mut follower).await.expect_err("it is not ready");
        let gone = Change::Removed(Kind::Ingress, ObjectKey::new("shop", "web"));
        sender.send((INGRESSES, News::Changed(gone))).await.expect("somebody listens");
        first(&mut follower).await.expect("nobody needs them any more");
    }

    #[tokio::test(start_paused = true)]
    async fn forbidden_classes_are_no_reason_to_wait_where_nobody_needs_them() {
        let by_annotation = json!({"kubernetes.io/ingress.class": "nginx"});
        for (is_everywhere, annotations, class) in [
            (true, json!({}), None),
            (true, by_annotation, Some("nginx")),
            (false, json!({}), Some("nginx")),
        ] {
            let (mut follower, _sender) = forbidden(is_everywhere, annotations, class).await;
            let snapshot = first(&mut follower).await.expect("it goes without");
            assert_eq!(follower.does_without_classes, !is_everywhere, "told where it matters");
            assert!(snapshot.classes.is_none());
            assert_eq!(follower.following.kinds().get("IngressClass"), None);
        }
    }

    /// What an Ingress says now that was there before.
    fn changed(port: u16) -> Change {
        let backend = json!({"service": {"name": "web", "port": {"number": port}}});
        let ingress = json!({
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": port.to_string()},
            "spec": {"defaultBackend": backend},
        });
        let ingress: Ingress = serde_json::from_value(ingress).expect("it fits");
        Change::Put(ingress.trim().expect("it is well formed"))
    }

    #[expect(clippy::disallowed_methods, reason = "the clock is paused, and time is the matter")]
    #[tokio::test(start_paused = true)]
    async fn after_an_outage_nothing_is_told_before_all_kinds_are_followed_again() {
        let (sender, mut feed) = running().await;
        let tell = async |watch, news| sender.send((watch, news)).await.expect("somebody listens");
        let lost = || News::Trouble { code: None, reason: "Connection refused".to_owned() };
        let mut port = 0;
        for (others_come, after) in [(true, Duration::ZERO), (false, RESUMES)] {
            for watch in [INGRESSES, CLASSES] {
                tell(watch, lost()).await;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            let _ = feed.take();
            port += 1;
            tell(INGRESSES, News::Changed(changed(port))).await;
            let begin = Instant::now();
            if others_come {
                let early = timeout(RESUMES / 2, feed.snapshots.changed()).await;
                assert!(early.is_err(), "half of it is not told");
                tell(CLASSES, News::Followed).await;
            }
            feed.snapshots.changed().await.expect("all of it");
            let waited = if others_come { RESUMES / 2 } else { after };
            assert_eq!(begin.elapsed(), waited);
            tell(CLASSES, News::Followed).await;
        }
        // One kind alone is no outage.
        tell(CLASSES, lost()).await;
        tell(INGRESSES, News::Listed(vec![changed(9)])).await;
        let begin = Instant::now();
        feed.snapshots.changed().await.expect("it is told");
        assert!(begin.elapsed().is_zero());
    }

    /// One that runs, and has heard since which classes there are.
    async fn running() -> (mpsc::Sender<(WatchId, News)>, Feed) {
        let (mut follower, sender) = forbidden(false, json!({}), None).await;
        first(&mut follower).await.expect("it goes without classes");
        sender.send((CLASSES, News::Listed(Vec::new()))).await.expect("somebody listens");
        let (mut feed, publisher) = Feed::new(Snapshot::default());
        tokio::spawn(follower.run(publisher));
        feed.snapshots.changed().await.expect("classes");
        (sender, feed)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_forbidden_while_an_api_server_starts_is_part_of_the_outage() {
        let (sender, mut feed) = running().await;
        let tell = async |watch, news| sender.send((watch, news)).await.expect("somebody listens");
        let lost = || News::Trouble { code: None, reason: "Connection refused".to_owned() };
        tell(INGRESSES, lost()).await;
        tell(CLASSES, lost()).await;
        tell(CLASSES, refused()).await;
        let begin = Instant::now();
        tell(INGRESSES, News::Listed(vec![changed(1)])).await;
        feed.snapshots.changed().await.expect("all of it");
        assert_eq!(begin.elapsed(), RESUMES, "it waited for what was refused");
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_are_not_there_are_not_counted_in_an_outage() {
        let kinds = [(Kind::Ingress, false), (Kind::Service, false)];
        let absent = [Kind::Gateway, Kind::HttpRoute, Kind::ListenerSet].map(|kind| (kind, true));
        let (mut follower, sender) = follower(&[&kinds[..], &absent].concat(), true);
        let tell = async |watch, news| sender.send((watch, news)).await.expect("somebody listens");
        for watch in 0..kinds.len() + absent.len() {
            let is_absent = watch >= kinds.len();
            let news = if is_absent { News::Absent } else { News::Listed };
            tell(watch, news(Vec::new())).await;
        }
        let (mut feed, publisher) = Feed::new(first(&mut follower).await.expect("all of it"));
        tokio::spawn(follower.run(publisher));
        for watch in 0..kinds.len() {
            tell(watch, News::Trouble { code: None, reason: "Connection refused".to_owned() })
                .await;
        }
        let begin = Instant::now();
        tell(INGRESSES, News::Listed(vec![changed(1)])).await;
        feed.snapshots.changed().await.expect("all of it");
        assert_eq!(begin.elapsed(), RESUMES, "it waited for the Services");
    }

    const ROUTES: WatchId = 0;
    const POLICIES: WatchId = 1;
    const GATEWAY_CLASSES: WatchId = 3;

    const OF_GATEWAYS: [(Kind, bool); 4] = [
        (Kind::HttpRoute, true),
        (Kind::BackendTlsPolicy, true),
        (Kind::Gateway, true),
        (Kind::GatewayClass, true),
    ];

    fn read<K: Trim + serde::de::DeserializeOwned>(object: serde_json::Value) -> Change {
        let read: K = serde_json::from_value(object).expect("it fits");
        Change::Put(read.trim().expect("it is well formed"))
    }

    fn route(version: u8) -> Change {
        let meta =
            json!({"name": "web", "namespace": "shop", "resourceVersion": version.to_string()});
        read::<RawHttpRoute>(
            json!({"metadata": meta, "spec": {"hostnames": [format!("v{version}.test")]}}),
        )
    }

    fn gateway() -> Change {
        let spec = json!({"gatewayClassName": "ours", "listeners": []});
        read::<RawGateway>(json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}))
    }

    fn class() -> Change {
        read::<RawGatewayClass>(
            json!({"metadata": {"name": "ours"}, "spec": {"controllerName": "a/b"}}),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_appear_are_told_together_and_policies_that_do_not_come_are_known_to_be_unknown()
     {
        let (mut follower, sender) = follower(&OF_GATEWAYS, true);
        for watch in 0..OF_GATEWAYS.len() {
            sender.send((watch, News::Absent(Vec::new()))).await.expect("somebody listens");
        }
        let snapshot = first(&mut follower).await.expect("nothing is there");
        assert!(snapshot.unlisted.is_empty(), "what is not there says nothing");
        let (mut feed, publisher) = Feed::new(snapshot);
        tokio::spawn(follower.run(publisher));
        let tell = async |watch, news| sender.send((watch, news)).await.expect("somebody listens");
        for (version, come) in [(1, true), (2, false)] {
            for watch in [ROUTES, POLICIES] {
                tell(watch, News::Turns).await;
            }
            let begin = Instant::now();
            tell(ROUTES, News::Listed(vec![route(version)])).await;
            if come {
                let early = timeout(RESUMES / 2, feed.snapshots.changed()).await;
                assert!(early.is_err(), "routes are not told without their policies");
                tell(POLICIES, News::Listed(Vec::new())).await;
            }
            feed.snapshots.changed().await.expect("it is told");
            assert_eq!(begin.elapsed(), if come { RESUMES / 2 } else { RESUMES });
            let unlisted = feed.take().0.unlisted;
            assert_eq!(unlisted.contains(&Kind::BackendTlsPolicy), !come);
        }
        tell(POLICIES, News::Listed(Vec::new())).await;
        feed.snapshots.changed().await.expect("they are there");
        assert!(feed.take().0.unlisted.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_waits_a_while_for_the_right_to_policies_and_then_says_that_they_are_unknown() {
        for has_gateways in [true, false] {
            let (mut follower, sender) = follower(&OF_GATEWAYS, true);
            let gateways = has_gateways.then(gateway).into_iter().collect();
            let all = [vec![route(1)], Vec::new(), gateways, Vec::new()];
            for (watch, found) in all.into_iter().enumerate() {
                let news = if watch == POLICIES { refused() } else { News::Listed(found) };
                sender.send((watch, news)).await.expect("somebody listens");
            }
            let begin = Instant::now();
            let patience = begin + RIGHTS_COME * 2;
            let snapshot = follower.first(patience).await.expect("it goes without");
            assert_eq!(snapshot.unlisted, BTreeSet::from([Kind::BackendTlsPolicy]));
            let waited = if has_gateways { RIGHTS_COME } else { Duration::ZERO };
            assert_eq!(begin.elapsed(), waited, "only where somebody needs them");
            let is_seen = follower.following.kinds().contains_key("BackendTLSPolicy");
            assert_eq!(is_seen, has_gateways, "alerts see it");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_has_little_time_left_for_a_right_goes_on_without_it() {
        let (mut follower, sender) = follower(&OF_GATEWAYS, true);
        let all = [vec![route(1)], Vec::new(), vec![gateway()], Vec::new()];
        for (watch, found) in all.into_iter().enumerate() {
            let news = if watch == POLICIES { refused() } else { News::Listed(found) };
            sender.send((watch, news)).await.expect("somebody listens");
        }
        let patience = Instant::now() + RIGHTS_COME / 2;
        let snapshot = follower.first(patience).await.expect("it goes without");
        assert_eq!(snapshot.unlisted, BTreeSet::from([Kind::BackendTlsPolicy]));
        assert_eq!(Instant::now(), patience);
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_waits_a_while_for_the_right_to_an_object_that_a_flag_names() {
        const NAMED: WatchId = 1;
        for comes in [true, false] {
            let kinds = [(Kind::Ingress, false), (Kind::ConfigMap, true)];
            let (mut follower, sender) = follower(&kinds, false);
            follower.watched[NAMED].is_named = true;
            let tell = async |watch, news| sender.send((watch, news)).await.expect("a listener");
            tell(INGRESSES, News::Listed(Vec::new())).await;
            tell(NAMED, refused()).await;
            let begin = Instant::now();
            if comes {
                let patience = begin + RIGHTS_COME * 2;
                let early = timeout(RIGHTS_COME / 2, follower.first(patience)).await;
                assert!(early.is_err(), "it is not ready without the ports of TCP services");
                tell(NAMED, News::Listed(Vec::new())).await;
            }
            follower.first(begin + RIGHTS_COME * 2).await.expect("all that there is");
            assert_eq!(begin.elapsed(), if comes { RIGHTS_COME / 2 } else { RIGHTS_COME });
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the clock is paused, and time is the matter")]
    #[tokio::test(start_paused = true)]
    async fn a_class_that_is_made_again_was_never_gone_and_one_that_is_not_goes_in_the_end() {
        let (mut follower, sender) = follower(&OF_GATEWAYS, true);
        let tell = async |watch, news| sender.send((watch, news)).await.expect("somebody listens");
        for (watch, found) in
            [Vec::new(), Vec::new(), vec![gateway()], vec![class()]].into_iter().enumerate()
        {
            tell(watch, News::Listed(found)).await;
        }
        let (mut feed, publisher) = Feed::new(first(&mut follower).await.expect("all of it"));
        tokio::spawn(follower.run(publisher));
        let gone = || Change::Removed(Kind::GatewayClass, ObjectKey::new("", "ours"));
        tell(GATEWAY_CLASSES, News::Changed(gone())).await;
        tokio::time::sleep(CLASS_STAYS / 2).await;
        tell(GATEWAY_CLASSES, News::Changed(class())).await;
        let again = timeout(CLASS_STAYS * 2, feed.snapshots.changed()).await;
        assert!(again.is_err(), "nothing has changed");
        let begin = Instant::now();
        tell(GATEWAY_CLASSES, News::Changed(gone())).await;
        feed.snapshots.changed().await.expect("it goes");
        assert_eq!(begin.elapsed(), CLASS_STAYS);
        assert!(feed.take().0.gateway_classes.is_empty());
    }
}
