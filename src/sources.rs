//! Where objects come from, and what flags say about their meaning.

use crate::flags::{Classes, Source};
use crate::reading::STDIN;
use crate::{own_pod, ports};
use anyhow::{Result, ensure};
use kubernetes::{ClientOptions, ClusterOptions, Feed, Following, Referrer};
use model::Outside;
use objects::{Issuer, Reference, Snapshot};
use runtime::log;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use translate::Options;

/// How long to wait for a cluster at start before giving up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The objects as they are now.
pub(crate) fn first_snapshot(source: Source, options: &Options) -> Result<Snapshot> {
    let _logs = log::init_quiet()?;
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

/// The Issuers of a cluster.
pub(crate) fn issuers(source: &Source) -> Result<Vec<Issuer>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = kubernetes::client(&client(source)).await?;
        let namespace = source.watch_namespace.as_deref().filter(|name| !name.is_empty());
        kubernetes::issuers(&client, namespace).await.map_err(anyhow::Error::msg)
    })
}

/// The objects: from folders, or from a cluster; `once` if nobody follows them.
pub(crate) async fn feed(
    source: Source,
    options: &Options,
    published: Option<Reference>,
    following: Following,
    once: bool,
) -> Result<Feed> {
    let client = client(&source);
    let Source { manifests, watch_namespace, watch_namespace_selector, sync_period, .. } = source;
    if !manifests.is_empty() {
        let both = client.kubeconfig.is_some()
            || client.context.is_some()
            || client.apiserver_host.is_some();
        ensure!(
            !both,
            "objects come from --manifests or from a cluster (--kubeconfig, --context, --apiserver-host), not from both"
        );
        ensure!(
            watch_namespace_selector.is_none_or(|selector| selector.is_empty()),
            "--watch-namespace-selector needs a cluster: with --manifests, name one namespace by --watch-namespace"
        );
        ensure!(
            once || !manifests.iter().any(|path| path.as_os_str() == STDIN),
            "a pipe (-) is read once, and run follows what changes: give --manifests a folder or a file"
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
        server: kubernetes::server(&client).await?,
        namespace,
        namespace_selector,
        pinned: pinned(options).into_iter().chain(published).collect(),
        guards: options.config_map.clone(),
        secrets_of: Arc::new(move |referrer| match referrer {
            Referrer::Ingress(ingress) => secrets(translate::references(ingress, &own)),
            Referrer::ConfigMap(_) => Vec::new(),
            Referrer::Gateway(gateway) => translate::gateway::secrets_of(gateway),
            Referrer::ListenerSet(set) => translate::gateway::secrets_of_set(set),
        }),
        patience: PATIENCE,
        once,
        watch: kubernetes::WATCH,
        relist: sync_period,
        following,
    };
    Ok(kubernetes::cluster(cluster).await?)
}

/// The only namespace that is watched, if one is.
pub(crate) fn watched(source: &Source) -> Option<&str> {
    source.watch_namespace.as_deref().filter(|name| !name.is_empty())
}

/// Whether the objects of all namespaces are seen.
pub(crate) fn sees_all(source: &Source) -> bool {
    let is_unset = |flag: &Option<String>| flag.as_ref().is_none_or(String::is_empty);
    is_unset(&source.watch_namespace) && is_unset(&source.watch_namespace_selector)
}

/// What flags say about the meaning of objects, with what depends on where these come from.
pub(crate) async fn of_source(classes: &Classes, source: &Source) -> Options {
    let watch_namespace = watched(source).map(str::to_owned);
    let zone = if classes.enable_topology_aware_routing { own_zone(source).await } else { None };
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
pub(crate) fn client(source: &Source) -> ClientOptions {
    let path = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    ClientOptions {
        kubeconfig: path(&source.kubeconfig),
        context: source.context.clone().filter(|context| !context.is_empty()),
        apiserver_host: source.apiserver_host.clone().filter(|host| !host.is_empty()),
        certificate_authority: path(&source.certificate_authority),
        ..ClientOptions::default()
    }
}

fn secrets(references: Vec<Reference>) -> Vec<objects::ObjectKey> {
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

/// What flags say about the meaning of objects, wherever these come from.
pub(crate) fn options(classes: &Classes) -> Options {
    let Classes {
        ingress_class,
        controller_class,
        gateway_controller_name,
        gateway_addresses,
        gateway_services,
        gateway_target_ports,
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
        gateway_controller: gateway_controller_name,
        gateway_addresses,
        gateway_services,
        gateway_target_ports: gateway_target_ports.0,
        sockets: None,
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
        reserved_ports: ports::usual(),
        process_ports: ports::usual_of_process(),
        http_ports: ports::USUAL_HTTP,
        passthrough: enable_ssl_passthrough,
        namespace_budget,
        has_databases: false,
        log_folder: false,
        raw: false,
        outside: Outside::and(allow_target_networks),
        watch_namespace: None,
        zone: None,
    }
}
