//! Ingresses as cert-manager makes them for HTTP-01, beside applications whose settings would keep a challenge out.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{GROUND, ingress, pod, service, slice};

const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// The Ingress of a challenge: an allow list open to all, one Exact path, no TLS; without a host it is an address's.
fn solver(host: Option<&str>, token: &str) -> Value {
    let backend = json!({"service": {"name": "solver", "port": {"number": 8089}}});
    let path = format!("/.well-known/acme-challenge/{token}");
    let mut rule =
        json!({"http": {"paths": [{"path": path, "pathType": "Exact", "backend": backend}]}});
    if let Some(host) = host {
        rule["host"] = host.into();
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "name": format!("cm-acme-http-solver-{}", token.to_lowercase().replace('_', "-")),
            "namespace": "demo",
            "labels": {"acme.cert-manager.io/http01-solver": "true"},
            "annotations": {format!("{PREFIX}/whitelist-source-range"): "0.0.0.0/0,::/0"},
        },
        "spec": {"ingressClassName": "nginx", "rules": [rule]},
    })
}

/// What applications ask for, by the first part of their host.
const APPLICATIONS: [(&str, &str); 8] = [
    ("redirected", "force-ssl-redirect: 'true'"),
    ("regex", "use-regex: 'true', PREFIX/rewrite-target: /$1"),
    ("listed", "whitelist-source-range: 192.0.2.0/24"),
    ("asked", "auth-url: 'http://nobody.demo.svc.cluster.local/'"),
    ("secret", "auth-type: basic, PREFIX/auth-secret: missing"),
    ("moved", "permanent-redirect: 'https://elsewhere.test/'"),
    ("rooted", "app-root: /app"),
    ("passed", "ssl-passthrough: 'true'"),
];

async fn applications(cluster: &Cluster) -> Result<()> {
    cluster.apply(GROUND).await?;
    let address = pod(cluster, "solver").await?;
    for (name, port) in [("solver", 8089), ("web", 80)] {
        cluster.apply(&service(name, port)).await?;
        cluster.apply(&slice(name, address, true)).await?;
    }
    for (name, notes) in APPLICATIONS {
        let host = format!("{name}.test");
        let notes = notes.replace("PREFIX", PREFIX);
        let tls = format!(
            "ingressClassName: nginx\n  tls: [{{hosts: [{host}], secretName: not-yet-{name}}}]"
        );
        let application =
            ingress(name, &host, "/", "web").replace("ingressClassName: nginx", &tls).replace(
                "namespace: demo}",
                &format!("namespace: demo, annotations: {{{PREFIX}/{notes}}}}}"),
            );
        cluster.apply(&application).await?;
    }
    Ok(())
}

/// A new challenge is answered by its solver, in clear, on the path as it is.
async fn solves(fairway: &Fairway, host: &str, token: &str) -> Result<()> {
    let path = format!("/.well-known/acme-challenge/{token}");
    let answer = fairway.answers(host, &path, 200).await?.json()?;
    ensure!(answer["pod"] == "solver" && answer["uri"] == path, "{host}: {answer}");
    Ok(())
}

#[test]
fn challenges_are_answered_whatever_applications_ask_for() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        cluster.fairway_kubeconfig().await?;
        let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: fairway, namespace: fairway}, data: {\
                        whitelist-source-range: 192.0.2.0/24, \
                        global-auth-url: 'http://nobody.demo.svc.cluster.local/'}}";
        cluster.apply(settings).await?;
        let fairway = Fairway::start_with(cluster, &["--enable-ssl-passthrough"]).await?;
        for (name, _) in APPLICATIONS {
            let (host, token) = (format!("{name}.test"), format!("tok-EN_{name}"));
            let before =
                fairway.get(&host, &format!("/.well-known/acme-challenge/{token}")).await?;
            ensure!(before.status != 200, "{host} answers a challenge that nobody solves");
            cluster.apply_value(&solver(Some(&host), &token)).await?;
            solves(&fairway, &host, &token).await?;
            // The application is as it was: its other paths are not opened.
            let other = fairway.get(&host, "/").await?;
            ensure!(other.status != 200, "{host}/ is open: {}", other.status);
        }
        cluster.apply_value(&solver(None, "address")).await?;
        solves(&fairway, "203.0.113.7", "address").await?;
        fairway.stop().await
    });
}

#[test]
fn two_hundred_challenges_at_once_are_answered_and_leave_no_trace() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let before = fairway.page("/configuration").await?.text().len();
        let name = |number: usize| (format!("host-{number}.test"), format!("token-{number}"));
        let all: Vec<_> = (0..200).map(name).collect();
        let began = Instant::now();
        cluster.create_all(all.iter().map(|(host, token)| solver(Some(host), token))).await?;
        let created = began.elapsed();
        for (host, token) in &all {
            solves(&fairway, host, token).await?;
        }
        eprintln!(
            "200 solvers: made in {created:?}, answered {:?} later",
            began.elapsed() - created
        );
        for (host, token) in &all {
            cluster.delete(&solver(Some(host), token).to_string()).await?;
        }
        eventually("all traces to be gone", PATIENCE, async || {
            let text = fairway.page("/configuration").await?.text();
            ensure!(!text.contains("token-"), "a token is left");
            ensure!(text.len() < before + 200, "{} bytes, {before} before", text.len());
            anyhow::Ok(())
        })
        .await?;
        fairway.stop().await
    });
}

#[test]
fn a_redirect_to_www_yields_to_a_challenge_and_comes_back() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        let notes =
            format!("namespace: demo, annotations: {{{PREFIX}/from-to-www-redirect: 'true'}}}}");
        let site = ingress("site", "site.test", "/", "web").replace("namespace: demo}", &notes);
        cluster.apply(&site).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.answers("www.site.test", "/", 308).await?;
        let challenge = solver(Some("www.site.test"), "www");
        cluster.apply_value(&challenge).await?;
        solves(&fairway, "www.site.test", "www").await?;
        cluster.delete(&challenge.to_string()).await?;
        fairway.answers("www.site.test", "/", 308).await?;
        fairway.stop().await
    });
}
