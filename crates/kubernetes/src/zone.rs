//! Where this Pod runs: the zone of its node (`--enable-topology-aware-routing`).

use crate::pods::{Node, Pod};
use kube::{Api, Client};
use std::time::Duration;

/// The label of a node that names its zone.
const LABEL: &str = "topology.kubernetes.io/zone";
/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The zone of the node that a Pod is on, or why it is not known.
pub async fn zone(client: &Client, namespace: &str, pod: &str) -> Result<String, String> {
    let asked = async {
        let wrong = |error: kube::Error| error.to_string();
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let spec = pods.get(pod).await.map_err(wrong)?.spec;
        let name = spec.node_name.ok_or("the Pod is on no node yet")?;
        let node = Api::<Node>::all(client.clone()).get(&name).await.map_err(wrong)?;
        let zone = node.metadata.labels.and_then(|mut labels| labels.remove(LABEL));
        zone.ok_or_else(|| format!("node {name} has no label {LABEL}"))
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    answer.unwrap_or_else(|_| Err("the API server does not answer".to_owned()))
}
