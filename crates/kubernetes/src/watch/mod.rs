//! One kind of object, listed and then watched for ever: trimmed at once, complete lists only, and nothing ends it. Now
//! and then it is listed anew, should the watch have left something out.

mod resumed;
mod trouble;

use crate::client::reason;
use crate::following::Report;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Config, Event, InitialListStrategy, watcher};
use objects::{Kind, Object, ObjectKey, Trim};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) use resumed::{Since, watching};
pub(crate) use trouble::Right;
use trouble::{Expired, Expiry};

/// What happened to one object.
#[derive(Debug)]
pub(crate) enum Change {
    /// It is there, in this version.
    Put(Object),
    /// It is there, but cannot be read.
    Malformed(Kind, ObjectKey, String),
    /// It is gone.
    Removed(Kind, ObjectKey),
}

impl Change {
    fn key(&self) -> &ObjectKey {
        match self {
            Self::Put(object) => object.key(),
            Self::Malformed(_, key, _) | Self::Removed(_, key) => key,
        }
    }
}

/// What a watch tells.
#[derive(Debug)]
pub(crate) enum News {
    /// The list is complete; this is what differs from before.
    Listed(Vec<Change>),
    /// One object changed.
    Changed(Change),
    /// It is followed again after trouble, and nothing has changed so far.
    Followed,
    /// The API server has got the kind, or has lost it: what there is now is told in a moment.
    Turns,
    /// The API server does not have the kind; this is gone with it.
    Absent(Vec<Change>),
    /// The API server cannot be reached or refuses; the watch tries again.
    Trouble {
        /// The status that it answered, if it did.
        code: Option<u16>,
        /// What is wrong.
        reason: String,
    },
}

/// A kind of the API that can be watched.
pub(crate) trait Watchable: Trim + kube::Resource<DynamicType = ()> {}

impl<K: Trim + kube::Resource<DynamicType = ()>> Watchable for K {}

/// Which of several watches this is.
pub(crate) type WatchId = usize;

/// A watch of one kind.
pub(crate) struct Watch<K: Watchable> {
    pub(crate) id: WatchId,
    pub(crate) api: Api<Guarded<K>>,
    /// Where the latest watch goes on from.
    pub(crate) since: Since,
    pub(crate) config: Config,
    /// How long a complete list is trusted.
    pub(crate) relist: Duration,
    /// Where a person waits for one look, which takes no right to watch: whether the look does without this kind.
    pub(crate) once: Option<Once>,
    /// What to keep of an object, beyond trimming.
    pub(crate) keep: Box<dyn Fn(Object) -> Object + Send + Sync>,
    pub(crate) sender: mpsc::Sender<(WatchId, News)>,
    /// Learns how it goes.
    pub(crate) report: Report,
    /// What to say where it is forbidden.
    pub(crate) right: Right,
}

/// What a single look does about a kind that it may not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Once {
    /// It does without.
    Optional,
    /// It ends with an error that says so.
    Needed,
}

/// How long a watch that was resumed has to hold before it is asked whether the API server answers again.
const SETTLED: Duration = Duration::from_secs(1);
/// How long that question may take.
const QUESTION: Duration = Duration::from_secs(10);

/// What is remembered from one event to the next.
struct Progress {
    /// Everything that is there, readable or not, in these versions.
    known: HashMap<ObjectKey, Option<u64>>,
    /// The list that is arriving.
    fresh: HashMap<ObjectKey, Option<u64>>,
    changes: Vec<Change>,
    /// A list began and did not end yet.
    listing: bool,
    /// Until when the list is trusted, once there is one.
    until: Option<Instant>,
    backoff: ExponentialBackoff,
    /// The same for what is forbidden.
    forbidden: ExponentialBackoff,
    /// The same for watches that are too old to be resumed.
    expiry: Expiry,
    /// Hears of other kinds that are followed again.
    others: watch::Receiver<()>,
    /// The statuses (none: no answer) that came since it was followed last, each of them once, and whether the log
    /// was told of one.
    told: Vec<Option<u16>>,
    is_logged: bool,
}

impl Progress {
    fn new(report: &Report) -> Self {
        Self {
            known: HashMap::new(),
            fresh: HashMap::new(),
            changes: Vec::new(),
            listing: false,
            until: None,
            backoff: backoff(),
            forbidden: forbidden(),
            expiry: Expiry::new(),
            others: report.others(),
            told: Vec::new(),
            is_logged: false,
        }
    }

