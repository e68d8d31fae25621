//! Kubernetes objects in a line or two, with defaults for all that a test does not care about.
//!
//! Names are `namespace/name`, or a name in `demo`; every builder turns into a JSON value with `build`.

mod ingress;

use openssl::base64;
use serde_json::{Map, Value, json};

pub use self::ingress::{Ingress, ingress};
use crate::fixtures::NAMESPACE;

/// A Service without ports.
#[must_use]
pub fn service(name: &str) -> Service {
    Service(object("v1", "Service", name))
}

/// An EndpointSlice of a Service, without endpoints.
#[must_use]
pub fn endpoint_slice(service: &str) -> EndpointSlice {
    let mut slice = object("discovery.k8s.io/v1", "EndpointSlice", service);
    let name = slice["metadata"]["name"].clone();
    slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": name});
    slice["addressType"] = json!("IPv4");
    EndpointSlice(slice)
}

/// An opaque Secret with these entries.
#[must_use]
pub fn secret(name: &str, entries: &[(&str, &str)]) -> Value {
    let mut secret = object("v1", "Secret", name);
    secret["type"] = json!("Opaque");
    let encoded = |(key, text): &(&str, &str)| {
        ((*key).to_owned(), json!(base64::encode_block(text.as_bytes())))
    };
    secret["data"] = entries.iter().map(encoded).collect::<Map<String, Value>>().into();
    secret
}

/// A ConfigMap with these entries.
#[must_use]
pub fn config_map(name: &str, entries: &[(&str, &str)]) -> Value {
    let mut map = object("v1", "ConfigMap", name);
    let plain = |(key, text): &(&str, &str)| ((*key).to_owned(), json!(text));
    map["data"] = entries.iter().map(plain).collect::<Map<String, Value>>().into();
    map
}

/// An IngressClass for the controller with this name.
#[must_use]
pub fn ingress_class(name: &str, controller: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": name},
        "spec": {"controller": controller},
    })
}

/// A Service on its way.
#[derive(Clone, Debug)]
pub struct Service(Value);

impl Service {
    /// One more port; a target is a number or a name.
    #[must_use]
    pub fn port(mut self, name: &str, number: u16, target: impl Into<Value>) -> Self {
        let mut port = json!({"port": number, "targetPort": target.into(), "protocol": "TCP"});
        if !name.is_empty() {
            port["name"] = json!(name);
        }
        push(&mut self.0["spec"]["ports"], port);
        self
    }

    /// A name outside the cluster in place of pods.
    #[must_use]
    pub fn external(mut self, name: &str) -> Self {
        self.0["spec"]["type"] = json!("ExternalName");
        self.0["spec"]["externalName"] = json!(name);
        self
    }

    /// The object.
    #[must_use]
    pub fn build(self) -> Value {
        self.0
    }
}

/// An EndpointSlice on its way.
#[derive(Clone, Debug)]
pub struct EndpointSlice(Value);

impl EndpointSlice {
    /// One more port of every endpoint.
    #[must_use]
    pub fn port(mut self, name: &str, number: u16) -> Self {
        push(&mut self.0["ports"], json!({"name": name, "port": number, "protocol": "TCP"}));
        self
    }

    /// One more endpoint, ready.
    #[must_use]
    pub fn ready(self, address: &str) -> Self {
        self.endpoint(address, &json!({"ready": true, "serving": true, "terminating": false}))
    }

    /// One more endpoint, under these conditions.
    #[must_use]
    pub fn endpoint(mut self, address: &str, conditions: &Value) -> Self {
        push(&mut self.0["endpoints"], json!({"addresses": [address], "conditions": conditions}));
        self
    }

    /// The object.
    #[must_use]
    pub fn build(self) -> Value {
        self.0
    }
}

/// An object with nothing but its name.
fn object(api_version: &str, kind: &str, name: &str) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or((NAMESPACE, name));
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

/// Adds to a list that may not be there yet.
fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_slices_have_what_was_asked_for() {
        let service = service("web").port("http", 80, 8080).port("", 81, "named").build();
        assert_eq!(service["metadata"], json!({"name": "web", "namespace": "demo"}));
        assert_eq!(
            service["spec"]["ports"][1],
            json!({"port": 81, "targetPort": "named", "protocol": "TCP"})
        );
        let slice = endpoint_slice("other/web").port("http", 8080).ready("10.0.0.1").build();
        assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");
        assert_eq!(slice["metadata"]["namespace"], "other");
        assert_eq!(slice["endpoints"][0]["conditions"]["ready"], true);
    }

    #[test]
    fn secrets_are_encoded_and_config_maps_are_not() {
        assert_eq!(secret("s", &[("k", "v")])["data"], json!({"k": "dg=="}));
        assert_eq!(config_map("c", &[("k", "v")])["data"], json!({"k": "v"}));
    }
}
