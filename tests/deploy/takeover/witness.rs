//! Who looks on: an Ingress that once told an address must never tell none, and a session must stay with its Pod.

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use testkit::cluster::{Cluster, Connection};
use tokio::task::{JoinHandle, JoinSet};

/// The addresses that an Ingress tells.
pub(super) fn told(ingress: &Ingress) -> Vec<String> {
    let balancer = ingress.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let items = balancer.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
    items.filter_map(|item| item.hostname.clone().or_else(|| item.ip.clone())).collect()
}

/// Notes each change of what Ingresses of `demo` tell.
pub(super) struct Addresses {
    /// By Ingress, what it told, one after the other.
    seen: Arc<Mutex<BTreeMap<String, Vec<Vec<String>>>>>,
    watching: JoinHandle<()>,
}

impl Addresses {
    pub(super) async fn watch(cluster: &Cluster) -> Self {
        let ingresses: Api<Ingress> = Api::namespaced(cluster.client(), "demo");
        let seen: Arc<Mutex<BTreeMap<String, Vec<Vec<String>>>>> = Arc::default();
        let noted = seen.clone();
        let mut events = Box::pin(watcher(ingresses, watcher::Config::default()).default_backoff());
        let watching = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Ok(watcher::Event::InitApply(ingress) | watcher::Event::Apply(ingress)) = event
                else {
                    continue;
                };
                let mut all = noted.lock().unwrap_or_else(PoisonError::into_inner);
                let one = all.entry(ingress.metadata.name.clone().unwrap_or_default()).or_default();
                let now = told(&ingress);
                if one.last() != Some(&now) {
                    one.push(now);
                }
            }
        });
        Self { seen, watching }
    }

    /// By Ingress, what it has told so far.
    pub(super) fn seen(&self) -> BTreeMap<String, Vec<Vec<String>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether each told this address all the time.
    pub(super) fn always(self, address: &str) -> Result<()> {
        self.watching.abort();
        let seen = self.seen();
        ensure!(!seen.is_empty(), "there was no Ingress to see");
        for (name, told) in seen {
            ensure!(told == [[address]], "Ingress {name} told {told:?}");
        }
        Ok(())
    }
}

/// Clients with session cookies that go on asking.
pub(super) struct Sessions {
    clients: JoinSet<Result<()>>,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self { clients: JoinSet::new(), stop: Arc::default(), asked: Arc::default() }
    }

    /// Adds sessions that whoever answers now begins.
    pub(super) async fn begin(&mut self, address: SocketAddr, count: usize) -> Result<()> {
        for _ in 0..count {
            let answer = Connection::open(address).await?.get("sticky.test", "/").await?;
            let cookie = answer.header("set-cookie").context("no session was begun")?;
            let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
            let pod = answer.json()?["pod"].to_string();
            self.clients.spawn(stay(address, cookie, pod, self.stop.clone(), self.asked.clone()));
        }
        Ok(())
    }

    /// Ends them; each has to have stayed with its Pod.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let clients = self.clients.len();
        while let Some(ended) = self.clients.join_next().await {
            ended??;
        }
        let asked = self.asked.load(Ordering::Relaxed);
        ensure!(asked > clients, "there was no traffic");
        eprintln!("{clients} sessions stayed with their Pods in {asked} requests");
        Ok(())
    }
}

async fn stay(
    address: SocketAddr,
    cookie: String,
    pod: String,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
) -> Result<()> {
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let line = format!("Cookie: {cookie}");
        let ask = async {
            let mut connection = Connection::open(address).await?;
            connection.get_with("sticky.test", "/", &[&line, "Connection: close"]).await
        };
        let answer = tokio::time::timeout(Duration::from_secs(10), ask).await;
        let answer = answer.context("no answer in 10 s")??;
        ensure!(answer.status == 200, "session {cookie}: status {}", answer.status);
        if let Some(fresh) = answer.header("set-cookie") {
            bail!("session {cookie} was replaced: {fresh}");
        }
        let now = answer.json()?["pod"].to_string();
        ensure!(now == pod, "session {cookie} went from {pod} to {now}");
        asked.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
