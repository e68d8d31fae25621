//! Prints what a Snapshot holds, and again after every change: `follow` (a cluster, by KUBECONFIG) or `follow DIR...`.

use kubernetes::{ClientOptions, ClusterOptions, Feed, Following, Referrer};
use objects::{Ingress, ObjectKey, Snapshot};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = "info,kube_client=off,kube_runtime=off";
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let begin = Instant::now();
    let mut feed =
        if paths.is_empty() { from_cluster().await? } else { kubernetes::manifests(paths).await? };
    loop {
        print(&feed.snapshots.borrow_and_update().clone(), begin.elapsed());
        feed.snapshots.changed().await?;
    }
}

/// The cluster of KUBECONFIG; NAMESPACE and SELECTOR restrict it.
async fn from_cluster() -> Result<Feed, Box<dyn Error>> {
    let client = kubernetes::client(&ClientOptions::default()).await?;
    let options = ClusterOptions {
        client,
        namespace: std::env::var("NAMESPACE").ok(),
        namespace_selector: std::env::var("SELECTOR").ok(),
        pinned: Vec::new(),
        guards: None,
        secrets_of: Arc::new(|referrer| match referrer {
            Referrer::Ingress(ingress) => certificates(ingress),
            Referrer::ConfigMap(_) | Referrer::Gateway(_) | Referrer::ListenerSet(_) => Vec::new(),
        }),
        patience: Duration::from_secs(20),
        once: false,
        server: String::new(),
        watch: kubernetes::WATCH,
        relist: Duration::from_secs(1800),
        following: Following::default(),
    };
    Ok(kubernetes::cluster(options).await?)
}

fn certificates(ingress: &Ingress) -> Vec<ObjectKey> {
    let namespace = &ingress.meta.key.namespace;
    let names = ingress.tls.iter().filter_map(|tls| tls.secret.as_deref());
    names.map(|name| ObjectKey::new(namespace.clone(), name)).collect()
}

fn print(snapshot: &Snapshot, at: Duration) {
    let with_data = snapshot.secrets.values().filter(|secret| secret.data.is_some()).count();
    println!(
        "{:>8.3} s: {} ingresses, {:?} classes, {} services, {} services with slices, {} secrets \
         ({with_data} with data), {} config maps, {} namespaces, {} MiB",
        at.as_secs_f64(),
        snapshot.ingresses.len(),
        snapshot.classes.as_ref().map(|classes| classes.len()),
        snapshot.services.len(),
        snapshot.slices.len(),
        snapshot.secrets.len(),
        snapshot.config_maps.len(),
        snapshot.namespaces.len(),
        resident_mebibytes(),
    );
    for malformed in snapshot.malformed.values() {
        let kind = malformed.kind.map_or("File", objects::Kind::name);
        println!("    {kind} {}: {}", malformed.key.name, malformed.message);
    }
}

fn resident_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default();
    kibibytes / 1024
}
