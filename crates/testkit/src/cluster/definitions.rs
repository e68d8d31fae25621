//! Definitions of kinds, above all those of the Gateway API.

use std::path::Path;

use anyhow::{Context, Result};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::Value;

use super::objects::FIELD_MANAGER;
use super::plane::PATIENCE;
use super::{Cluster, Programs, eventually};

impl Cluster {
    /// The definitions of the Gateway API's standard channel, as [`super::test_with_gateway_api`] begins with them.
    pub fn gateway_api(&self) -> Result<Vec<Value>> {
        gateway_api(&Programs::ready()?)
    }

    /// Gives the API server these definitions, and waits until objects of them can be made.
    pub async fn define(&self, definitions: &[Value]) -> Result<()> {
        define(&self.client, definitions).await
    }
}

/// The CustomResourceDefinitions of a folder of YAML.
pub fn definitions(folder: &Path) -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for entry in std::fs::read_dir(folder).context("read the definitions")? {
        let text = std::fs::read_to_string(entry?.path()).context("read a definition")?;
        let values: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        let is_definition = |value: &Value| value["kind"] == "CustomResourceDefinition";
        definitions.extend(values.into_iter().filter(is_definition));
    }
    Ok(definitions)
}

/// The definitions of the Gateway API's standard channel, without what they explain to readers: that is most of them,
/// and an API server stores, copies and compares it again and again.
pub(super) fn gateway_api(programs: &Programs) -> Result<Vec<Value>> {
    let mut all = definitions(&programs.gateway_api)?;
    all.iter_mut().for_each(without_descriptions);
    Ok(all)
}

/// Gives an API server definitions, and waits until objects of them can be made.
pub(super) async fn define(client: &Client, definitions: &[Value]) -> Result<()> {
    let kind = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let as_owner = PatchParams::apply(FIELD_MANAGER).force();
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().context("a definition has a name")?;
        let applied = all.patch(name, &as_owner, &Patch::Apply(definition)).await;
        applied.with_context(|| format!("apply the definition {name}"))?;
    }
    for kind in definitions.iter().flat_map(defined) {
        let kind = kind.context("a definition names its kind")?;
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        eventually(format!("the definition of {}", kind.kind), PATIENCE, async || {
            objects.list(&ListParams::default()).await
        })
        .await?;
    }
    Ok(())
}

/// What a definition defines, in each version that is served.
fn defined(definition: &Value) -> impl Iterator<Item = Option<ApiResource>> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["served"] == true).map(move |version| {
        let (group, version) = (text(&spec["group"])?, text(&version["name"])?);
        let api_version = format!("{group}/{version}");
        let (kind, plural) = (text(&spec["names"]["kind"])?, text(&spec["names"]["plural"])?);
        Some(ApiResource { group, version, api_version, kind, plural })
    })
}

/// Takes the descriptions out of a schema; a field of that name is an object, and stays.
fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(without_descriptions);
        }
        Value::Array(all) => all.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}
