//! A real API server asks the webhook, and tells whoever changes something what it said.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{GROUND, ingress, service};

/// What the API server answered.
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

/// Asks the API server, as kubectl does, whose warnings are in headers.
pub(crate) async fn ask(
    cluster: &Cluster,
    method: Method,
    path: &str,
    object: &Value,
) -> Result<Told> {
    let body = if object.is_null() { Vec::new() } else { serde_json::to_vec(object)? };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(Body::from(body))?;
    let answer = cluster.client().send(request).await?;
    let warnings = answer.headers().get_all("warning").iter();
    let warnings = warnings.filter_map(|text| Some(text.to_str().ok()?.to_owned())).collect();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok(Told { status, warnings, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn wanted(name: &str, host: &str, secret: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name, "namespace": "demo"},
        "spec": {"ingressClassName": "nginx", "tls": [{"hosts": [host], "secretName": secret}], "rules": [{"host": host,
            "http": {"paths": [{"path": "/", "pathType": "Prefix",
                "backend": {"service": {"name": "shop", "port": {"number": 80}}}}]}}]},
    })
}

fn registration(port: u16, authority: &str) -> Value {
    let webhook = |name: &str, group: &str, resources: &[&str]| {
        json!({
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/networking/v1/ingresses"),
                "caBundle": STANDARD.encode(authority)},
            "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": resources}],
            "namespaceSelector": {"matchLabels": {"team": "web"}},
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "fairway"},
        "webhooks": [
            webhook("validate.nginx.ingress.kubernetes.io", "networking.k8s.io", &["ingresses"]),
            webhook("needs.nginx.ingress.kubernetes.io", "", &["services", "secrets"]),
            webhook("routes.gateway.networking.k8s.io", "gateway.networking.k8s.io", &["httproutes"]),
        ],
    })
}

/// A Fairway with a webhook, and what tells the API server of it.
pub(crate) async fn reviewing(cluster: &Cluster) -> Result<(Fairway, Value)> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let file = |name: &str, text: String| -> Result<String> {
        let path = cluster.folder().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let certificate = file("webhook.crt", cert.pem())?;
    let key = file("webhook.key", signing_key.serialize_pem())?;
    let port = testkit::ports::free();
    let address = format!("--validating-webhook=127.0.0.1:{port}");
    let fairway = Fairway::start_with(
        cluster,
        &[
            &address,
            "--validating-webhook-certificate",
            &certificate,
            "--validating-webhook-key",
            &key,
        ],
    )
    .await?;
    Ok((fairway, registration(port, &cert.pem())))
}

#[test]
fn an_api_server_refuses_and_warns_as_the_webhook_says() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        cluster.apply(&service("shop", 80)).await?;
        cluster.apply(&ingress("first", "a.test", "/", "shop")).await?;
        let (fairway, registration) = reviewing(cluster).await?;
        cluster.apply_value(&registration).await?;
        let path = "/apis/networking.k8s.io/v1/namespaces/demo/ingresses";
        // The API server learns of the registration a moment later; until then it asks nobody.
        let dry = format!("{path}?dryRun=All");
        eventually("the webhook to be asked", PATIENCE, async || {
            let told = ask(cluster, Method::POST, &dry, &wanted("rival", "a.test", "tls")).await?;
            ensure!(told.status == 400, "status {}", told.status);
            let message = told.body["message"].as_str().context("a message")?;
            let reason = "host \"a.test\" and path \"/\" is already defined in ingress demo/first";
            ensure!(message.contains(reason), "{message}");
            Ok(())
        })
        .await?;
        let told = ask(cluster, Method::POST, path, &wanted("second", "b.test", "tls")).await?;
        ensure!(told.status == 201, "{}", told.body);
        let missing =
            told.warnings.iter().any(|text| text.contains("Secret demo/tls does not exist"));
        ensure!(missing, "{:?}", told.warnings);
        let service = "/api/v1/namespaces/demo/services/shop";
        let told = ask(cluster, Method::DELETE, service, &Value::Null).await?;
        ensure!(told.status == 200, "{}", told.body);
        let used = told
            .warnings
            .iter()
            .any(|text| text.contains("Service demo/shop is used by Ingress demo/first"));
        ensure!(used, "{:?}", told.warnings);
        fairway.stop().await
    });
}

#[test]
fn who_writes_a_route_is_warned_of_what_it_lacks() {
    cluster::test_with_gateway_api(async |cluster| {
        cluster.apply(GROUND).await?;
        let (fairway, registration) = reviewing(cluster).await?;
        cluster.apply_value(&registration).await?;
        let route = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "a", "namespace": "demo"},
            "spec": {"parentRefs": [{"name": "gone"}], "hostnames": ["a.test"]},
        });
        let dry = "/apis/gateway.networking.k8s.io/v1/namespaces/demo/httproutes?dryRun=All";
        eventually("the warning", PATIENCE, async || {
            let told = ask(cluster, Method::POST, dry, &route).await?;
            ensure!(told.status == 201, "{}", told.body);
            let told = told.warnings;
            ensure!(
                told.iter().any(|text| text.contains("no Gateway demo/gone is there")),
                "{told:?}"
            );
            Ok(())
        })
        .await?;
        fairway.stop().await
    });
}
