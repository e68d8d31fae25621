//! What the Service of a Gateway and its EndpointSlices say, as they are written.

use super::write::MANAGER;
use model::Transport;
pub(super) use objects::GATEWAY_CONTROLLER as CONTROLLER;
use objects::gateway::GROUP;
use objects::{MANAGED_BY, ObjectKey, SLICE_MANAGED_BY};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use translate::gateway::{GatewayService, ServiceKind, label_of};

/// Says whose Gateway it is for.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
pub(super) fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn ports(wanted: &GatewayService) -> Value {
    let ports = wanted.ports.iter().map(|((transport, number), target)| {
        let protocol = protocol(*transport);
        json!({
            "name": port_name(*transport, *number),
            "protocol": protocol,
            "port": number,
            "targetPort": target,
        })
    });
    ports.collect()
}

pub(super) fn port_name(transport: Transport, number: u16) -> String {
    format!("{}-{number}", protocol(transport).to_ascii_lowercase())
}

/// The labels of the Service of a Gateway.
pub(super) fn labels(gateway: &ObjectKey, wanted: &GatewayService) -> BTreeMap<String, String> {
    let mut labels = wanted.infrastructure.labels.clone();
    labels.insert(GATEWAY_NAME.to_owned(), label_of(&gateway.name));
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// The Service of a Gateway whose class is that of this controller.
pub(super) fn service(
    key: &ObjectKey,
    gateway: &ObjectKey,
    wanted: &GatewayService,
    controller: &str,
) -> Value {
    let mut annotations = wanted.infrastructure.annotations.clone();
    annotations.insert(CONTROLLER.to_owned(), controller.to_owned());
    let mut spec = json!({"ports": ports(wanted)});
    match wanted.kind {
        ServiceKind::Headless(_) => spec["clusterIP"] = "None".into(),
        ServiceKind::LoadBalancer(asked) => {
            spec["type"] = "LoadBalancer".into();
            if let Some(asked) = asked {
                spec["loadBalancerIP"] = asked.to_string().into();
                spec["ipFamilies"] = json!([family(asked)]);
            }
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": *key.name,
            "namespace": *key.namespace,
            "labels": labels(gateway, wanted),
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": format!("{GROUP}/v1"),
                "kind": "Gateway",
                "name": *gateway.name,
                "uid": *wanted.uid,
                "controller": true,
            }],
        },
        "spec": spec,
    })
}

/// An EndpointSlice of the Service of a Gateway with this name and uid, which it goes with, made by this controller.
pub(super) fn slice(
    name: &str,
    gateway: &ObjectKey,
    (service, uid, controller): (&str, &str, &str),
    wanted: &GatewayService,
    address_type: &str,
    endpoints: Vec<Value>,
) -> Value {
    let ports = wanted.ports.iter().map(|((transport, number), target)| {
        json!({
            "name": port_name(*transport, *number),
            "protocol": protocol(*transport),
            "port": target,
        })
    });
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/service-name": service,
                GATEWAY_NAME: label_of(&gateway.name),
                SLICE_MANAGED_BY: MANAGER,
            },
            "annotations": {CONTROLLER: controller},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Service", "name": service, "uid": uid, "controller": true},
            ],
        },
        "addressType": address_type,
        "ports": ports.collect::<Value>(),
        "endpoints": endpoints,
    })
}
