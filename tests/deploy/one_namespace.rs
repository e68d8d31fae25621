//! The rights of deploy/rbac-namespaced.yaml are enough to serve one namespace, and do not reach further.

use crate::read;
use anyhow::{Context, Result, ensure};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use testkit::cluster::{self, Cluster, Connection, Process, eventually};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

async fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.apply_value(&namespace).await
}

/// A Secret with a certificate for this host.
async fn certificate(cluster: &Cluster, place: (&str, &str), host: &str) -> Result<String> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec![host.to_owned()])?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": place.0, "name": place.1},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": cert.pem(), "tls.key": signing_key.serialize_pem()},
    });
    cluster.apply_value(&secret).await?;
    Ok(cert.pem())
}

/// An Ingress for a host, whose Service is not there.
async fn ingress(cluster: &Cluster, namespace: &str, host: &str) -> Result<()> {
    let backend = json!({"service": {"name": "none", "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"namespace": namespace, "name": "one"},
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": [host], "secretName": "certificate"}],
            "rules": [{"host": host, "http": {"paths": [path]}}],
        },
    });
    cluster.apply_value(&ingress).await
}

async fn answer(host: &str) -> Result<u16> {
    let place = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
    Ok(Connection::open(place).await?.get(host, "/").await?.status)
}

/// Whether a handshake for `host` shows this certificate.
async fn shows(host: &str, certificate: &str) -> Result<()> {
    let place = SocketAddr::from((Ipv4Addr::LOCALHOST, 443));
    Connection::open_tls(place, host, certificate).await.map(drop)
}

#[test]
fn its_ingresses_and_certificates_are_served_and_nothing_else_is_asked_for() {
    cluster::test(async |cluster| {
        for name in ["apps", "others"] {
            namespace(cluster, name).await?;
        }
        for file in ["rbac-namespaced.yaml", "config.yaml", "ingressclass.yaml"] {
            cluster.apply(&read(&format!("deploy/{file}"))).await?;
        }
        let own = certificate(cluster, ("apps", "certificate"), "a.test").await?;
        let default = ("fairway", "fairway-default-certificate");
        let default = certificate(cluster, default, "unknown.test").await?;
        ingress(cluster, "apps", "a.test").await?;
        ingress(cluster, "others", "b.test").await?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command.args(["run", "--watch-namespace=apps", "--configmap=fairway/fairway"]);
        command.arg("--default-ssl-certificate=fairway/fairway-default-certificate");
        command.arg("--kubeconfig").arg(cluster.kubeconfig_of("fairway", "fairway").await?);
        let log = cluster.folder().join("fairway.log");
        let _process = Process::start(&mut command, &log)?;
        eventually("an answer for the Ingress", PATIENCE, async || {
            let status = answer("a.test").await?;
            ensure!(status == 308, "{status}, not the redirect to HTTPS");
            Ok(())
        })
        .await?;
        ensure!(answer("b.test").await? == 404, "an Ingress of another namespace is served");
        shows("a.test", &own).await.context("the certificate of the Ingress")?;
        eventually("the default certificate", PATIENCE, async || {
            shows("unknown.test", &default).await
        })
        .await?;
        let said = fs::read_to_string(&log)?;
        let mut refused = said.lines().filter(|line| line.contains("forbidden"));
        ensure!(refused.next().is_none(), "{said}");
        Ok(())
    });
}
