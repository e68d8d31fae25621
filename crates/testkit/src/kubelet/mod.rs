//! A small kubelet: one Node whose Pods are processes in network namespaces of their own.
//!
//! It binds pending Pods to its Node, gives each an address on a bridge, starts the processes that stand for
//! its images,
//! reports conditions and container statuses, probes readiness, restarts what ends, and follows deletion with its grace
//! period. Of volumes it makes Secrets and ConfigMaps; the others are ignored. What else it cannot do makes a Pod fail
//! with a message that says so.

mod container;
mod image;
mod logs;
mod network;
mod node;
mod pod;
mod probe;
mod status;
mod volumes;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::image::{Image, Images};
pub use self::network::{GATEWAY, Network};

/// Name of the one Node.
pub const NODE: &str = "node";

/// What all Pods of the Node share.
struct Host {
    client: Client,
    network: Network,
    images: Images,
    logs: PathBuf,
}

impl Host {
    /// Writes a line into the kubelet's own log, which a failing test shows.
    fn note(&self, line: &str) {
        let file = File::options().create(true).append(true).open(self.logs.join("kubelet.log"));
        // A note that cannot be written must not end a Pod.
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
}

/// A running kubelet; its Pods end when it is dropped.
pub struct Kubelet {
    logs: PathBuf,
    running: JoinSet<()>,
}

impl Kubelet {
    /// Registers the Node and starts to run its Pods; their output goes to files in `logs`.
    pub async fn start(
        client: Client,
        network: Network,
        images: Images,
        logs: &Path,
    ) -> Result<Self> {
        std::fs::create_dir_all(logs).with_context(|| format!("create {}", logs.display()))?;
        node::register(&client).await?;
        let logs = logs.to_path_buf();
        let host = Arc::new(Host { client, network, images, logs: logs.clone() });
        let mut running = JoinSet::new();
        running.spawn(run(host));
        running.spawn(logs::serve(logs::listener().await?, logs.clone()));
        Ok(Self { logs, running })
    }

    /// What the container of a Pod has written so far.
    pub fn log(&self, namespace: &str, pod: &str, container: &str) -> Result<String> {
        let path = logs::log_file(&self.logs, namespace, pod, container);
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    }

    /// Ends every Pod's processes at once, without telling the API server.
    pub async fn stop(mut self) {
        self.running.shutdown().await;
    }
}

/// Follows the Pods of the cluster, one task for each.
async fn run(host: Arc<Host>) {
    let pods: Api<Pod> = Api::all(host.client.clone());
    let mut events = pin!(watcher(pods, watcher::Config::default()).default_backoff());
    let mut running = Running { host, pods: HashMap::new(), tasks: JoinSet::new() };
    while let Some(event) = events.next().await {
        // An error is the API server's absence; the watcher asks again.
        if let Ok(event) = event {
            running.follow(event);
        }
    }
}

/// The Pods that have a task, by uid; a task ends when its sender is dropped.
struct Running {
    host: Arc<Host>,
    pods: HashMap<String, Followed>,
    tasks: JoinSet<()>,
}

struct Followed {
    latest: watch::Sender<Pod>,
    listed: bool,
}

impl Running {
    fn follow(&mut self, event: Event<Pod>) {
        while self.tasks.try_join_next().is_some() {}
        match event {
            Event::Apply(pod) | Event::InitApply(pod) => self.seen(pod),
            Event::Delete(pod) => {
                self.pods.remove(&pod.uid().unwrap_or_default());
            }
            Event::Init => self.pods.values_mut().for_each(|pod| pod.listed = false),
            Event::InitDone => self.pods.retain(|_, pod| pod.listed),
        }
    }

    fn seen(&mut self, pod: Pod) {
        let uid = pod.uid().unwrap_or_default();
        if let Some(known) = self.pods.get_mut(&uid) {
            known.listed = true;
            known.latest.send_replace(pod);
            return;
        }
        let (latest, seen) = watch::channel(pod);
        self.pods.insert(uid, Followed { latest, listed: true });
        self.tasks.spawn(pod::run(Arc::clone(&self.host), seen));
    }
}
