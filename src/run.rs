//! Every object of the program, built once and in order.

use crate::cluster_writes::{self, ClusterWrites, Replica};
use crate::flags::{Classes, EngineName, Listeners, Run, Source, Translate, Webhook};
use crate::http_engine::{self, HttpEngine};
use crate::overload::Overload;
use crate::room::Room;
use crate::say;
use crate::say::note;
use crate::sources::{client, feed, of_source, options, sees_all};
use crate::{
    admin, bodies, engines, explain, inherited, logs, overload, own_pod, ports, reading, shadow,
    streams, version,
};
use anyhow::{Context, Result};
use console::Console;
use controller::admission::{self, Reviewer, WebhookOptions};
use controller::{Controller, Known};
use engine::Engine;
use exposition::{Identity, Metrics};
use kubernetes::{ClientOptions, Following};
use model::{Problem, Severity};
use objects::{Malformed, Reference};
use runtime::{Block, Ready, Shutdown, log, signal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use stream::Streams;
use system::threads;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};
use translate::Options;

/// By how much control is nicer than traffic, where that is served in this process.
const GIVES_WAY: i32 = 5;
/// How long tasks may take to end once all is over.
const LAST_TASKS: Duration = Duration::from_millis(500);
/// Time between two lines about a drain that goes on.
const DRAINING_LINES: Duration = Duration::from_secs(10);
const NO_THREAD: &str =
    "the system gives no thread: look at the limit of processes (pids) of the container";

/// Serves until a signal comes.
pub(crate) fn run(flags: Run) -> Result<()> {
    if flags.version {
        say::text(version::banner())?;
        return Ok(());
    }
    ports::check(&flags.listeners, &flags.webhook, &flags.profiling)?;
    let log = log::init(flags.v, flags.log_format)?;
    let mut low_ports = runtime::ports::take_up_low_ports();
    if flags.listeners.engine == EngineName::Nginx {
        low_ports = low_ports.and_then(|()| runtime::ports::hand_on_low_ports());
    }
    if let Err(error) = low_ports {
        tracing::warn!(%error, "cannot take up NET_BIND_SERVICE; ports below 1024 may be refused");
    }
    threads::ask_for(1).context(NO_THREAD)?;
    let control =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let control = control.context("cannot start the event loop")?;
    let outcome = control.block_on(async {
        threads::spare().await.context(NO_THREAD)?;
        tokio::spawn(threads::keep_spare());
        serve(flags, log).await
    });
    // After a second signal, somebody may still wait for the last requests; nobody waits for that.
    control.shutdown_timeout(LAST_TASKS);
    outcome
}

/// With what the engine asks of translation, and the Pod.
fn of_listeners(listeners: &Listeners, options: Options) -> Options {
    let http_ports = [listeners.http_port, listeners.https_port];
    let (raw, log_folder) = (listeners.engine == EngineName::Nginx, inherited::has_log_folder());
    Options { raw, log_folder, http_ports, ..options }
}

/// Prints what a folder means, and says by the exit code whether all of it is served as it is written.
pub(crate) fn translate(flags: &Translate) -> Result<ExitCode> {
    let manifests = [&flags.manifests[..], &flags.paths[..]].concat();
    let source = Source { manifests, ..Source::default() };
    let mut options = options(&flags.classes);
    let snapshot = reading::once(source, &options)?;
    reading::settle_config_map(&snapshot, &mut options)?;
    let translation = translate::translate_telling_all(&snapshot, &options);
    for problem in translation.problems.iter() {
        note!("{problem}");
    }
    say::json(&serde_json::to_string_pretty(&translation.configuration)?)?;
    let is_error = |problem: &Problem| problem.severity == Severity::Error;
    Ok(match snapshot.malformed.is_empty() {
        // As `check` has it.
        false => ExitCode::FAILURE,
        true if translation.problems.iter().any(is_error) => ExitCode::from(2),
        true => ExitCode::SUCCESS,
    })
}

