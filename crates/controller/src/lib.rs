//! The loop: a Snapshot comes, becomes a Configuration, and the engine follows it. What went wrong is told once.

pub mod admission;
mod budget;
mod call;
mod clock;
pub mod events;
mod fingerprint;
mod known;
pub mod lease;
mod lines;
mod metrics;
mod pod;
mod portions;
mod report;
mod stable;
pub mod status;
mod task;
mod timings;
pub mod webhook_certificate;

pub use known::Known;
pub use metrics::{Metrics, Progress};
pub use pod::{OwnPod, Sibling};
pub use timings::{BOUNDS, Timings};

use engine::{Engine, Rejected};
use fingerprint::Fingerprints;
use kubernetes::Feed;
use model::{Changes, Problem};
use portions::Portions;
use report::Reporter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use system::breaks::between_pieces;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, timeout};
use translate::{Options, Translation, Translator};

/// Pause before what the engine refused is tried again, and the longest one: each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often all certificates are looked at, whether or not anything changes.
const DAY: Duration = Duration::from_secs(86_400);

/// Makes an engine follow the objects of a feed.
#[derive(Debug)]
pub struct Controller<E> {
    engine: Arc<E>,
    translator: Translator,
    options: Arc<Options>,
    /// What the engine did not take of it.
    left_out: Vec<Problem>,
    /// Whether the engine has to be asked again though nothing changed.
    is_due: bool,
    portions: Portions,
    /// When changes were seen of which some still wait for a later round.
    held_since: Option<Instant>,
    fingerprints: Fingerprints,
    metrics: Arc<Metrics>,
    reporter: Reporter,
    known: watch::Sender<Arc<Known>>,
}

/// The feed ended, which it never does while the process lives.
#[derive(Debug, thiserror::Error)]
#[error("the source of objects has stopped; what is served stays as it is")]
pub struct FeedEnded;

impl<E: Engine> Controller<E> {
    /// A controller for an engine that serves nothing yet.
    pub fn new(engine: Arc<E>, options: Options) -> Self {
        Self {
            engine,
            translator: Translator::new(options.clone()),
            options: Arc::new(options),
            left_out: Vec::new(),
            is_due: false,
            portions: Portions::default(),
            held_since: None,
            fingerprints: Fingerprints::default(),
            metrics: Arc::default(),
            reporter: Reporter::default(),
            known: watch::Sender::default(),
        }
    }

    /// The objects, what they mean and what the engine made of it, from one round to the next.
    pub fn known(&self) -> watch::Receiver<Arc<Known>> {
        self.known.subscribe()
    }

    /// What the loop says of itself.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Takes the latest Snapshot. When it returns, everything in it is served that the engine takes; unless a namespace
    /// changes so much that some of it has to wait for another round, which it says. At first it takes everything.
    pub async fn follow(&mut self, feed: &mut Feed) -> bool {
        let (snapshot, seen) = feed.take();
        let began = Instant::now();
        let (snapshot, more) = if self.engine.takes_portions() && self.known.borrow().is_serving() {
            self.portions.take(&self.known.borrow().snapshot, snapshot)
        } else {
            (snapshot, false)
        };
        let translation = self.translator.update(&snapshot);
        let Translation { configuration, problems, served, without_class, kept, .. } = translation;
        let more = more || translation.more;
        between_pieces();
        let before = self.known.borrow().clone();
        let changes = Changes::between(&before.serving, &configuration);
        let mut known = Known {
            snapshot,
            configuration,
            references: self.translator.references().clone(),
            problems,
            served,
            without_class,
            kept,
            options: self.options.clone(),
            statuses: translation.statuses,
            serving: before.serving.clone(),
            routes: before.routes,
            refused: None,
            closed: translation.closed,
        };
        between_pieces();
        if !changes.is_empty() || !before.is_serving() || self.is_due {
            self.apply(&mut known, &changes, began).await;
            self.measure(seen.filter(|_| known.refused.is_none()), more);
        } else {
            // Where what waited changed nothing that is served, no later change took as long.
            self.held_since = if more { self.held_since.or(seen) } else { None };
        }
        if known.refused.is_some() {
            // Nobody is told that something is served which is not.
            known.statuses = before.statuses.clone();
        }
        between_pieces();
        // What the engine left out is a problem of its owner like any other.
        known.problems = known.problems.with(&self.left_out);
        self.reporter.report(&known);
        self.reporter.report_unserved(&known);
        self.reporter.report_gone(&before.snapshot, &known);
        self.known.send_replace(Arc::new(known));
        more
    }

