//! The objects of a case, with what stands for fixtures filled in.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    fixtures::{NAMESPACE, Places},
    yaml,
};

/// The name of a Secret that is written `@name`.
const ROTATING: &str = "rotating";

/// What `@pod` and `@secret` stand for.
#[derive(Clone, Debug, Default)]
pub struct References {
    places: Places,
    secrets: BTreeMap<String, Value>,
}

impl References {
    /// References to the fixtures at these places, and to the Secrets among these objects.
    #[must_use]
    pub fn new(places: Places, objects: &[Value]) -> Self {
        let secrets = objects.iter().filter(|object| object["kind"] == "Secret");
        let named = secrets.filter_map(|secret| {
            Some((secret["metadata"]["name"].as_str()?.to_owned(), secret.clone()))
        });
        Self { places, secrets: named.collect() }
    }

    /// The objects of a file; none if there is no such file.
    ///
    /// # Errors
    /// When it is not YAML.
    pub fn read(&self, path: &Path) -> Result<Vec<Value>> {
        if !path.exists() {
            return Ok(Vec::new());
        }
        Ok(yaml::file(path)?.into_iter().filter_map(|document| self.resolve(document)).collect())
    }

    fn resolve(&self, document: Value) -> Option<Value> {
        if let Some(name) = document.as_str().and_then(|text| text.strip_prefix('@')) {
            let mut secret =
                self.secrets.get(name).cloned().unwrap_or_else(|| json!({"kind": "Secret"}));
            secret["metadata"] = json!({"name": ROTATING, "namespace": NAMESPACE});
            return Some(secret);
        }
        let mut object = document;
        if object["kind"] == "EndpointSlice" {
            for endpoint in object["endpoints"].as_array_mut().into_iter().flatten() {
                for address in endpoint["addresses"].as_array_mut().into_iter().flatten() {
                    let pod = address.as_str().and_then(|text| text.strip_prefix('@'));
                    if let Some(place) = pod.and_then(|pod| self.places.get(pod)) {
                        *address = json!(place.address);
                    }
                }
            }
        }
        object.as_object().is_some_and(|object| !object.is_empty()).then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_secrets_are_filled_in() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let references = References::new(Places::recorded(), &[secret]);
        let resolve = |text: &str| references.resolve(yaml::documents(text).unwrap().remove(0));
        assert_eq!(
            resolve("'@a'").unwrap(),
            json!({"kind": "Secret", "metadata": {"name": "rotating", "namespace": "demo"}, "data": {"k": "v"}})
        );
        let slice =
            resolve("{kind: EndpointSlice, endpoints: [{addresses: ['@echo-1', 10.0.0.1]}]}")
                .unwrap();
        assert_eq!(slice["endpoints"][0]["addresses"], json!(["10.77.0.11", "10.0.0.1"]));
        assert_eq!(resolve("{}"), None);
    }
}