async fn serve(flags: Run, control: log::Control) -> Result<()> {
    let Run {
        source,
        classes,
        listeners,
        geoip,
        webhook,
        status,
        metrics,
        shutdown_grace_period,
        worker_threads,
        profiling,
        version: _,
        memory_limit,
        body_files_limit,
        v: _,
        log_format: _,
        accepted,
        words,
    } = flags;
    accepted.tell(&words);
    inherited::tell(listeners.engine);
    cluster_writes::check_flags(&status, &classes, &source)?;
    let (ready, shutdown) = (Ready::new(), Shutdown::new());
    follow_signals(&shutdown)?;
    let following = Following::default();
    let blocked = ready.block_saying(first_configuration(following.clone()));
    let room = Room::find(worker_threads)?;
    let engine = Arc::new(engines::start(&listeners, room, geoip, &options(&classes), &metrics)?);
    logs::follow(&engine, control)?;
    let overload = follow_pressure(&engine, &listeners, (memory_limit, body_files_limit), room);
    let _unkept = bodies::prepare(&engine, body_files_limit, &ready);
    let metrics = Metrics::new(HttpEngine::clone(&engine), identity(&classes), following.clone());
    let console = Console::new(HttpEngine::clone(&engine), who(&classes));
    let health = (ready.clone(), &shutdown);
    let admin = admin::start(&listeners, &profiling, health, &engine, &metrics, &console)?;
    let reserved = ports::reserved((&listeners, &webhook, &profiling), &classes, accepted.ports)?;
    let process_ports = ports::of_process(&listeners, &webhook, &profiling);
    let webhook = bind_webhook(webhook, &listeners, &engine).await?;
    let of_source = of_listeners(&listeners, of_source(&classes, &source).await);
    let sockets = Some(room.sockets(&listeners));
    let options = Options { reserved_ports: reserved, process_ports, sockets, ..of_source };
    let cluster = cluster_to_write_to(&source, &listeners);
    let published = status.publish_service.clone().map(Reference::Service);
    let feed = feed(source, &options, published, following, false);
    let Some(mut feed) = before(shutdown.first(), feed).await.transpose()? else { return Ok(()) };
    let seen = feed.snapshots.borrow().clone();
    tell_config_map(&options, &seen);
    let found = Replica::find((cluster, admin.port()), &status, &options, &seen);
    let Some(replica) = before(shutdown.first(), found).await.transpose()? else { return Ok(()) };
    let mut controller = Controller::new(engine.clone(), options.clone());
    let streams = streams::follow(controller.known(), &listeners, room, engine.resolver());
    overload.press(&streams);
    tell_console(&console, &options, &streams);
    show(&controller, &streams, &console, &metrics);
    let served = serve_first(&mut controller, &mut feed, &engine);
    let Some(()) = before(shutdown.second(), served).await else { return Ok(()) };
    let election = replica.as_ref().map(|_| status.election_id.clone());
    let writes = ClusterWrites::start(replica, status, &options, &controller);
    let writes = before(shutdown.first(), writes).await.transpose()?.unwrap_or_default();
    tell_leader(&writes, election, &console, &metrics);
    start_webhook(webhook, Reviewer::new(controller.known(), options), &metrics)?;
    let (http, https) = engine.ports();
    let announce = move |state: &str| tracing::info!(http, https, admin = %admin, "{state}");
    tokio::spawn(until_serving(controller.known(), ready, blocked, announce));
    tokio::select! {
        ended = controller.run(&mut feed) => anyhow::bail!(ended),
        () = end(&engine, &streams, writes, &shutdown, shutdown_grace_period) => Ok(()),
    }
}

/// What comes of a part of the start; none, where the end comes before: an API server may keep it waiting for minutes.
/// Once something is served, it ends as ever.
async fn before<T>(end: impl Future<Output = ()>, part: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = part => Some(done),
        () = end => None,
    }
}

/// The way to the cluster, and whether all of it is seen; none where nothing is to be written.
fn cluster_to_write_to(source: &Source, listeners: &Listeners) -> Option<(ClientOptions, bool)> {
    let writes = source.manifests.is_empty() && !listeners.shadow;
    writes.then(|| (client(source), sees_all(source)))
}

/// Serves what there is at start; then control gives way to traffic.
async fn serve_first(
    controller: &mut Controller<HttpEngine>,
    feed: &mut kubernetes::Feed,
    engine: &HttpEngine,
) {
    controller.follow(feed).await;
    if engine.native().is_some() && controller.known().borrow().is_serving() {
        give_way().await;
    }
}

/// From now on control leaves traffic most of a core that they share. All threads of traffic have started: a thread has
/// the priority of the one that starts it. Where the system refuses it they are equals, as before.
async fn give_way() {
    let lower = || {
        if let Err(error) = rustix::process::nice(GIVES_WAY) {
            tracing::debug!(%error, "control does not give way to traffic");
        }
    };
    lower();
    // The other thread of the event loop, which runs whatever is spawned.
    let other = tokio::spawn(async move { lower() });
    let _ = other.await;
}