    /// Whether something is known in a later version than the API server's latest one. A watch that is resumed there
    /// leaves out, without a word, all that happens until that version comes.
    fn is_ahead_of(&self, version: u64) -> bool {
        self.known.values().flatten().any(|known| *known > version)
    }

    /// An API server that was put back to a backup gives out versions a second time: what is listed is told, whatever
    /// was known in the same version.
    fn distrust(&mut self) {
        self.known.values_mut().for_each(|version| *version = None);
    }

    fn in_trouble(&self) -> bool {
        !self.told.is_empty()
    }
}

/// What to do after an error.
enum Next {
    /// Go on with the same stream.
    Resume,
    /// Begin again with a list.
    StartOver,
}

impl<K: Watchable> Watch<K> {
    /// Tells everything for ever; ends when nobody listens any more.
    pub(crate) async fn run(mut self) {
        let mut progress = Progress::new(&self.report);
        self.follow_all(&mut progress).await;
    }

    /// Tells everything as long as the API server has the kind: one that it does not have has no objects, which is no
    /// trouble.
    pub(crate) async fn run_while(mut self, mut present: watch::Receiver<Option<bool>>) {
        while !self.sender.is_closed() {
            let Ok(is_there) = present.wait_for(Option::is_some).await.map(|known| *known) else {
                return;
            };
            let mut progress = Progress::new(&self.report);
            if is_there == Some(true) {
                tokio::select! {
                    () = self.follow_all(&mut progress) => return,
                    gone = until(&mut present, false) => if !gone { return },
                }
            }
            let gone = progress.known.into_keys().map(|key| Change::Removed(K::KIND, key));
            self.report.absent();
            let told = self.tell(News::Absent(gone.collect())).await;
            if !told || !until(&mut present, true).await {
                return;
            }
        }
    }

    async fn follow_all(&mut self, progress: &mut Progress) {
        while !self.sender.is_closed() {
            let mut stream = pin!(watcher(self.api.clone(), self.config.clone()));
            self.follow(&mut stream, progress).await;
            if self.is_enough(progress) {
                return;
            }
        }
    }

    /// Follows one stream until it is of no more use, or has been trusted for long enough.
    async fn follow<S>(&mut self, stream: &mut S, progress: &mut Progress)
    where
        S: Stream<Item = watcher::Result<Event<Guarded<K>>>> + Unpin,
    {
        (progress.listing, progress.until) = (false, None);
        loop {
            let next = match progress.until {
                // Only between two events: none is lost half-way.
                Some(until) => tokio::select! {
                    next = stream.next() => next,
                    version = self.confirmed(), if progress.in_trouble() => {
                        self.succeed(progress);
                        let is_ahead = |version| {
                            progress.is_ahead_of(version) || self.since.is_ahead_of(version)
                        };
                        if version.is_some_and(is_ahead) {
                            tracing::info!(
                                kind = %K::KIND,
                                "the API server was put back to an older version; listing again"
                            );
                            progress.distrust();
                            return;
                        }
                        if !self.tell(News::Followed).await {
                            return;
                        }
                        continue;
                    }
                    () = sleep_until(until) => return,
                },
                None => stream.next().await,
            };
            let Some(event) = next else { return };
            let delivered = match event {
                Ok(event) => self.event(event, progress).await,
                Err(error) => match self.trouble(&error, progress).await {
                    Next::Resume => true,
                    Next::StartOver => return,
                },
            };
            if !delivered || self.is_enough(progress) {
                return;
            }
        }
    }

    /// Whether it was listed, and that is all that is wanted.
    fn is_enough(&self, progress: &Progress) -> bool {
        self.once.is_some() && progress.until.is_some()
    }

