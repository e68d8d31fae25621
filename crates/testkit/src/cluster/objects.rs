//! Applying, reading and deleting objects of a test cluster, written as YAML.

use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

use super::Cluster;

/// Whose changes these are, as the API server writes it down.
pub(super) const FIELD_MANAGER: &str = "fairway-tests";

impl Cluster {
    /// Applies all documents of a YAML (or JSON) text, in their order.
    pub async fn apply(&self, yaml: &str) -> Result<()> {
        for document in documents(yaml)? {
            self.apply_value(&document).await?;
        }
        Ok(())
    }

    /// Applies one object.
    pub async fn apply_value(&self, object: &Value) -> Result<()> {
        let (api, name) = self.place(object)?;
        let as_owner = PatchParams::apply(FIELD_MANAGER).force();
        api.patch(&name, &as_owner, &Patch::Apply(object))
            .await
            .with_context(|| format!("apply {} {name}", object["kind"]))?;
        Ok(())
    }

    /// Creates many objects that do not exist yet, several at a time.
    pub async fn create_all(&self, objects: impl IntoIterator<Item = Value>) -> Result<()> {
        let creations = objects.into_iter().map(async |object| {
            let (api, name) = self.place(&object)?;
            let object = serde_json::from_value(object).context("read an object")?;
            api.create(&PostParams::default(), &object)
                .await
                .with_context(|| format!("create {name}"))?;
            anyhow::Ok(())
        });
        futures_util::stream::iter(creations).buffer_unordered(8).try_collect().await
    }

    /// Deletes all objects of a YAML text; the API server's acknowledgement is waited for, the end of a Pod is not.
    pub async fn delete(&self, yaml: &str) -> Result<()> {
        for document in documents(yaml)? {
            let (api, name) = self.place(&document)?;
            api.delete(&name, &DeleteParams::default())
                .await
                .with_context(|| format!("delete {} {name}", document["kind"]))?;
        }
        Ok(())
    }

    /// Where an object belongs, and its name there.
    fn place(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let version = text("/apiVersion").context("an object without apiVersion")?;
        let kind = text("/kind").context("an object without kind")?;
        let name = text("/metadata/name").context("an object without metadata.name")?;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(self.client(), namespace, &resource),
            None => Api::all_with(self.client(), &resource),
        };
        Ok((api, name.to_owned()))
    }
}

/// The documents of a YAML text; empty ones do not count.
fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).context("read YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}
