//! What stands in the cluster before the takeover, and the values of both charts.

use crate::helm::chart;
use crate::upgrade::kubeconfig;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::cluster::Cluster;

/// Accounts are made beforehand, for their tokens to be in kubeconfigs: Pods have no mounts here.
pub(super) const GROUND: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: ingress-nginx}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: demo}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ingress-nginx, namespace: ingress-nginx}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: demo}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: fairway.test/pod
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: demo}, spec: {
  selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}}
";

/// The certificate of web.test and grpc.test, which is its own authority, and three Ingresses.
pub(super) fn ingresses() -> Result<(String, String)> {
    let names = ["web.test", "grpc.test"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "tls", "namespace": "demo"},
        "stringData": {"tls.crt": certificate, "tls.key": key},
    });
    let prefix = "nginx.ingress.kubernetes.io";
    let one = |name: &str, notes: serde_json::Value, tls: serde_json::Value| {
        let host = format!("{name}.test");
        let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
        let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "namespace": "demo", "annotations": notes},
            "spec": {
                "ingressClassName": "nginx", "tls": tls,
                "rules": [{"host": host, "http": {"paths": [path]}}],
            },
        })
    };
    let tls = |name: &str| json!([{"hosts": [format!("{name}.test")], "secretName": "tls"}]);
    let clear = json!({format!("{prefix}/ssl-redirect"): "false"});
    let grpc = json!({
        format!("{prefix}/ssl-redirect"): "false", format!("{prefix}/backend-protocol"): "GRPC",
    });
    let sticky = json!({format!("{prefix}/affinity"): "cookie"});
    let all = [
        secret,
        one("web", clear, tls("web")),
        one("grpc", grpc, tls("grpc")),
        one("sticky", sticky, json!([])),
    ];
    Ok((all.map(|object| object.to_string()).join("\n---\n"), certificate))
}

/// What the chart of the controller before is told.
pub(super) async fn former(cluster: &Cluster) -> Result<PathBuf> {
    let values = json!({
        "kubeconfig": kubeconfig(cluster, "ingress-nginx").await?,
        // Without it nginx closes its ports while connections are still sent to it, at each of its own upgrades, too.
        "extraArgs": {"shutdown-grace-period": 3},
    });
    written(cluster, "former.json", &values)
}

/// What Fairway's chart is told.
pub(super) async fn fairway(cluster: &Cluster) -> Result<PathBuf> {
    let kubeconfig = kubeconfig(cluster, "ingress-nginx").await?;
    let values = json!({
        "serviceAccount": {"create": false, "name": "ingress-nginx"},
        "controller": {
            "image": {"repository": "fairway.test/fairway"},
            "extraEnvs": [{"name": "KUBECONFIG", "value": kubeconfig}],
            "shutdownGracePeriod": 3,
            "readinessProbe": {"periodSeconds": 1},
            "admissionWebhooks": {"enabled": false},
        },
    });
    written(cluster, "fairway.json", &values)
}

fn written(cluster: &Cluster, name: &str, values: &serde_json::Value) -> Result<PathBuf> {
    let path = cluster.folder().join(name);
    fs::write(&path, values.to_string())?;
    Ok(path)
}

/// Fairway's chart as its next version, whose Pods have other labels.
pub(super) fn next_chart(cluster: &Cluster) -> Result<PathBuf> {
    let folder = cluster.folder().join("next");
    copy(&chart(), &folder)?;
    let path = folder.join("Chart.yaml");
    let text = fs::read_to_string(&path)?;
    let lines = text.lines().map(|line| match line.split_once("ersion: ") {
        Some((name @ ("v" | "appV"), _)) => format!("{name}ersion: 99.0.0\n"),
        _ => format!("{line}\n"),
    });
    fs::write(&path, lines.collect::<String>())?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