/// Follows what memory and descriptors are left, where the engine is ours; otherwise says which flags have no effect.
fn follow_pressure(
    engine: &HttpEngine,
    listeners: &Listeners,
    (memory, body_files): (Option<u64>, Option<u64>),
    room: Room,
) -> Overload {
    let overload = if let Some(native) = engine.native() {
        overload::follow(native, memory, room.files)
    } else {
        http_engine::tell_without_effect(listeners, memory, body_files);
        Overload::unwatched()
    };
    room.tell(overload.bound);
    overload
}

/// The end comes by signals; those that reload other servers are answered with a line.
fn follow_signals(shutdown: &Shutdown) -> Result<()> {
    let ending = signal::watch(shutdown.clone());
    ending.and_then(|_| signal::ignore_reloads()).context("cannot watch signals")?;
    Ok(())
}

/// A word about a ConfigMap that is named and is not there; once it is there, it counts. And about one that is there
/// and that nobody names: `check` and its like would take it.
fn tell_config_map(options: &Options, seen: &objects::Snapshot) {
    match &options.config_map {
        Some(key) if seen.config_maps.contains_key(key) => {}
        // It is there, or may be, cannot be read, and closes everything: that is a problem, and told as one.
        Some(key)
            if Malformed::is_among(&seen.malformed, objects::Kind::ConfigMap, key)
                || Malformed::may_be_any(&seen.malformed) => {}
        Some(objects::ObjectKey { namespace, name }) => tracing::warn!(
            "there is no ConfigMap {namespace}/{name}, which --configmap names: defaults count until there is"
        ),
        None => {
            if let Some(objects::ObjectKey { namespace, name }) = reading::usual_config_map(seen) {
                tracing::warn!(
                    "ConfigMap {namespace}/{name} is not read, since no --configmap names it: defaults count; add \
                     --configmap={namespace}/{name} if it is the controller's"
                );
            }
        }
    }
}

/// Lets both pages know whether this replica leads the election, if there is one, and who the others are.
fn tell_leader(
    writes: &ClusterWrites,
    election: Option<String>,
    console: &Console,
    metrics: &Metrics,
) {
    if let Some(ask) = writes.asking_replicas() {
        console.ask_replicas_with(ask);
    }
    let leads = writes.leadership();
    if election.is_some() {
        let leads = leads.clone();
        console.follow_leader(move || leads.is_leader());
    }
    metrics.follow_leader(election, leads);
}

/// Who speaks on the page of metrics: this Pod, as its environment says.
fn identity(classes: &Classes) -> Identity {
    Identity {
        class: classes.controller_class.clone(),
        namespace: own_pod::variable(own_pod::NAMESPACE).unwrap_or_else(|| "default".to_owned()),
        pod: own_pod::variable(own_pod::NAME).unwrap_or_default(),
        commit: version::COMMIT,
        repository: version::REPOSITORY,
    }
}

/// What the console asks.
fn tell_console(console: &Console, options: &Options, streams: &Arc<Streams>) {
    console.explain_with(explain::OfKnown::new(options.clone()));
    console.count_sessions_with(streams::sessions(streams));
}

/// The page and the metrics show what is in force from now on.
fn show(
    controller: &Controller<HttpEngine>,
    streams: &Arc<Streams>,
    console: &Arc<Console>,
    metrics: &Metrics,
) {
    let (loops, known) = (controller.metrics(), controller.known());
    console.follow(loops.clone(), known.clone());
    metrics.follow(exposition::Controller { loops, known, streams: streams.clone() });
}

/// The same for people.
fn who(classes: &Classes) -> console::Identity {
    console::Identity {
        version: version::short(),
        class: classes.controller_class.clone(),
        pod: own_pod::variable(own_pod::NAME).unwrap_or_default(),
    }
}

/// Keeps the process from being ready until the engine has taken a configuration that does not close every location,
/// and says what it waits for: where a mistake in the ConfigMap does, a roll-out stops, and the Pods from before go on
/// with what they know of it. As in ingress-nginx, nothing later makes the process unready for that.
async fn until_serving(
    mut known: watch::Receiver<Arc<Known>>,
    ready: Ready,
    blocked: Block,
    announce: impl FnOnce(&str),
) {
    let why = ready.block_saying(what_it_lacks(known.clone()));
    drop(blocked);
    let is_open = |known: &Arc<Known>| known.is_serving() && known.closed.is_none();
    if let Some(closed) = &known.borrow().closed {
        tracing::error!("not ready, since every location answers 503: {closed}");
    }
    if known.wait_for(is_open).await.is_ok() {
        drop(why);
        announce(if ready.is_ready() { "ready" } else { "serving, but not ready" });
    }
}

