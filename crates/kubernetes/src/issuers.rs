//! The Issuers of cert-manager, read once for `check`: nothing is served by them, so that nobody follows them.

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client};
use objects::Issuer;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the API server may take for all of them.
const PATIENCE: Duration = Duration::from_secs(10);
/// Objects of one page, and pages at most.
const PAGE: u32 = 500;
const PAGES: usize = 20;

/// Issuers of all namespaces or one, and ClusterIssuers; none in a cluster that has no cert-manager. Else why they are
/// not known.
pub async fn issuers(client: &Client, namespace: Option<&str>) -> Result<Vec<Issuer>, String> {
    let asked = async {
        let mut all = list(client, "Issuer", namespace).await?;
        all.extend(list(client, "ClusterIssuer", None).await?);
        Ok(all)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    answer.unwrap_or_else(|_| Err("the API server does not answer".to_owned()))
}

async fn list(client: &Client, kind: &str, namespace: Option<&str>) -> Result<Vec<Issuer>, String> {
    let resource = ApiResource {
        group: "cert-manager.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "cert-manager.io/v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_ascii_lowercase()),
    };
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let (mut found, mut page) = (Vec::new(), ListParams::default().limit(PAGE));
    for _ in 0..PAGES {
        let objects = match api.list(&page).await {
            Ok(objects) => objects,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
            Err(error) => return Err(format!("{kind}s: {error}")),
        };
        found.extend(objects.items.iter().filter_map(|object| Issuer::read(&whole(object, kind))));
        match objects.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    Ok(found)
}

/// The items of a list do not say what they are.
fn whole(object: &DynamicObject, kind: &str) -> Value {
    let metadata = json!({"name": object.metadata.name, "namespace": object.metadata.namespace});
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata,
        "spec": object.data.get("spec").cloned().unwrap_or_default(),
    })
}
