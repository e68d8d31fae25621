//! The objects that the tests put into their cluster.

use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::{Value, json};
use testkit::cluster::{Cluster, eventually};

use crate::fairway::PATIENCE;

/// Namespace `demo` and the IngressClass `nginx`.
pub(crate) const GROUND: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: demo, labels: {team: web}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

/// An Ingress of class `nginx` in namespace `demo`: one host, one path, port 80 of one Service.
pub(crate) fn ingress(name: &str, host: &str, path: &str, service: &str) -> String {
    ingress_with(name, "ingressClassName: nginx", host, path, service)
}

/// As `ingress`, with further lines of its spec in flow style, such as another class.
pub(crate) fn ingress_with(
    name: &str,
    spec: &str,
    host: &str,
    path: &str,
    service: &str,
) -> String {
    format!(
        "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: demo}}
spec:
  {spec}
  rules:
  - host: {host}
    http:
      paths:
      - path: {path}
        pathType: Prefix
        backend: {{service: {{name: {service}, port: {{number: 80}}}}}}
"
    )
}

/// A Service without a selector, whose slices tests write by hand.
pub(crate) fn service(name: &str, port: u16) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: demo}}
spec:
  ports: [{{name: http, port: {port}, targetPort: 8080}}]
"
    )
}

/// The slice of a Service of that kind.
pub(crate) fn slice(service: &str, address: IpAddr, ready: bool) -> String {
    format!(
        "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {service}, namespace: demo, labels: {{kubernetes.io/service-name: {service}}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: [{address}], conditions: {{ready: {ready}, serving: {ready}}}}}]
"
    )
}

/// A Secret with a certificate and its key.
pub(crate) fn tls_secret(name: &str, certificate: &str, key: &str) -> String {
    let quote = |text: &str| text.replace('\n', "\\n");
    format!(
        "
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: demo}}
type: kubernetes.io/tls
stringData: {{tls.crt: \"{}\", tls.key: \"{}\"}}
",
        quote(certificate),
        quote(key)
    )
}

/// One of many Ingresses of Service `a`, each with a host of its own.
pub(crate) fn numbered(number: usize) -> Value {
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": format!("host-{number}"), "namespace": "demo"},
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{
                "host": format!("host-{number}.test"),
                "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
            }],
        },
    })
}

/// Namespace `demo` with Pod `a` behind Service `a`, and Ingress `a` for host a.test.
pub(crate) async fn one_host(cluster: &Cluster) -> Result<()> {
    cluster.apply(GROUND).await?;
    pod_behind_service(cluster, "a").await?;
    cluster.apply(&ingress("a", "a.test", "/", "a")).await
}

/// A Pod, and a Service of the same name with a hand-written slice that points to it.
pub(crate) async fn pod_behind_service(cluster: &Cluster, name: &str) -> Result<()> {
    let address = pod(cluster, name).await?;
    cluster.apply(&service(name, 80)).await?;
    cluster.apply(&slice(name, address, true)).await
}

/// Starts a Pod in `demo` that tells its name, and waits until it is ready.
pub(crate) async fn pod(cluster: &Cluster, name: &str) -> Result<IpAddr> {
    let yaml = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: demo, labels: {{pod: {name}}}}}
spec:
  automountServiceAccountToken: false
  containers:
  - name: main
    image: fairway.test/pod
    env: [{{name: POD_NAME, value: {name}}}]
    ports: [{{name: web, containerPort: 8080}}]
    readinessProbe: {{httpGet: {{path: /healthz, port: 8080}}, periodSeconds: 1}}
"
    );
    // Pods are refused until the namespace has its ServiceAccount.
    eventually(format!("Pod {name} to be taken"), PATIENCE, async || cluster.apply(&yaml).await)
        .await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "demo");
    eventually(format!("Pod {name} to be ready"), PATIENCE, async || {
        let status = pods.get(name).await?.status.context("no status")?;
        let mut conditions = status.conditions.iter().flatten();
        let ready = conditions.any(|known| known.type_ == "Ready" && known.status == "True");
        ensure!(ready, "{status:?}");
        status.pod_ip.context("no address")?.parse().context("a Pod's address")
    })
    .await
}
