//! Objects from a real API server that runs already: `KUBECONFIG` writes, `FAIRWAY_KUBECONFIG` is Fairway's.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::stream::unfold;
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{ROUTES, STAYS, Source, host};
use crate::peers::{gateway, ingress, route, surroundings};

const WRITER: &str = "KUBECONFIG";
const READER: &str = "FAIRWAY_KUBECONFIG";
/// Writes that are under way at once while the cluster is filled.
const AT_ONCE: usize = 8;
/// The same in a storm: as many as a thousand a second need.
const AT_ONCE_IN_A_STORM: usize = 64;

/// Which objects lead hosts to their Service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objects {
    Ingresses,
    /// HTTPRoutes of one Gateway.
    Routes,
}

impl Objects {
    fn of(self, host: &str, paths: &[&str]) -> Value {
        match self {
            Self::Ingresses => ingress(host, paths),
            Self::Routes => route(host, paths),
        }
    }
}

/// A cluster that is filled and changed through its API server.
pub(crate) struct Cluster {
    runtime: Runtime,
    client: Client,
    fairway: PathBuf,
    objects: Objects,
    filled: usize,
}

impl Cluster {
    /// Connects, and creates the Service with its endpoint.
    pub(crate) fn connect(upstream: SocketAddr, objects: Objects) -> Result<Self> {
        let path = |name: &str| {
            let remedy = format!(
                "{name} is not set: run this inside a test cluster, as `make bench-cluster` does"
            );
            std::env::var_os(name).map(PathBuf::from).context(remedy)
        };
        let (writer, fairway) = (path(WRITER)?, path(READER)?);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start a runtime")?;
        let client = runtime.block_on(async {
            let config = kube::config::Kubeconfig::read_from(&writer)
                .with_context(|| format!("read {}", writer.display()))?;
            let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
            Client::try_from(config).context("make a client")
        })?;
        let cluster = Self { runtime, client, fairway, objects, filled: 0 };
        let front = (objects == Objects::Routes).then(gateway);
        for object in surroundings(upstream).into_iter().chain(front.into_iter().flatten()) {
            cluster.runtime.block_on(cluster.apply(&object))?;
        }
        Ok(cluster)
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let version = text("/apiVersion").context("an object without apiVersion")?;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = text("/kind").context("an object without kind")?;
        let name = text("/metadata/name").context("an object without name")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        api.patch(name, &PatchParams::apply("fairway-bench").force(), &Patch::Apply(object))
            .await
            .with_context(|| format!("apply {kind} {name}"))?;
        Ok(())
    }

    fn api(&self) -> Api<DynamicObject> {
        let (group, kind) = match self.objects {
            Objects::Ingresses => ("networking.k8s.io", "Ingress"),
            Objects::Routes => ("gateway.networking.k8s.io", "HTTPRoute"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.client.clone(), "bench", &resource)
    }

    async fn create(&self, number: usize) -> Result<()> {
        let object = self.objects.of(&host(number), &[STAYS, "/first"]);
        let object: DynamicObject = serde_json::from_value(object).context("an object")?;
        let created = self.api().create(&PostParams::default(), &object).await;
        created.with_context(|| format!("create the object of {}", host(number)))?;
        Ok(())
    }

    async fn write(&self, number: usize, path: &str) -> Result<()> {
        let object = self.objects.of(&host(number), &[STAYS, path]);
        let name = object["metadata"]["name"].as_str().context("the name of an object")?;
        let patch = Patch::Merge(json!({"spec": {"rules": object["spec"]["rules"]}}));
        let written = self.api().patch(name, &PatchParams::default(), &patch).await;
        written.with_context(|| format!("change the object {name}"))?;
        Ok(())
    }
}

impl Source for Cluster {
    fn name(&self) -> &'static str {
        match self.objects {
            Objects::Ingresses => "cluster",
            Objects::Routes => ROUTES,
        }
    }

    fn flags(&self) -> Vec<String> {
        vec!["--kubeconfig".to_owned(), self.fairway.display().to_string()]
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        let creations = (self.filled..count).map(|number| self.create(number));
        let all = futures_util::stream::iter(creations).buffer_unordered(AT_ONCE);
        self.runtime.block_on(all.try_collect::<()>())?;
        self.filled = self.filled.max(count);
        Ok(())
    }

    fn change(&mut self, number: usize, path: &str) -> Result<()> {
        self.runtime.block_on(self.write(number, path))
    }

    fn storm(&mut self, changes: &[(usize, String)], rate: f64) -> Result<bool> {
        let this = &*self;
        let all = async {
            let ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
            let due = unfold((ticks, changes.iter()), |(mut ticks, mut rest)| async move {
                let (number, path) = rest.next()?;
                ticks.tick().await;
                Some((this.write(*number, path), (ticks, rest)))
            });
            due.buffer_unordered(AT_ONCE_IN_A_STORM).try_collect::<()>().await
        };
        self.runtime.block_on(all)?;
        Ok(true)
    }
}

/// An address of this machine that an EndpointSlice may carry: the API server refuses loopback.
pub(crate) fn endpoint_address() -> Result<IpAddr> {
    let output = Command::new("ip")
        .args(["-4", "-o", "address", "show", "scope", "global"])
        .output()
        .context("start `ip`: install Debian's package iproute2")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let address = text.split_whitespace().find_map(|word| {
        let (address, _) = word.split_once('/')?;
        address.parse().ok()
    });
    address.context("no address but loopback's: an EndpointSlice needs another one")
}
