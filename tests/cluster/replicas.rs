//! Several Fairways side by side: their Pods, their Lease, and what they have written.

use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::cluster::{Cluster, eventually};

use crate::fairway::PATIENCE;

/// The Lease that flags name unless told otherwise.
const LEASE: &str = "ingress-controller-leader";

/// A real Pod for a replica to be in: what it has of its own is its name, and the labels that differ between two
/// versions of a chart.
pub(crate) async fn replica(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.fairway_kubeconfig().await?;
    let yaml = format!(
        "
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: fairway
  labels: {{app: fairway, pod-template-hash: h-{name}, helm.sh/chart: c-{name}, app.kubernetes.io/version: v-{name}}}
spec:
  automountServiceAccountToken: false
  containers:
  - name: main
    image: fairway.test/pod
    ports: [{{name: web, containerPort: 8080}}]
    readinessProbe: {{httpGet: {{path: /healthz, port: 8080}}, periodSeconds: 1}}
"
    );
    eventually(format!("Pod {name} to be taken"), PATIENCE, async || cluster.apply(&yaml).await)
        .await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "fairway");
    eventually(format!("Pod {name} to be ready"), PATIENCE, async || {
        let status = pods.get(name).await?.status.context("no status")?;
        let mut conditions = status.conditions.iter().flatten();
        ensure!(conditions.any(|known| known.type_ == "Ready" && known.status == "True"));
        anyhow::Ok(())
    })
    .await
}

/// A Pod at the address of the process that stands for it, which is ready. Its node is nobody's, so that nobody starts
/// it.
pub(crate) async fn pod_of_a_process(cluster: &Cluster, name: &str, address: IpAddr) -> Result<()> {
    cluster.fairway_kubeconfig().await?;
    let yaml = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: fairway, labels: {{app: fairway}}}}
spec:
  nodeName: elsewhere
  automountServiceAccountToken: false
  containers: [{{name: main, image: fairway.test/none}}]
"
    );
    eventually(format!("Pod {name} to be taken"), PATIENCE, async || cluster.apply(&yaml).await)
        .await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "fairway");
    let status = json!({"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// The Lease as it is.
pub(crate) async fn lease(cluster: &Cluster) -> Result<LeaseSpec> {
    leases(cluster).get(LEASE).await?.spec.context("a Lease without spec")
}

/// Waits until this Pod holds the Lease.
pub(crate) async fn leads(cluster: &Cluster, pod: &str) -> Result<()> {
    eventually(format!("{pod} to lead"), PATIENCE, async || {
        let holder = lease(cluster).await?.holder_identity.unwrap_or_default();
        ensure!(holder == pod, "the holder is {holder:?}");
        Ok(())
    })
    .await
}

/// Puts somebody else into the Lease, for so many seconds from now on.
pub(crate) async fn take_lease(cluster: &Cluster, holder: &str, seconds: u32) -> Result<()> {
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(
        k8s_openapi::jiff::Timestamp::now(),
    );
    let spec = json!({
        "holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now,
    });
    let patch = Patch::Merge(json!({"spec": spec}));
    leases(cluster).patch(LEASE, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn leases(cluster: &Cluster) -> Api<Lease> {
    Api::namespaced(cluster.client(), "fairway")
}

/// The addresses in the status of an Ingress of `demo`, each as it is written there.
pub(crate) fn told(ingress: &Ingress) -> Vec<String> {
    let status = ingress.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let items = status.and_then(|status| status.ingress.as_ref()).into_iter().flatten();
    items.filter_map(|item| item.hostname.clone().or_else(|| item.ip.clone())).collect()
}

pub(crate) fn ingresses(cluster: &Cluster) -> Api<Ingress> {
    Api::namespaced(cluster.client(), "demo")
}

/// Waits until an Ingress tells these addresses.
pub(crate) async fn tells(cluster: &Cluster, name: &str, wanted: &[&str]) -> Result<()> {
    let ingresses = ingresses(cluster);
    eventually(format!("Ingress {name} to tell {wanted:?}"), PATIENCE, async || {
        let told = told(&ingresses.get(name).await?);
        ensure!(told == wanted, "it tells {told:?}");
        Ok(())
    })
    .await
}

/// Writes addresses into an Ingress as another controller would.
pub(crate) async fn write_as(
    cluster: &Cluster,
    rival: &str,
    name: &str,
    ips: &[&str],
) -> Result<()> {
    let items: Vec<_> = ips.iter().map(|ip| json!({"ip": ip})).collect();
    let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": items}}}));
    let params = PatchParams { field_manager: Some(rival.to_owned()), ..Default::default() };
    ingresses(cluster).patch_status(name, &params, &patch).await?;
    Ok(())
}