/// Why no configuration is in force with which the process may be ready.
fn what_it_lacks(known: watch::Receiver<Arc<Known>>) -> impl Fn() -> String + Send + Sync {
    move || {
        let known = known.borrow();
        match (&known.refused, &known.closed) {
            (Some(why), _) => format!("a configuration that the engine takes: {why}"),
            (None, Some(why)) => {
                format!(
                    "a ConfigMap that does not close everything, since every location answers 503: {why}"
                )
            }
            (None, None) => "the first configuration".to_owned(),
        }
    }
}

/// What is waited for: the first configuration, and what of the cluster it still lacks.
fn first_configuration(following: Following) -> impl Fn() -> String + Send + Sync {
    move || match following.missing() {
        Some(missing) => format!("the first configuration ({missing})"),
        None => "the first configuration".to_owned(),
    }
}

/// Waits for the end, and carries it out. Endpoints change while the last requests run: changes are followed to it.
async fn end(
    engine: &Arc<HttpEngine>,
    streams: &Streams,
    writes: ClusterWrites,
    shutdown: &Shutdown,
    grace: Duration,
) {
    shutdown.first().await;
    let leads = writes.leadership().is_leader();
    tracing::info!(
        leads,
        "stopping: running requests may finish, connections end with their next answer"
    );
    shadow::tell_all(engine);
    let ending = async { tokio::join!(drain(engine, streams, grace), writes.stop()) };
    tokio::select! {
        _ = ending => tracing::info!("stopped"),
        () = shutdown.second() => tracing::warn!("stopped at once, running requests were cut off"),
    }
}

/// Takes the port of the admission webhook, if it has an address: before any configuration is in force, so that nothing
/// that a tenant asks for has it first.
async fn bind_webhook(
    flags: Webhook,
    listeners: &Listeners,
    engine: &Arc<HttpEngine>,
) -> Result<Option<admission::Bound>> {
    let flags = if listeners.shadow { shadow::follow(engine, flags) } else { flags };
    let Webhook {
        validating_webhook,
        validating_webhook_certificate,
        validating_webhook_key,
        validating_webhook_client_ca,
    } = flags;
    let named = |file: Option<PathBuf>| file.filter(|file| !file.as_os_str().is_empty());
    let Some(address) = validating_webhook else {
        if named(validating_webhook_client_ca).is_some() {
            tracing::warn!(
                "--validating-webhook-client-ca has no effect: no webhook is served; give it an address with \
                 --validating-webhook, or leave the file out"
            );
        }
        return Ok(None);
    };
    let files = named(validating_webhook_certificate).zip(named(validating_webhook_key));
    let (certificate, key) = files.context(
        "--validating-webhook needs --validating-webhook-certificate and --validating-webhook-key",
    )?;
    let client_authorities = named(validating_webhook_client_ca);
    let options = WebhookOptions { address, certificate, key, client_authorities };
    Ok(Some(admission::Bound::new(&options).await?))
}

/// Starts the admission webhook, if there is one.
fn start_webhook(
    bound: Option<admission::Bound>,
    reviewer: Reviewer,
    metrics: &Metrics,
) -> Result<()> {
    let Some(bound) = bound else { return Ok(()) };
    tracing::info!(address = %bound.address(), "Ingresses are reviewed");
    metrics.follow_reviews(reviewer.reviews(), bound.certificate());
    bound.start(reviewer).context("cannot start the webhook's thread")
}

/// After the grace period, in which clients move elsewhere: no new connections, and the rest ends politely.
async fn drain(engine: &Arc<HttpEngine>, streams: &Streams, grace: Duration) {
    engine.leave();
    #[expect(clippy::disallowed_methods, reason = "the grace period of shutdown")]
    tokio::time::sleep(grace).await;
    let deadline = engine.configuration().global.shutdown_timeout;
    tracing::info!(
        ?deadline,
        "no new connections are taken; what still runs has the time of worker-shutdown-timeout"
    );
    let drained = async { tokio::join!(engine.clone().drain(deadline), streams.drain(deadline)) };
    tokio::select! {
        _ = drained => {}
        () = tell_of_draining(deadline) => {}
    }
}

/// Says now and then that the process has not gone yet, and how long it may stay. Never ends.
async fn tell_of_draining(deadline: Duration) {
    let began = Instant::now();
    let mut ticks = interval_at(began + DRAINING_LINES, DRAINING_LINES);
    loop {
        ticks.tick().await;
        let left = deadline.saturating_sub(began.elapsed()).as_secs();
        tracing::info!(
            left,
            "requests or connections still run; seconds left of worker-shutdown-timeout"
        );
    }
}
