//! Pods and nodes, as far as anybody here asks after them: whole ones took two megabytes of the program to read.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;
use std::borrow::Cow;

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Its name, labels and the like.
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: PodSpec,
    /// What became of it.
    pub status: PodStatus,
}

/// What was asked for, of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node that it is on.
    pub node_name: Option<String>,
}

/// What became of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// Its address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// When it was started.
    pub start_time: Option<Time>,
    /// What is known of it, such as whether it is ready.
    pub conditions: Vec<Condition>,
}

/// Something that is known of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// What, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// A node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its name, labels and the like.
    pub metadata: ObjectMeta,
    /// What is known of it.
    pub status: NodeStatus,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Where it is reached.
    pub addresses: Vec<NodeAddress>,
}

/// Where a node is reached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `ExternalIP`, `InternalIP` or `Hostname`, for example.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address.
    pub address: String,
}

/// Says that a type of ours is one of Kubernetes.
macro_rules! is {
    ($ours:ty, $whole:ty) => {
        impl Resource for $ours {
            type DynamicType = ();
            type Scope = <$whole as Resource>::Scope;

            fn kind((): &()) -> Cow<'_, str> {
                <$whole>::kind(&())
            }

            fn group((): &()) -> Cow<'_, str> {
                <$whole>::group(&())
            }

            fn version((): &()) -> Cow<'_, str> {
                <$whole>::version(&())
            }

            fn plural((): &()) -> Cow<'_, str> {
                <$whole>::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

is!(Pod, core::Pod);
is!(Node, core::Node);

#[cfg(test)]
mod tests {
    use super::{Node, Pod};
    use serde_json::json;

    #[test]
    fn what_is_asked_for_is_read_and_the_rest_is_not() {
        let pod: Pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z",
                       "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null}]},
        }))
        .expect("a Pod");
        assert_eq!(pod.metadata.name.as_deref(), Some("a"));
        assert_eq!(pod.spec.node_name.as_deref(), Some("n"));
        assert_eq!(pod.status.pod_ip.as_deref(), Some("10.0.0.1"));
        assert_eq!(pod.status.start_time.map(|time| time.0.as_second()), Some(1_767_225_600));
        assert_eq!(pod.status.conditions[0].kind, "Ready");
        let new: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {"containers": []}}))
            .expect("a Pod that was just made");
        assert!(new.status.phase.is_none());
        let node: Node = serde_json::from_value(json!({
            "metadata": {"labels": {"a": "b"}},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "images": []},
        }))
        .expect("a node");
        assert_eq!(node.status.addresses[0].address, "10.0.0.1");
    }
}
