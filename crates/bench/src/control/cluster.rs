//! Objects from a real API server that runs already: `KUBECONFIG` writes, `FAIRWAY_KUBECONFIG` is Fairway's.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{STAYS, Source, host};
use crate::peers::{ingress, surroundings};

const WRITER: &str = "KUBECONFIG";
const READER: &str = "FAIRWAY_KUBECONFIG";
/// Writes that are under way at once while the cluster is filled.
const AT_ONCE: usize = 8;

/// A cluster that is filled and changed through its API server.
pub(crate) struct Cluster {
    runtime: Runtime,
    client: Client,
    fairway: PathBuf,
    filled: usize,
}

impl Cluster {
    /// Connects, and creates the Service with its endpoint.
    pub(crate) fn connect(upstream: SocketAddr) -> Result<Self> {
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
        let cluster = Self { runtime, client, fairway, filled: 0 };
        for object in surroundings(upstream) {
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

    fn ingresses(&self) -> Api<Ingress> {
        Api::namespaced(self.client.clone(), "bench")
    }

    async fn create(&self, number: usize) -> Result<()> {
        let object = ingress(&host(number), &[STAYS, "/first"]);
        let object: Ingress = serde_json::from_value(object).context("an Ingress")?;
        let created = self.ingresses().create(&PostParams::default(), &object).await;
        created.with_context(|| format!("create the Ingress of {}", host(number)))?;
        Ok(())
    }
}

impl Source for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
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
        let object = ingress(&host(number), &[STAYS, path]);
        let name = object["metadata"]["name"].as_str().context("the name of an Ingress")?;
        let patch = Patch::Merge(json!({"spec": {"rules": object["spec"]["rules"]}}));
        let ingresses = self.ingresses();
        let params = PatchParams::default();
        let written = ingresses.patch(name, &params, &patch);
        self.runtime.block_on(written).with_context(|| format!("change the Ingress {name}"))?;
        Ok(())
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
