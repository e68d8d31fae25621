//! The objects for Fairway: one Ingress for every host, and the upstream as its Service.

use super::Setup;
use anyhow::Result;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// Namespace and name of the controller's ConfigMap.
pub(super) const CONFIGURATION: &str = "demo/fairway";

const FIXED: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: Service
metadata: {name: strict, namespace: demo}
spec:
  clusterIP: 10.96.0.10
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}]
";

pub(super) fn write(folder: &Path, setup: &Setup, upstream: SocketAddr) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut text = FIXED.to_owned();
    let buffering = if setup.streaming { "off" } else { "on" };
    let (address, port) = (upstream.ip(), upstream.port());
    write!(
        text,
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: everything
  namespace: demo
  annotations: {{nginx.ingress.kubernetes.io/proxy-request-buffering: \"{buffering}\"}}
spec:
  ingressClassName: nginx
  rules:
    - http:
        paths:
          - path: /
            pathType: Prefix
            backend: {{service: {{name: strict, port: {{number: 80}}}}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: strict-1
  namespace: demo
  labels: {{kubernetes.io/service-name: strict}}
addressType: IPv4
ports: [{{name: http, port: {port}, protocol: TCP}}]
endpoints: [{{addresses: [{address}], conditions: {{ready: true, serving: true, terminating: false}}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: fairway, namespace: demo}}
data:
  use-http2: \"true\"
"
    )?;
    for (key, value) in &setup.configuration {
        writeln!(text, "  {key}: \"{value}\"")?;
    }
    std::fs::write(folder.join("objects.yaml"), text)?;
    Ok(())
}
