//! A real API server takes every object, with all of its fields.

use crate::helm::{render, render_file, values_files};
use crate::{read, yaml_files};
use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;
use std::time::Duration;
use testkit::cluster::{self, Cluster, eventually};
use testkit::yaml;

const NAMESPACES: [&str; 6] =
    ["ingress-nginx", "edge", "shop", "certificates", "cert-manager", "apps"];

/// Applies an object without storing it: unknown fields, wrong kinds and values that do not fit are errors.
async fn dry(cluster: &Cluster, object: &Value) -> Result<()> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let version = text("/apiVersion").context("an object without apiVersion")?;
    let kind = text("/kind").context("an object without kind")?;
    let name = text("/metadata/name").context("an object without a name")?;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    };
    let how = PatchParams::apply("fairway-tests").force().dry_run();
    let applied = api.patch(name, &how, &Patch::Apply(object)).await;
    applied.map(drop).with_context(|| format!("{kind} {name}"))
}

async fn prepare(cluster: &Cluster) -> Result<()> {
    for name in NAMESPACES {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
        cluster.apply(&namespace).await?;
    }
    cluster.apply(&read("tests/deploy/crds.yaml")).await?;
    // Kinds are served a moment after they were made known.
    let kinds = yaml::documents(&read("tests/deploy/crds.yaml"))?;
    for kind in kinds {
        let spec = &kind["spec"];
        let text = |value: &Value| value.as_str().map(str::to_owned).context("text");
        let (group, kind) = (text(&spec["group"])?, text(&spec["names"]["kind"])?);
        let version = text(&spec["versions"][0]["name"])?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, &version, &kind));
        let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
        eventually(format!("{kind} to be served"), Duration::from_secs(30), async || {
            api.list(&ListParams::default()).await
        })
        .await?;
    }
    Ok(())
}

#[test]
fn the_api_server_takes_every_object_of_the_chart_whatever_the_values() {
    cluster::test(async |cluster| {
        prepare(cluster).await?;
        let mut renders = vec![("defaults".to_owned(), render(&[]).map_err(anyhow::Error::msg)?)];
        for file in values_files() {
            let objects = render_file(&file);
            renders.push((file, objects));
        }
        let mut complaints = Vec::new();
        for (file, objects) in &renders {
            ensure!(objects.len() >= 8, "{file}: only {} objects", objects.len());
            for object in objects {
                if let Err(error) = dry(cluster, object).await {
                    complaints.push(format!("{file}: {error:#}"));
                }
            }
        }
        ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
        // What is wrong would be noticed.
        let wrong = render(&["--set", "controller.podSecurityContext.nonsense=true"]);
        let wrong = wrong.map_err(anyhow::Error::msg)?;
        let deployment = crate::helm::object(&wrong, "Deployment", "ingress-nginx-controller");
        let refusal = dry(cluster, deployment).await.err().context("nonsense is taken")?;
        ensure!(format!("{refusal:#}").contains("nonsense"), "{refusal:#}");
        Ok(())
    });
}

#[test]
fn the_api_server_takes_every_plain_manifest() {
    cluster::test(async |cluster| {
        prepare(cluster).await?;
        cluster.apply(&read("deploy/rbac.yaml")).await?;
        let files = yaml_files("deploy").into_iter().filter(|file| file != "kustomization.yaml");
        let mut complaints = Vec::new();
        for file in files {
            for object in yaml::documents(&read(&format!("deploy/{file}")))? {
                if let Err(error) = dry(cluster, &object).await {
                    complaints.push(format!("{file}: {error:#}"));
                }
            }
        }
        ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
        Ok(())
    });
}

/// Namespaces of the level `restricted` take the Pods that no value has given more.
#[test]
fn pods_of_the_chart_and_of_the_plain_manifests_are_restricted() {
    cluster::test(async |cluster| {
        let restricted = "{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: \
                          {pod-security.kubernetes.io/enforce: restricted}}}";
        cluster.apply(restricted).await?;
        let account =
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: any, namespace: strict}}";
        cluster.apply(account).await?;
        let backend = ["--set", "defaultBackend.enabled=true"];
        let mut objects = render(&backend).map_err(anyhow::Error::msg)?;
        for file in ["deployment.yaml", "webhook-certificate.yaml"] {
            objects.extend(yaml::documents(&read(&format!("deploy/{file}")))?);
        }
        let templates = objects.iter().filter(|object| object["spec"]["template"].is_object());
        let mut count = 0;
        for workload in templates {
            let mut pod = workload["spec"]["template"].clone();
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            pod["metadata"]["name"] = "any".into();
            pod["metadata"]["namespace"] = "strict".into();
            pod["spec"]["serviceAccountName"] = "any".into();
            let name = &workload["metadata"]["name"];
            dry(cluster, &pod).await.with_context(|| format!("the Pods of {name}"))?;
            count += 1;
            pod["spec"]["hostNetwork"] = true.into();
            let refusal = dry(cluster, &pod).await.err().context("the level is enforced")?;
            ensure!(format!("{refusal:#}").contains("restricted"), "{refusal:#}");
        }
        ensure!(count == 6, "{count} workloads, not Deployments, Jobs and default backend");
        Ok(())
    });
}
