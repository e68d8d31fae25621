//! The Node object, and the binding of Pods to it.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::network::GATEWAY;
use super::{NODE, logs};

/// Creates the Node: the EndpointSlice controller leaves out Pods of a Node that does not exist.
pub(super) async fn register(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
    });
    let as_owner = PatchParams::apply("kubelet").force();
    nodes.patch(NODE, &as_owner, &Patch::Apply(node)).await.context("create the Node")?;
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": GATEWAY}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": logs::PORT}},
        "capacity": {"pods": "1000"},
        "allocatable": {"pods": "1000"},
    }});
    let patch = Patch::Merge(status);
    nodes.patch_status(NODE, &PatchParams::default(), &patch).await.context("report the Node")?;
    Ok(())
}

/// Binds a Pod to the Node, as a scheduler with no choice would.
pub(super) async fn bind(client: &Client, pod: &Pod) -> kube::Result<()> {
    let namespace = pod.namespace().unwrap_or_default();
    let name = pod.name_any();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": pod.uid()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    });
    let parameters = PostParams::default();
    let _: serde_json::Value =
        pods.create_subresource("binding", &name, &parameters, &binding).await?;
    Ok(())
}
