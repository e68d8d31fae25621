//! The life of one Pod: bound, started, followed, ended.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::container::{Container, Observed};
use super::network::Sandbox;
use super::volumes::Folders;
use super::{Host, NODE, node, status};

/// Pause before something is told to the API server again, while it is away.
const PAUSE: Duration = Duration::from_millis(200);

/// A Pod with everything that runs for it; dropping it ends its processes.
struct Life {
    host: Arc<Host>,
    latest: watch::Receiver<Pod>,
    sandbox: Arc<Sandbox>,
    observed: watch::Receiver<Vec<Observed>>,
    stop: watch::Sender<Option<Duration>>,
    containers: JoinSet<()>,
}

/// Runs a Pod of this Node, or one that has no Node yet, to its end.
pub(super) async fn run(host: Arc<Host>, mut latest: watch::Receiver<Pod>) {
    let bound = bound(&host, &mut latest).await;
    if !bound {
        return;
    }
    match Life::begin(Arc::clone(&host), latest.clone()).await {
        Ok(mut life) => life.follow().await,
        Err(error) => {
            let pod = latest.borrow().clone();
            report(&host, &pod, status::failed(&format!("{error:#}"))).await;
            let left = latest.wait_for(is_leaving).await.is_ok();
            if left {
                remove(&host, &pod).await;
            }
        }
    }
}

/// Waits until the Pod is bound to this Node; false when it never will be.
async fn bound(host: &Host, latest: &mut watch::Receiver<Pod>) -> bool {
    loop {
        let pod = latest.borrow_and_update().clone();
        let spec = pod.spec.clone().unwrap_or_default();
        let gated = spec.scheduling_gates.is_some_and(|gates| !gates.is_empty());
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        match spec.node_name.as_deref() {
            Some(NODE) if matches!(ended, Some("Succeeded" | "Failed")) => return false,
            Some(NODE) => return true,
            Some(_) => return false,
            None if gated || is_leaving(&pod) => {}
            None => match node::bind(&host.client, &pod).await {
                Ok(()) => {}
                // Somebody was faster, or the Pod is gone: the next event says which.
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {}
                Err(error) => {
                    host.note(&format!("bind {}: {error}", pod.name_any()));
                    #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        }
        if latest.changed().await.is_err() {
            return false;
        }
    }
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

impl Life {
    /// Gives the Pod its network and starts its containers.
    async fn begin(host: Arc<Host>, latest: watch::Receiver<Pod>) -> Result<Self> {
        let pod = latest.borrow().clone();
        let spec = pod.spec.as_ref().context("a Pod without spec")?;
        let without = spec.init_containers.as_ref().is_none_or(Vec::is_empty);
        ensure!(without, "spec.initContainers: this Node runs none");
        let sandbox = Arc::new(host.network.sandbox().await?);
        let count = spec.containers.len();
        let folders = Folders::make(&host, &pod).await?;
        let containers =
            (0..count).map(|index| Container::of(&host, &pod, index, &sandbox, &folders));
        let containers: Vec<Container> = containers.collect::<Result<_>>()?;
        let (tell, observed) = watch::channel(vec![Observed::creating(); count]);
        let (stop, stopped) = watch::channel(None);
        let mut running = JoinSet::new();
        for container in containers {
            running.spawn(container.run(tell.clone(), stopped.clone()));
        }
        Ok(Self { host, latest, sandbox, observed, stop, containers: running })
    }

    /// Tells the API server what happens, until the Pod is deleted or its sender is gone.
    async fn follow(&mut self) {
        loop {
            let pod = self.latest.borrow_and_update().clone();
            if is_leaving(&pod) {
                return self.leave(&pod).await;
            }
            self.report(&pod, false).await;
            if !self.wait_for_news(&pod).await {
                return;
            }
        }
    }

    /// Waits until something happened that the API server should know; false when the Pod is gone by force.
    async fn wait_for_news(&mut self, known: &Pod) -> bool {
        loop {
            tokio::select! {
                Ok(()) = self.observed.changed() => return true,
                changed = self.latest.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    let pod = self.latest.borrow_and_update().clone();
                    // Our own reports come back as events; only others' changes are news.
                    if is_leaving(&pod) || gates(&pod) != gates(known) {
                        self.latest.mark_changed();
                        return true;
                    }
                }
            }
        }
    }

    /// Unready at once; then SIGTERM after the pre-stop pause, SIGKILL at the end of the grace period; then gone.
    async fn leave(&mut self, pod: &Pod) {
        self.report(pod, true).await;
        let pause = pre_stop(pod);
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30).unsigned_abs();
        let rest = Duration::from_secs(grace).saturating_sub(pause);
        let stop = self.stop.clone();
        let ended = async {
            #[expect(
                clippy::disallowed_methods,
                reason = "the pause that a preStop hook asks for"
            )]
            tokio::time::sleep(pause).await;
            // An error means that every container has ended already.
            let _ = stop.send(Some(rest));
            while self.containers.join_next().await.is_some() {}
        };
        let mut latest = self.latest.clone();
        let forced = async { while latest.changed().await.is_ok() {} };
        tokio::select! {
            () = ended => {}
            () = forced => return,
        }
        self.report(pod, true).await;
        remove(&self.host, pod).await;
    }

    async fn report(&mut self, pod: &Pod, leaving: bool) {
        let observed = self.observed.borrow_and_update().clone();
        let status = status::status(pod, &self.sandbox.addresses(), &observed, leaving);
        report(&self.host, pod, status).await;
    }
}

/// The conditions at the API server, of which a readiness gate may be one.
fn gates(pod: &Pod) -> Vec<(&str, &str)> {
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let conditions: Vec<_> = conditions.map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    let standing = |name: &str| conditions.iter().copied().find(|(kind, _)| *kind == name);
    gates.filter_map(|gate| standing(&gate.condition_type)).collect()
}

/// The longest `lifecycle.preStop.sleep` of the Pod's containers.
fn pre_stop(pod: &Pod) -> Duration {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let seconds = containers.filter_map(|container| {
        let hook = container.lifecycle.as_ref()?.pre_stop.as_ref()?;
        Some(hook.sleep.as_ref()?.seconds.unsigned_abs())
    });
    Duration::from_secs(seconds.max().unwrap_or(0))
}

/// Writes the status; asks again while the API server is away, gives up when the Pod is gone.
async fn report(host: &Host, pod: &Pod, status: Value) {
    let pods: Api<Pod> = Api::namespaced(host.client.clone(), &pod.namespace().unwrap_or_default());
    let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid()}, "status": status}));
    loop {
        match pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await {
            Ok(_) => return,
            Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => return,
            Err(error) => {
                host.note(&format!("report {}: {error}", pod.name_any()));
                #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Removes the object of a Pod whose processes have ended.
async fn remove(host: &Host, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(host.client.clone(), &pod.namespace().unwrap_or_default());
    let only = Preconditions { uid: pod.uid(), ..Preconditions::default() };
    let now = DeleteParams::default().grace_period(0).preconditions(only);
    loop {
        match pods.delete(&pod.name_any(), &now).await {
            Ok(_) => return,
            Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => return,
            Err(error) => {
                host.note(&format!("remove {}: {error}", pod.name_any()));
                #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