    /// Takes an event; false if nobody listens any more.
    async fn event(&mut self, event: Event<Guarded<K>>, progress: &mut Progress) -> bool {
        match event {
            Event::Init => {
                // A server that ends every list before it is complete is not asked again at once; nor for all of it in
                // one piece, should it take longer than a watch lasts.
                if std::mem::replace(&mut progress.listing, true) {
                    self.pause(progress.backoff.next()).await;
                    let paged = InitialListStrategy::ListWatch;
                    if std::mem::replace(&mut self.config.initial_list_strategy, paged)
                        == InitialListStrategy::StreamingList
                    {
                        return false;
                    }
                }
                progress.until = None;
                progress.fresh.clear();
                progress.changes.clear();
                true
            }
            Event::InitApply(object) => {
                let (key, version) = (object.key(), object.version());
                // It changed while the list came: only the last of it counts, in whatever order changes are taken.
                if progress.fresh.insert(key.clone(), version).is_some() {
                    progress.changes.retain(|earlier| *earlier.key() != key);
                }
                // Most of a list that is taken again is known: it takes no room and nobody looks at it.
                if version.is_none() || progress.known.get(&key) != Some(&version) {
                    progress.changes.push(self.change(object));
                }
                true
            }
            Event::InitDone => {
                let fresh = std::mem::take(&mut progress.fresh);
                let gone = progress.known.keys().filter(|key| !fresh.contains_key(*key)).cloned();
                progress.changes.extend(gone.map(|key| Change::Removed(K::KIND, key)));
                progress.known = fresh;
                progress.listing = false;
                progress.until = Some(Instant::now() + jittered(self.relist));
                self.succeed(progress);
                self.report.listed();
                progress.others.mark_unchanged();
                tracing::debug!(kind = %K::KIND, changes = progress.changes.len(), "listed");
                self.tell(News::Listed(std::mem::take(&mut progress.changes))).await
            }
            Event::Apply(object) => {
                self.succeed(progress);
                progress.known.insert(object.key(), object.version());
                self.tell(News::Changed(self.change(object))).await
            }
            Event::Delete(object) => {
                self.succeed(progress);
                let key = object.key();
                progress.known.remove(&key);
                self.tell(News::Changed(Change::Removed(K::KIND, key))).await
            }
        }
    }

    /// Something arrived: what was wrong is over.
    fn succeed(&self, progress: &mut Progress) {
        if progress.in_trouble() {
            progress.told.clear();
            self.report.followed();
            progress.others.mark_unchanged();
            if std::mem::take(&mut progress.is_logged) {
                tracing::info!(kind = %K::KIND, "the API server is followed again");
            }
        }
        (progress.backoff, progress.forbidden) = (backoff(), forbidden());
    }

    /// Returns once the API server lets us list again. A watch that was resumed is silent until something changes, and
    /// that may be long; one that was refused would have said so by then. Which version is the latest one.
    async fn confirmed(&self) -> Option<u64> {
        let Config { label_selector, field_selector, .. } = self.config.clone();
        let one =
            ListParams { label_selector, field_selector, limit: Some(1), ..ListParams::default() };
        loop {
            #[expect(clippy::disallowed_methods, reason = "asked again now and then")]
            sleep(jittered(SETTLED)).await;
            if let Ok(Ok(list)) = timeout(QUESTION, self.api.list(&one)).await {
                return list.metadata.resource_version?.parse().ok();
            }
        }
    }

    fn change(&self, object: Guarded<K>) -> Change {
        let key = object.key();
        match object.object {
            Ok(object) => Change::Put((self.keep)(object)),
            Err(message) => Change::Malformed(K::KIND, key, message),
        }
    }

    async fn trouble(&mut self, error: &watcher::Error, progress: &mut Progress) -> Next {
        let (code, reason) = explain(error);
        let at_start = matches!(error, watcher::Error::WatchStartFailed(_));
        let streaming = self.config.initial_list_strategy == InitialListStrategy::StreamingList;
        if at_start && streaming && matches!(code, Some(400 | 422)) {
            tracing::debug!(kind = %K::KIND, reason, "no streaming list; a plain one then");
            self.config.initial_list_strategy = InitialListStrategy::ListWatch;
            return Next::StartOver;
        }
        if code == Some(410) {
            return self.expired(at_start, reason, progress).await;
        }
        self.report.lost(code, &reason);
        if !progress.told.contains(&code) {
            progress.told.push(code);
            if K::KIND.is_of_gateways() && trouble::is_of_definition(code, &reason) {
                tracing::debug!(kind = %K::KIND, reason, "the API server does not have the kind");
            } else {
                progress.is_logged = true;
                trouble::tell(K::KIND, code, &reason, &self.right, self.once);
            }
        }
        self.tell(News::Trouble { code, reason }).await;
        let forbidden = code == Some(403);
        let pauses = if forbidden { &mut progress.forbidden } else { &mut progress.backoff };
        let pause = pauses.next();
        // What was never listed is forbidden for good, as far as anybody knows. What was may be given back with the
        // right to the others, and these would be shown without it.
        let wakes = !forbidden || self.report.was_listed();
        tokio::select! {
            () = self.pause(pause) => {}
            Ok(()) = progress.others.changed(), if wakes => {}
        }
        progress.others.mark_unchanged();
        Next::Resume
    }