    /// Counts how long changes took that are served now; where some of them wait, once more when these are, too.
    fn measure(&mut self, seen: Option<Instant>, more: bool) {
        let held = self.held_since.filter(|_| !more);
        for since in seen.into_iter().chain(held) {
            self.metrics.propagation.add(since.elapsed());
        }
        self.held_since = if more { self.held_since.or(seen) } else { None };
    }

    /// Hands `known.configuration` to the engine and notes what became of it.
    async fn apply(&mut self, known: &mut Known, changes: &Changes, began: Instant) {
        let translated = began.elapsed();
        match self.engine.apply(&known.configuration, changes).await {
            Ok(applied) => {
                let took = began.elapsed() - translated;
                self.reporter.served(applied.generation, changes, translated, took);
                let (before, after) = (&known.serving, &known.configuration);
                self.reporter.report_endpoints(before, after, changes);
                self.reporter.report_ending(after, changes);
                let fingerprint = self.fingerprints.follow(before, after, changes);
                self.metrics.applied(applied.generation, fingerprint, took);
                (self.left_out, self.is_due) = (applied.left_out, false);
                known.serving = known.configuration.clone();
                let routes = !changes.servers.is_empty()
                    || !changes.routes.is_empty()
                    || !changes.listeners.is_empty();
                known.routes += u64::from(changes.global || routes);
            }
            Err(rejected) => self.refuse(known, &rejected),
        }
    }

    /// Says why the engine did not take a Configuration: once, however often it is tried again.
    fn refuse(&mut self, known: &mut Known, rejected: &Rejected) {
        let reason: Arc<str> = rejected.reason.as_str().into();
        let is_known = self.known.borrow().refused.as_ref() == Some(&reason);
        match (is_known, known.is_serving()) {
            (true, _) => tracing::debug!(%rejected, "the engine still refuses changes"),
            (false, true) => {
                tracing::error!(%rejected, "the engine refused changes: what it served stays; tried again");
            }
            (false, false) => {
                tracing::error!(%rejected, "the engine refused the configuration: nothing is served yet; tried again");
            }
        }
        known.refused = Some(reason);
        self.metrics.refused();
    }

