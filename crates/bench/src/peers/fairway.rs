//! Fairway, with manifests such as a user would write.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{GRPC, GUARDED, HEADERS, PLAIN, Ports, SECURE, SNIPPETS, Site, TWO_PATHS};

/// The namespace of all objects of the bench.
const NAMESPACE: &str = "bench";
/// So many hosts share a file.
const PER_FILE: usize = 500;

/// Writes its manifests and says how it is started.
pub(super) fn command(site: &Site<'_>, folder: &Path, ports: Ports) -> Result<Vec<String>> {
    let manifests = folder.join("manifests");
    fs::create_dir_all(&manifests).context("create the folder of manifests")?;
    let write = |name: &str, items: &[Value]| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let text = serde_json::to_vec_pretty(&list).context("objects as JSON")?;
        fs::write(manifests.join(name), text).with_context(|| format!("write {name}"))
    };
    let mut items = surroundings(site.http);
    items.extend(service("upstream-grpc", site.grpc));
    items.push(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "certificate", "namespace": NAMESPACE},
        "data": {
            "tls.crt": STANDARD.encode(&site.certificate.chain),
            "tls.key": STANDARD.encode(&site.certificate.key),
        },
    }));
    items.push(secure(SECURE, "upstream", "HTTP"));
    items.push(secure(GRPC, "upstream-grpc", "GRPC"));
    items.push(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "fairway", "namespace": NAMESPACE},
        "data": {
            "allow-snippet-annotations": "true", "annotations-risk-level": "Critical",
            // Of 10,000 hosts with 10 paths each; a namespace has 100,000 where nobody says.
            "namespace-budget": "paths=200000",
        },
    }));
    items.extend(SNIPPETS.map(|snippet| {
        let mut ingress = ingress(snippet.host, &["/"]);
        ingress["metadata"]["annotations"] =
            json!({"nginx.ingress.kubernetes.io/configuration-snippet": snippet.text});
        ingress
    }));
    let mut beside = ingress(HEADERS.host, &[PLAIN]);
    beside["metadata"]["name"] = "beside-a-snippet".into();
    items.push(beside);
    items.push(ingress(TWO_PATHS, &["/", PLAIN]));
    let mut guarded = ingress(GUARDED, &["/"]);
    guarded["metadata"]["annotations"] = json!({
        "nginx.ingress.kubernetes.io/whitelist-source-range": "10.0.0.0/8,192.168.0.0/16,127.0.0.0/8",
    });
    items.push(guarded);
    write("surroundings.json", &items)?;
    for (number, hosts) in site.hosts.chunks(PER_FILE).enumerate() {
        let items: Vec<Value> = hosts.iter().map(|host| ingress(host, site.paths)).collect();
        write(&format!("hosts-{number}.json"), &items)?;
    }
    let source = [
        "--manifests".to_owned(),
        manifests.display().to_string(),
        format!("--configmap={NAMESPACE}/fairway"),
    ];
    Ok(run(site.binary, ports, &[&source, site.flags].concat()))
}

/// The same for the nginx engine.
pub(super) fn on_nginx(site: &Site<'_>, folder: &Path, ports: Ports) -> Result<Vec<String>> {
    let mut command = command(site, folder, ports)?;
    let directory = folder.join("engine").display().to_string();
    command.extend(["--engine=nginx".to_owned(), "--nginx-directory".to_owned(), directory]);
    Ok(command)
}

/// The command line with one thread for traffic and these ports.
pub(crate) fn run(binary: &Path, ports: Ports, source: &[String]) -> Vec<String> {
    let mut command = vec![binary.display().to_string(), "run".to_owned()];
    command.extend_from_slice(source);
    let numbers = [
        ("--http-port", ports.http),
        ("--https-port", ports.https),
        ("--healthz-port", ports.health),
        ("--worker-threads", 1),
    ];
    for (flag, number) in numbers {
        command.extend([flag.to_owned(), number.to_string()]);
    }
    command
}

/// What every Ingress of the bench refers to: the class, and the Service `upstream` with its endpoint.
pub(crate) fn surroundings(upstream: SocketAddr) -> Vec<Value> {
    let mut items = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
            "metadata": {"name": "nginx"},
            "spec": {"controller": "k8s.io/ingress-nginx"},
        }),
    ];
    items.extend(service("upstream", upstream));
    items
}

fn service(name: &str, address: SocketAddr) -> [Value; 2] {
    [
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"ports": [{"name": "http", "port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": format!("{name}-1"), "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": address.port(), "protocol": "TCP"}],
            "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        }),
    ]
}

/// An Ingress for one host that sends all these paths to the Service `upstream`.
pub(crate) fn ingress(host: &str, paths: &[&str]) -> Value {
    let name = host.replace('.', "-");
    let paths: Vec<Value> = paths.iter().map(|path| rule(path, "upstream")).collect();
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{"host": host, "http": {"paths": paths}}],
        },
    })
}

/// What every HTTPRoute of the bench refers to: the class, and the Gateway.
pub(crate) fn gateway() -> [Value; 2] {
    let version = "gateway.networking.k8s.io/v1";
    [
        json!({
            "apiVersion": version, "kind": "GatewayClass",
            "metadata": {"name": "fairway"},
            "spec": {"controllerName": "fairway/gateway-controller"},
        }),
        json!({
            "apiVersion": version, "kind": "Gateway",
            "metadata": {"name": "bench", "namespace": NAMESPACE},
            "spec": {
                "gatewayClassName": "fairway",
                "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}],
            },
        }),
    ]
}

/// An HTTPRoute for one host that sends all these paths to the Service `upstream`.
pub(crate) fn route(host: &str, paths: &[&str]) -> Value {
    let of_path = |path: &&str| json!({"path": {"type": "PathPrefix", "value": path}});
    let matches: Vec<Value> = paths.iter().map(of_path).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": host.replace('.', "-"), "namespace": NAMESPACE},
        "spec": {
            "parentRefs": [{"name": "bench"}],
            "hostnames": [host],
            "rules": [{"matches": matches, "backendRefs": [{"name": "upstream", "port": 80}]}],
        },
    })
}

fn secure(host: &str, service: &str, protocol: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "name": host.replace('.', "-"), "namespace": NAMESPACE,
            "annotations": {"nginx.ingress.kubernetes.io/backend-protocol": protocol},
        },
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": [host], "secretName": "certificate"}],
            "rules": [{"host": host, "http": {"paths": [rule("/", service)]}}],
        },
    })
}

fn rule(path: &str, service: &str) -> Value {
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    json!({"path": path, "pathType": "Prefix", "backend": backend})
}
