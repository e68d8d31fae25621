//! Every object of the program, built once and in order.

use crate::cluster_writes::{self, ClusterWrites, Replica};
use crate::flags::{self, Classes, EngineName, GeoIp, Listeners, Run, Source, Translate, Webhook};
use crate::front::{self, Front};
use crate::metrics::{self, Metrics};
use crate::room::Room;
use crate::{admin, bodies, logs, overload, own_pod, ports, streams, version};
use anyhow::{Context, Result, ensure};
use controller::admission::{self, Reviewer, WebhookOptions};
use controller::{Controller, Known};
use engine::Engine;
use kubernetes::{ClientOptions, ClusterOptions, Feed, Following, Reference, Referrer, Snapshot};
use model::Outside;
use nginx::Requests;
use proxy::{GeoFiles, Listen, Native, OtlpEnvironment};
use runtime::{Block, Ready, Shutdown, log, signal};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stream::Streams;
use tokio::sync::watch;
use translate::Options;

/// How long to wait for a cluster at start before giving up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Client connections at most, in percent of the file descriptors: each may need one more towards its upstream.
const CONNECTION_SHARE: u64 = 45;

/// Serves until a signal comes.
pub(crate) fn run(flags: Run) -> Result<()> {
    if flags.version {
        print!("{}", version::banner());
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
    let control =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    control.context("cannot start the event loop")?.block_on(serve(flags, log))
}

/// Prints what a folder means.
pub(crate) fn translate(flags: &Translate) -> Result<()> {
    let source = Source { manifests: flags.manifests.clone(), ..Source::default() };
    let options = options(&flags.classes);
    let translation = translate::translate(&first_snapshot(source, &options)?, &options);
    for problem in translation.problems.iter() {
        eprintln!("{problem}");
    }
    println!("{}", serde_json::to_string_pretty(&translation.configuration)?);
    Ok(())
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
    cluster_writes::check_flags(&status)?;
    let (ready, shutdown) = (Ready::new(), Shutdown::new());
    signal::watch(shutdown.clone()).context("cannot watch signals")?;
    let following = Following::default();
    let blocked = ready.block_saying(first_configuration(following.clone()));
    let room = Room::find(worker_threads)?;
    let engine = Arc::new(start_front(&listeners, room, geoip, &options(&classes), &metrics)?);
    logs::follow(&engine, control)?;
    match engine.native() {
        Some(native) => overload::follow(native, memory_limit, room.files),
        None => front::tell_without_effect(&listeners, memory_limit, body_files_limit),
    }
    let _unkept = bodies::prepare(&engine, body_files_limit, &ready);
    let metrics = Metrics::new(Front::clone(&engine), &classes.controller_class, following.clone());
    let admin =
        admin::start(&listeners, &profiling, (ready.clone(), &shutdown), &engine, &metrics)?;
    let reserved_ports = ports::reserved(&listeners, &webhook, &profiling, accepted.ports);
    let raw = listeners.engine == EngineName::Nginx;
    let options = Options { reserved_ports, raw, ..of_source(&classes, &source).await };
    let cluster = source.manifests.is_empty().then(|| client(&source));
    let published = status.publish_service.clone().map(Reference::Service);
    let mut feed = tokio::select! {
        feed = feed(source, &options, published, following, false) => feed?,
        () = shutdown.first() => return Ok(()),
    };
    let seen = feed.snapshots.borrow().clone();
    let replica = Replica::find(cluster, &status, &options, &seen).await?;
    let mut controller = Controller::new(engine.clone(), options.clone());
    let streams =
        streams::follow(controller.known(), listeners.bind_address, room, &options.outside);
    let (loops, known) = (controller.metrics(), controller.known());
    metrics.follow(metrics::Controller { loops, known, streams: streams.clone() });
    controller.follow(&mut feed).await;
    let election = replica.as_ref().map(|_| status.election_id.clone());
    let writes = ClusterWrites::start(replica, status, &options, &controller).await?;
    metrics.follow_leader(election, writes.leadership());
    start_webhook(webhook, Reviewer::new(controller.known(), options), &metrics).await?;
    let (http, https) = engine.ports();
    let announce = move |state: &str| tracing::info!(http, https, admin = %admin, "{state}");
    tokio::spawn(until_serving(controller.known(), ready, blocked, announce));
    // Endpoints change while the last requests run, too: changes are followed to the end.
    tokio::select! {
        ended = controller.run(&mut feed) => anyhow::bail!(ended),
        () = end(&engine, &streams, writes, &shutdown, shutdown_grace_period) => Ok(()),
    }
}

/// Keeps the process from being ready until the engine has taken a configuration, and says what it waits for.
async fn until_serving(
    mut known: watch::Receiver<Arc<Known>>,
    ready: Ready,
    blocked: Block,
    announce: impl FnOnce(&str),
) {
    let refused = known.borrow().refused.clone();
    let why = refused.map(|why| ready.block(format!("one that the engine takes: {why}")));
    if known.wait_for(|known| known.is_serving()).await.is_ok() {
        drop(why);
        drop(blocked);
        announce(if ready.is_ready() { "ready" } else { "serving, but not ready" });
    }
}

/// What is waited for: the first configuration, and what of the cluster it still lacks.
fn first_configuration(following: Following) -> impl Fn() -> String + Send + Sync {
    move || match following.missing() {
        Some(missing) => format!("the first configuration ({missing})"),
        None => "the first configuration".to_owned(),
    }
}

/// Waits for the end, and carries it out.
async fn end(
    engine: &Arc<Front>,
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
    let ending = async { tokio::join!(drain(engine, streams, grace), writes.stop()) };
    tokio::select! {
        _ = ending => tracing::info!("stopped"),
        () = shutdown.second() => tracing::warn!("stopped at once, running requests were cut off"),
    }
}

/// The engine that `--engine` names.
fn start_front(
    listeners: &Listeners,
    room: Room,
    geoip: GeoIp,
    options: &Options,
    metrics: &flags::Metrics,
) -> Result<Front> {
    let GeoIp { geoip_directory: directory, maxmind_edition_ids: editions } = geoip;
    if listeners.engine == EngineName::Nginx {
        let settings = metrics.settings()?;
        let requests = settings.map(|all| Requests::new(all, metrics.monitor_max_batch_size));
        let nginx = front::nginx(listeners, room, directory, options, requests)?;
        return Ok(Front::Nginx(Arc::new(nginx)));
    }
    let native = start_engine(listeners, room, options.outside.clone(), metrics)?;
    native.locate_geoip(GeoFiles { directory, editions });
    let (environment, wrong) = OtlpEnvironment::read(|name| std::env::var(name).ok());
    wrong.iter().for_each(|wrong| tracing::warn!("{wrong}"));
    native.locate_collector(environment);
    Ok(Front::Native(Arc::new(native)))
}

fn start_engine(
    listeners: &Listeners,
    room: Room,
    outside: Outside,
    metrics: &flags::Metrics,
) -> Result<Native> {
    let listen = Listen {
        addresses: listeners.bind_address.clone(),
        http_port: listeners.http_port,
        https_port: listeners.https_port,
        health_path: listeners.health_check_path.clone(),
        outside,
        trace_secret: listeners.trace_secret_file.as_deref().map(trace_secret).transpose()?,
    };
    let connections = (room.share(CONNECTION_SHARE) / room.threads).max(1);
    let native = Native::start(&listen, room.threads, connections)?;
    let native = native.with_fixed_threads(room.fixed);
    Ok(match metrics.settings()? {
        Some(settings) => native.with_metrics(settings),
        None => native,
    })
}

/// The secret that asks for traces. One that can be guessed is none.
fn trace_secret(file: &Path) -> Result<Vec<u8>> {
    const LEAST: usize = 16;
    let text = std::fs::read(file)
        .with_context(|| format!("cannot read --trace-secret-file {}", file.display()))?;
    let secret = text.trim_ascii().to_vec();
    anyhow::ensure!(
        secret.len() >= LEAST,
        "--trace-secret-file {} holds {} bytes: put {LEAST} or more random letters there",
        file.display(),
        secret.len()
    );
    Ok(secret)
}

/// Starts the admission webhook, if it has an address.
async fn start_webhook(flags: Webhook, reviewer: Reviewer, metrics: &Metrics) -> Result<()> {
    let Webhook {
        validating_webhook,
        validating_webhook_certificate,
        validating_webhook_key,
        validating_webhook_client_ca,
    } = flags;
    let Some(address) = validating_webhook else { return Ok(()) };
    let named = |file: Option<PathBuf>| file.filter(|file| !file.as_os_str().is_empty());
    let files = named(validating_webhook_certificate).zip(named(validating_webhook_key));
    let (certificate, key) = files.context(
        "--validating-webhook needs --validating-webhook-certificate and --validating-webhook-key",
    )?;
    let client_authorities = named(validating_webhook_client_ca);
    let options = WebhookOptions { address, certificate, key, client_authorities };
    let bound = admission::Bound::new(&options).await?;
    tracing::info!(address = %bound.address(), "Ingresses are reviewed");
    metrics.follow_reviews(reviewer.reviews(), bound.certificate());
    bound.start(reviewer).context("cannot start the webhook's thread")
}

/// The objects as they are now.
pub(crate) fn first_snapshot(source: Source, options: &Options) -> Result<Snapshot> {
    let _logs = log::init(0, log::Format::Text)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = client(&source);
    let is_cluster = source.manifests.is_empty();
    let feed = runtime.block_on(async {
        let read = feed(source, options, None, Following::default(), true).await;
        match (read, is_cluster) {
            // Which cluster it was is not plain where a kubeconfig has several.
            (Err(error), true) => match kubernetes::server(&cluster).await {
                Ok(server) => Err(error.context(format!("the API server is {server}"))),
                Err(_) => Err(error),
            },
            (read, _) => read,
        }
    })?;
    let snapshot = feed.snapshots.borrow().clone();
    Ok(snapshot)
}

/// The objects: from folders, or from a cluster.
async fn feed(
    source: Source,
    options: &Options,
    published: Option<Reference>,
    following: Following,
    once: bool,
) -> Result<Feed> {
    let client = client(&source);
    let Source { manifests, watch_namespace, watch_namespace_selector, sync_period, .. } = source;
    if !manifests.is_empty() {
        let both = client.kubeconfig.is_some() || client.apiserver_host.is_some();
        ensure!(
            !both,
            "objects come from --manifests or from a cluster (--kubeconfig, --apiserver-host), not from both"
        );
        ensure!(
            watch_namespace_selector.is_none_or(|selector| selector.is_empty()),
            "--watch-namespace-selector needs a cluster: with --manifests, name one namespace by --watch-namespace"
        );
        return Ok(kubernetes::manifests(manifests).await?);
    }
    let namespace = watch_namespace.filter(|name| !name.is_empty());
    let namespace_selector = watch_namespace_selector.filter(|selector| !selector.is_empty());
    ensure!(
        namespace.is_none() || namespace_selector.is_none(),
        "--watch-namespace and --watch-namespace-selector exclude each other: give one of them"
    );
    let own = options.clone();
    let cluster = ClusterOptions {
        client: kubernetes::client(&client).await?,
        namespace,
        namespace_selector,
        pinned: pinned(options).into_iter().chain(published).collect(),
        secrets_of: Arc::new(move |referrer| match referrer {
            Referrer::Ingress(ingress) => secrets(translate::references(ingress, &own)),
            Referrer::ConfigMap(_) => Vec::new(),
        }),
        patience: PATIENCE,
        once,
        relist: sync_period,
        following,
    };
    Ok(kubernetes::cluster(cluster).await?)
}

/// What flags say about the meaning of objects, with what depends on where these come from.
async fn of_source(classes: &Classes, source: &Source) -> Options {
    let watch_namespace = source.watch_namespace.clone().filter(|name| !name.is_empty());
    let zone = match classes.enable_topology_aware_routing {
        true => own_zone(source).await,
        false => None,
    };
    Options { watch_namespace, zone, ..options(classes) }
}

/// The zone of this Pod's node; none, and a word about it, where it cannot be found out.
async fn own_zone(source: &Source) -> Option<String> {
    let found = async {
        if !source.manifests.is_empty() {
            return Err("a folder of manifests is in no zone".to_owned());
        }
        let (namespace, pod) = own_pod::find().ok_or_else(|| {
            format!("the environment lacks {} or {}", own_pod::NAMESPACE, own_pod::NAME)
        })?;
        let client =
            kubernetes::client(&client(source)).await.map_err(|error| error.to_string())?;
        kubernetes::zone(&client, &namespace, &pod).await
    };
    let zone = found.await;
    if let Err(reason) = &zone {
        tracing::warn!("--enable-topology-aware-routing has no effect: {reason}");
    }
    zone.ok()
}

/// The way to the API server; an empty flag is one that was not given.
fn client(source: &Source) -> ClientOptions {
    let path = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    ClientOptions {
        kubeconfig: path(&source.kubeconfig),
        apiserver_host: source.apiserver_host.clone().filter(|host| !host.is_empty()),
        certificate_authority: path(&source.certificate_authority),
    }
}

fn secrets(references: Vec<Reference>) -> Vec<kubernetes::objects::ObjectKey> {
    let secret = |reference| match reference {
        Reference::Secret(key) => Some(key),
        Reference::ConfigMap(_) | Reference::Service(_) => None,
    };
    references.into_iter().filter_map(secret).collect()
}

/// The objects that flags name.
fn pinned(options: &Options) -> Vec<Reference> {
    let config_map = options.config_map.clone().map(Reference::ConfigMap);
    let certificate = options.default_ssl_certificate.clone().map(Reference::Secret);
    let backend = options.default_backend_service.clone().map(Reference::Service);
    let streams = options.tcp_services.iter().chain(&options.udp_services);
    let streams = streams.cloned().map(Reference::ConfigMap);
    [config_map, certificate, backend].into_iter().flatten().chain(streams).collect()
}

pub(crate) fn options(classes: &Classes) -> Options {
    let Classes {
        ingress_class,
        controller_class,
        ingress_class_by_name,
        watch_ingress_without_class,
        disable_catch_all,
        deep_inspect,
        enable_annotation_validation,
        disable_svc_external_name,
        enable_topology_aware_routing: _,
        annotations_prefix,
        configmap,
        default_ssl_certificate,
        default_backend_service,
        tcp_services_configmap,
        udp_services_configmap,
        enable_ssl_passthrough,
        allow_target_networks,
        namespace_budget,
    } = classes.clone();
    Options {
        ingress_class,
        controller_class,
        ingress_class_by_name,
        watch_ingress_without_class,
        disable_catch_all,
        deep_inspect,
        validate_annotations: enable_annotation_validation,
        disable_external_names: disable_svc_external_name,
        annotations_prefix,
        config_map: configmap,
        default_ssl_certificate,
        default_backend_service,
        tcp_services: tcp_services_configmap,
        udp_services: udp_services_configmap,
        reserved_ports: BTreeSet::new(),
        passthrough: enable_ssl_passthrough,
        namespace_budget,
        raw: false,
        outside: Outside::and(allow_target_networks),
        watch_namespace: None,
        zone: None,
    }
}

/// After the grace period, in which clients move elsewhere: no new connections, and the rest ends politely.
async fn drain(engine: &Arc<Front>, streams: &Streams, grace: Duration) {
    engine.leave();
    tokio::time::sleep(grace).await;
    let deadline = engine.configuration().global.shutdown_timeout;
    tokio::join!(engine.clone().drain(deadline), streams.drain(deadline));
}