    /// Follows every change until the feed ends. What the engine refused is tried again by and by: the reason may be
    /// one of the system, which has no thread or no memory to give at the moment. So is what it had no time for: when
    /// that is due it says itself, whatever else changes.
    pub async fn run(&mut self, feed: &mut Feed) -> FeedEnded {
        let mut pause = FIRST_PAUSE;
        let mut daily = tokio::time::interval(DAY);
        // Nobody asks for it while the engine refuses changes: the days that went by then are told once.
        daily.set_missed_tick_behavior(MissedTickBehavior::Delay);
        daily.tick().await;
        loop {
            let changed = feed.snapshots.changed();
            let is_again = self.known.borrow().refused.is_some();
            let came = if is_again {
                timeout(pause, changed).await
            } else {
                pause = FIRST_PAUSE;
                tokio::select! {
                    biased;
                    _ = daily.tick() => {
                        self.reporter.report_all_ending(&self.known.borrow().serving);
                        continue;
                    }
                    () = self.engine.due() => {
                        self.is_due = true;
                        Ok(Ok(()))
                    }
                    came = changed => Ok(came),
                }
            };
            match came {
                Ok(Ok(())) => pause = FIRST_PAUSE,
                Ok(Err(_)) => return FeedEnded,
                Err(_) => pause = (2 * pause).min(LONGEST_PAUSE),
            }
            // What comes meanwhile is taken with the next round.
            while self.follow(feed).await {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Controller;
    use engine::{Applied, Engine, Rejected};
    use model::{Changes, Configuration};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tempfile::TempDir;
    use translate::Options;

    /// Refuses every generation but one.
    struct Picky {
        taken: u64,
        asked: AtomicU64,
    }

    impl Engine for Picky {
        async fn apply(&self, _: &Configuration, _: &Changes) -> Result<Applied, Rejected> {
            let generation = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            let reason = "it is not to its liking".to_owned();
            if generation == self.taken {
                return Ok(Applied { generation, left_out: Vec::new() });
            }
            Err(Rejected { generation, reason })
        }

        async fn drain(self: Arc<Self>, _: Duration) {}
    }

    const CLASS: &str = "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: \
        {controller: k8s.io/ingress-nginx}}";
    const HOST: &str = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: NAME}, spec: \
        {ingressClassName: nginx, rules: [{host: NAME.test, http: {paths: []}}]}}";

    #[tokio::test]
    async fn nothing_is_in_force_that_no_engine_took_and_a_refusal_leaves_what_was() {
        let folder = TempDir::new().expect("a folder");
        let put = |name: &str| {
            let file = folder.path().join(format!("{name}.yaml"));
            std::fs::write(file, HOST.replace("NAME", name)).expect("a file");
        };
        std::fs::write(folder.path().join("class.yaml"), CLASS).expect("a file");
        put("one");
        let engine = Arc::new(Picky { taken: 2, asked: AtomicU64::new(0) });
        let mut controller = Controller::new(engine, Options::default());
        let known = controller.known();
        let mut served = Vec::new();
        for name in ["two", "three", "four"] {
            let mut feed =
                kubernetes::manifests(vec![folder.path().to_owned()]).await.expect("objects");
            controller.follow(&mut feed).await;
            let now = known.borrow().clone();
            let hosts = now.serving.servers.keys().filter(|name| name.as_str() != "_").count();
            served.push((now.is_serving(), now.refused.is_some(), hosts));
            put(name);
        }
        assert_eq!(served, [(false, true, 0), (true, false, 2), (true, true, 2)]);
    }

    /// Takes everything, and has time for it by and by.
    struct Slow(AtomicU64);

    const LATER: Duration = Duration::from_secs(9);

    impl Engine for Slow {
        async fn apply(&self, _: &Configuration, _: &Changes) -> Result<Applied, Rejected> {
            let generation = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(Applied { generation, left_out: Vec::new() })
        }

        async fn due(&self) {
            if self.0.load(Ordering::Relaxed) > 2 {
                std::future::pending::<()>().await;
            }
            drop(tokio::time::timeout(LATER, std::future::pending::<()>()).await);
        }

        async fn drain(self: Arc<Self>, _: Duration) {}
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_engine_had_no_time_for_is_applied_again_though_nothing_changes() {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("class.yaml"), CLASS).expect("a file");
        let mut feed =
            kubernetes::manifests(vec![folder.path().to_owned()]).await.expect("objects");
        let engine = Arc::new(Slow(AtomicU64::new(0)));
        let mut controller = Controller::new(engine.clone(), Options::default());
        let asked = || engine.0.load(Ordering::Relaxed);
        for _ in 0..3 {
            controller.follow(&mut feed).await;
            assert_eq!(asked(), 1, "what changes nothing is no reason before it is due");
        }
        let running = controller.run(&mut feed);
        assert!(tokio::time::timeout(LATER * 3 / 2, running).await.is_err());
        assert_eq!(asked(), 2);
        let running = controller.run(&mut feed);
        assert!(tokio::time::timeout(Duration::from_secs(600), running).await.is_err());
        assert_eq!(asked(), 3, "and then no more");
    }

    /// Takes everything, in portions.
    struct Patient;

    impl Engine for Patient {
        async fn apply(&self, _: &Configuration, _: &Changes) -> Result<Applied, Rejected> {
            Ok(Applied { generation: 1, left_out: Vec::new() })
        }

        fn takes_portions(&self) -> bool {
            true
        }

        async fn drain(self: Arc<Self>, _: Duration) {}
    }

    #[tokio::test]
    async fn a_namespace_that_changes_much_at_once_has_it_served_round_by_round() {
        let folder = TempDir::new().expect("a folder");
        let put = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        let feed = || async {
            kubernetes::manifests(vec![folder.path().to_owned()]).await.expect("objects")
        };
        put("class.yaml", CLASS.to_owned());
        let mut controller = Controller::new(Arc::new(Patient), Options::default());
        let known = controller.known();
        assert!(!controller.follow(&mut feed().await).await, "a start takes everything");
        let long = "x".repeat(10_000);
        for number in 0..3 {
            let name = format!("large{number}");
            let note = format!("name: {name}, namespace: large, annotations: {{note: {long}}}");
            put(&name, HOST.replacen("name: NAME", &note, 1).replace("NAME", &name));
        }
        put("small", HOST.replace("NAME", "small"));
        for entry in std::fs::read_dir(folder.path()).expect("a folder") {
            let path = entry.expect("a file").path();
            std::fs::rename(&path, path.with_extension("yaml")).expect("renamed");
        }
        let mut feed = feed().await;
        let mut rounds = Vec::new();
        let mut more = true;
        while more {
            more = controller.follow(&mut feed).await;
            let known = known.borrow();
            let has = |name: &str| known.serving.servers.keys().any(|one| one.as_str() == name);
            rounds.push((known.serving.servers.len() - 1, has("small.test"), more));
        }
        assert_eq!(rounds, [(2, true, true), (3, true, true), (4, true, false)]);
    }

    #[tokio::test]
    async fn a_change_is_measured_from_when_it_was_seen_though_its_first_portion_changes_nothing() {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("class.yaml"), CLASS).expect("a file");
        let mut feed =
            kubernetes::manifests(vec![folder.path().to_owned()]).await.expect("objects");
        let mut controller = Controller::new(Arc::new(Patient), Options::default());
        controller.follow(&mut feed).await;
        let long = "x".repeat(10_000);
        let of = |version: usize, name: &str, class: &str| {
            let meta = format!(
                "name: {name}, resourceVersion: '{version}', annotations: {{note: {long}}}"
            );
            let text = HOST.replacen("name: NAME", &meta, 1).replace("NAME", name);
            text.replace("nginx", class)
        };
        let all = [of(1, "one", "other"), of(2, "two", "other"), of(3, "three", "nginx")];
        // They are seen together.
        let hidden = folder.path().join("all");
        std::fs::write(&hidden, all.join("\n---\n")).expect("a file");
        std::fs::rename(&hidden, hidden.with_extension("yaml")).expect("renamed");
        feed.snapshots.changed().await.expect("the feed lives");
        let mut held = Vec::new();
        while controller.follow(&mut feed).await {
            held.push(controller.held_since);
        }
        assert!(held.len() == 2 && held[0].is_some() && held[0] == held[1], "{held:?}");
        assert_eq!(controller.held_since, None);
    }