    /// A watch is too old to be resumed, so that all is listed anew.
    async fn expired(&mut self, at_start: bool, reason: String, progress: &mut Progress) -> Next {
        progress.distrust();
        let (expiry, pause) = progress.expiry.next();
        match expiry {
            Expired::Once => {
                // The long pauses were for a server that is not there.
                progress.backoff = backoff();
                tracing::info!(kind = %K::KIND, "the watch is too old to be resumed; listing again");
            }
            Expired::Again { is_news } => {
                self.report.lost(Some(410), &reason);
                if is_news {
                    tracing::warn!(
                        kind = %K::KIND, reason,
                        "each watch is too old to be resumed, however new the list is; listing again, less and less often"
                    );
                }
            }
        }
        self.tell(News::Trouble { code: Some(410), reason }).await;
        self.pause(pause).await;
        progress.expiry.goes_on();
        // The stream goes back to a list by itself when a running watch is too old, but not when it is to be resumed.
        if at_start { Next::StartOver } else { Next::Resume }
    }

    /// Waits, unless nobody listens any more.
    async fn pause(&self, duration: Option<Duration>) {
        drop(timeout(duration.unwrap_or_default(), self.sender.closed()).await);
    }

    async fn tell(&self, news: News) -> bool {
        self.sender.send((self.id, news)).await.is_ok()
    }
}

/// Waits until it is so; false if nobody will ever say.
async fn until(present: &mut watch::Receiver<Option<bool>>, wanted: bool) -> bool {
    present.wait_for(|known| *known == Some(wanted)).await.is_ok()
}

/// Short at first, since most interruptions are; with jitter, so that replicas do not come back in step.
pub(crate) fn backoff() -> ExponentialBackoff {
    pauses_up_to(Duration::from_secs(2))
}

/// What is forbidden may be so for a moment, while an API server starts; or until somebody mends a role.
fn forbidden() -> ExponentialBackoff {
    pauses_up_to(Duration::from_secs(15))
}

fn pauses_up_to(longest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(longest)
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}

/// A quarter more or less, so that neither kinds nor replicas list at the same moment.
fn jittered(period: Duration) -> Duration {
    period.mul_f64(0.75 + fastrand::f64() / 2.0)
}

fn explain(error: &watcher::Error) -> (Option<u16>, String) {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            let code = if let kube::Error::Api(status) = error { Some(status.code) } else { None };
            (code, reason(error))
        }
        watcher::Error::WatchError(status) => {
            (Some(status.code), format!("{} {}: {}", status.code, status.reason, status.message))
        }
        watcher::Error::NoResourceVersion => (None, "the answer has no resourceVersion".to_owned()),
    }
}

/// An object as it comes from the API server, trimmed while it is read: of a list, no more than one object is there
/// in full at a time. One that does not fit its kind is a message instead, and the rest of the list goes on.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<K> {
    meta: ObjectMeta,
    object: Result<Object, String>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Watchable> Guarded<K> {
    /// What was read.
    pub(crate) fn into_object(self) -> Result<Object, String> {
        self.object
    }

    fn key(&self) -> ObjectKey {
        match &self.object {
            Ok(object) => object.key().clone(),
            Err(_) => ObjectKey::new(
                self.meta.namespace.as_deref().unwrap_or_default(),
                self.meta.name.as_deref().unwrap_or_default(),
            ),
        }
    }

    /// The version, which is a number wherever it can be compared.
    fn version(&self) -> Option<u64> {
        self.meta.resource_version.as_deref()?.parse().ok()
    }
}

impl<'de, K: Watchable> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The least that an object must be.
        #[derive(Deserialize)]
        struct Named {
            metadata: Identity,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Identity {
            name: String,
            #[serde(default)]
            namespace: Option<String>,
            resource_version: String,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let full = serde_json::from_str::<K>(text.get()).map_err(|error| error.to_string());
        // The watcher asks for the version, and the key is needed when the object cannot be trimmed.
        let meta = match &full {
            Ok(object) => ObjectMeta {
                name: object.meta().name.clone(),
                namespace: object.meta().namespace.clone(),
                resource_version: object.meta().resource_version.clone(),
                ..ObjectMeta::default()
            },
            Err(_) => {
                let named: Named =
                    serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
                ObjectMeta {
                    name: Some(named.metadata.name),
                    namespace: named.metadata.namespace,
                    resource_version: Some(named.metadata.resource_version),
                    ..ObjectMeta::default()
                }
            }
        };
        Ok(Self { meta, object: full.and_then(K::trim), kind: PhantomData })
    }
}

impl<K: Watchable> kube::Resource for Guarded<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(&(): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group(&(): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version(&(): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural(&(): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests;