    #[tokio::test]
    async fn endpoints_that_come_and_go_are_no_reloads() {
        let folder = TempDir::new().expect("a folder");
        let put = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        let paths = "paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]";
        let slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: shop-1, labels: \
            {kubernetes.io/service-name: shop}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: \
            [ADDRESS]}]}";
        put("class.yaml", CLASS);
        let service =
            "{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {ports: [{port: 80}]}}";
        put("service.yaml", service);
        let mut controller = Controller::new(Arc::new(Patient), Options::default());
        let (known, metrics) = (controller.known(), controller.metrics());
        let mut seen = Vec::new();
        for (address, host) in [("192.0.2.1", "one"), ("192.0.2.2", "one"), ("192.0.2.2", "two")] {
            put("slice.yaml", &slice.replace("ADDRESS", address));
            put("host.yaml", &HOST.replace("NAME", host).replace("paths: []", paths));
            let mut feed =
                kubernetes::manifests(vec![folder.path().to_owned()]).await.expect("objects");
            controller.follow(&mut feed).await;
            let ready: Vec<String> = known
                .borrow()
                .serving
                .upstreams
                .values()
                .flat_map(|upstream| upstream.endpoints.ready.iter().map(ToString::to_string))
                .collect();
            let progress = metrics.progress();
            seen.push((ready.concat(), progress.reloads, progress.reloaded_at));
        }
        let [first, endpoints, ingress] = &seen[..] else { panic!("three changes") };
        assert_eq!((&*first.0, first.1), ("192.0.2.1:80", 1));
        assert_eq!((&*endpoints.0, endpoints.1, endpoints.2), ("192.0.2.2:80", 1, first.2));
        assert_eq!(ingress.1, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_is_tried_again_though_nothing_changes() {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("class.yaml"), CLASS).expect("a file");
        let mut feed =
            kubernetes::manifests(vec![folder.path().to_owned()]).await.expect("objects");
        let engine = Arc::new(Picky { taken: 4, asked: AtomicU64::new(0) });
        let mut controller = Controller::new(engine.clone(), Options::default());
        let mut known = controller.known();
        let began = tokio::time::Instant::now();
        controller.follow(&mut feed).await;
        // The same words for each try: whoever tells of them tells once.
        assert_eq!(known.borrow().refused.as_deref(), Some("it is not to its liking"));
        tokio::select! {
            _ = controller.run(&mut feed) => panic!("the feed lives"),
            it = known.wait_for(|known| known.is_serving()) => drop(it.expect("the controller lives")),
        }
        assert_eq!(engine.asked.load(Ordering::Relaxed), 4);
        assert_eq!(began.elapsed().as_secs(), 1 + 2 + 4, "each pause is twice the one before");
    }
}
