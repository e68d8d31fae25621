//! Ingresses as cert-manager makes them for HTTP-01, beside applications whose settings would keep a challenge out.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use tokio::process::Command;

use crate::admission::{ask, reviewing};
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
pub(crate) const APPLICATIONS: [(&str, &str); 8] = [
    ("redirected", "force-ssl-redirect: 'true'"),
    ("regex", "use-regex: 'true', PREFIX/rewrite-target: /$1"),
    ("listed", "whitelist-source-range: 192.0.2.0/24"),
    ("asked", "auth-url: 'http://nobody.demo.svc.cluster.local/'"),
    ("secret", "auth-type: basic, PREFIX/auth-secret: missing"),
    ("moved", "permanent-redirect: 'https://elsewhere.test/'"),
    ("rooted", "app-root: /app"),
    ("passed", "ssl-passthrough: 'true'"),
];

pub(crate) async fn applications(cluster: &Cluster) -> Result<()> {
    cluster.apply(GROUND).await?;
    let address = pod(cluster, "solver").await?;
    for (name, port) in [("solver", 8089), ("web", 80)] {
        cluster.apply(&service(name, port)).await?;
        cluster.apply(&slice(name, address, true)).await?;
    }
    for (name, notes) in APPLICATIONS {
        cluster.apply(&application(name, notes)).await?;
    }
    Ok(())
}

/// An application with these annotations, and a Secret that is not there.
pub(crate) fn application(name: &str, notes: &str) -> String {
    let host = format!("{name}.test");
    let notes = notes.replace("PREFIX", PREFIX);
    let tls = format!(
        "ingressClassName: nginx\n  tls: [{{hosts: [{host}], secretName: not-yet-{name}}}]"
    );
    ingress(name, &host, "/", "web").replace("ingressClassName: nginx", &tls).replace(
        "namespace: demo}",
        &format!("namespace: demo, annotations: {{{PREFIX}/{notes}}}}}"),
    )
}

/// A ConfigMap that closes everything, challenges excepted.
pub(crate) fn closing_settings() -> &'static str {
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: fairway, namespace: fairway}, data: {\
     whitelist-source-range: 192.0.2.0/24, \
     global-auth-url: 'http://nobody.demo.svc.cluster.local/'}}"
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
        cluster.apply(closing_settings()).await?;
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

#[test]
fn challenges_in_the_applications_own_ingress_are_answered_and_go_again() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        cluster.fairway_kubeconfig().await?;
        let fairway = Fairway::start(cluster).await?;
        let path = |token: &str| format!("/.well-known/acme-challenge/{token}");
        // Whose settings do not hold for challenges: cert-manager puts its path before the others.
        let bent = ["redirected", "asked"];
        for (name, notes) in APPLICATIONS.iter().filter(|(name, _)| bent.contains(name)) {
            let (host, token) = (format!("{name}.test"), format!("in-place_{name}"));
            let first = format!(
                "paths:\n      - {{path: {}, pathType: Exact, backend: {{service: {{name: solver, \
                 port: {{number: 8089}}}}}}}}",
                path(&token)
            );
            let edited = application(name, notes).replace("paths:", &first);
            cluster.apply(&edited).await?;
            solves(&fairway, &host, &token).await?;
            let other = fairway.get(&host, "/").await?;
            ensure!(other.status != 200, "{host}/ is open: {}", other.status);
            cluster.apply(&application(name, notes)).await?;
            eventually(format!("the challenge of {host} to be gone"), PATIENCE, async || {
                let answer = fairway.get(&host, &path(&token)).await?;
                ensure!(!answer.text().contains("solver"), "{}", answer.text());
                anyhow::Ok(())
            })
            .await?;
        }
        fairway.stop().await
    });
}

#[test]
fn a_challenge_takes_a_name_that_is_an_alias_elsewhere_and_gives_it_back() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        let notes =
            format!("namespace: demo, annotations: {{{PREFIX}/server-alias: other.test}}}}");
        let port =
            ingress("site", "site.test", "/", "solver").replace("number: 80", "number: 8089");
        cluster.apply(&port.replace("namespace: demo}", &notes)).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.answers("other.test", "/", 200).await?;
        let challenge = solver(Some("other.test"), "alias");
        cluster.apply_value(&challenge).await?;
        solves(&fairway, "other.test", "alias").await?;
        fairway.answers("other.test", "/", 404).await?;
        fairway.expect("site.test", "/", 200).await?;
        cluster.delete(&challenge.to_string()).await?;
        fairway.answers("other.test", "/", 200).await?;
        fairway.stop().await
    });
}

const DEFAULT_CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx, annotations: {ingressclass.kubernetes.io/is-default-class: 'true'}}
spec: {controller: k8s.io/ingress-nginx}
";

#[test]
fn challenges_are_of_the_class_that_their_issuer_says_in_whatever_way() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        let without_class = |host: &str, token: &str| {
            let mut value = solver(Some(host), token);
            value["spec"].as_object_mut().expect("an object").remove("ingressClassName");
            value
        };
        let mut noted = without_class("noted.test", "noted");
        noted["metadata"]["annotations"]["kubernetes.io/ingress.class"] = "nginx".into();
        let mut loose = solver(Some("loose.test"), "loose");
        loose["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific".into();
        for value in [noted, loose, without_class("nobody.test", "nobody")] {
            cluster.apply_value(&value).await?;
        }
        let fairway = Fairway::start(cluster).await?;
        solves(&fairway, "noted.test", "noted").await?;
        solves(&fairway, "loose.test", "loose").await?;
        // Every Ingress of the start is served once it is ready.
        fairway.expect("nobody.test", "/.well-known/acme-challenge/nobody", 404).await?;
        fairway.stop().await?;
        let fairway = Fairway::start_with(cluster, &["--watch-ingress-without-class=true"]).await?;
        solves(&fairway, "nobody.test", "nobody").await?;
        fairway.stop().await?;
        // With a default class the API server writes it into the Ingress.
        cluster.apply(DEFAULT_CLASS).await?;
        // It learns of the class a moment later; until then it writes none.
        let value = without_class("default.test", "default");
        let path = "/apis/networking.k8s.io/v1/namespaces/demo/ingresses?dryRun=All";
        eventually("the default class to be written", PATIENCE, async || {
            let told = ask(cluster, Method::POST, path, &value).await?;
            ensure!(told.body["spec"]["ingressClassName"] == "nginx", "{}", told.body);
            anyhow::Ok(())
        })
        .await?;
        cluster.apply_value(&value).await?;
        let fairway = Fairway::start(cluster).await?;
        solves(&fairway, "default.test", "default").await?;
        fairway.expect("nobody.test", "/.well-known/acme-challenge/nobody", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn the_webhook_takes_challenges_beside_everything_but_the_same_challenge() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        let (fairway, registration) = reviewing(cluster).await?;
        cluster.apply_value(&registration).await?;
        // The API server learns of the registration a moment later; until then it asks nobody.
        cluster.apply(&ingress("site", "site.test", "/", "web")).await?;
        eventually("the webhook to be asked", PATIENCE, async || {
            let taken = cluster.apply(&ingress("rival", "site.test", "/", "web")).await;
            ensure!(taken.is_err(), "a path of somebody else was taken");
            anyhow::Ok(())
        })
        .await?;
        let path = "/apis/networking.k8s.io/v1/namespaces/demo/ingresses?dryRun=All";
        for (name, _) in APPLICATIONS {
            let (host, token) = (format!("{name}.test"), format!("tok-EN_{name}"));
            cluster.apply_value(&solver(Some(&host), &token)).await?;
            solves(&fairway, &host, &token).await?;
            let mut again = solver(Some(&host), &token);
            again["metadata"]["name"] = "again".into();
            let reason = format!("path \"/.well-known/acme-challenge/{token}\" is already defined");
            // Whoever reviews learns of a challenge after the engine that answers it.
            eventually(
                format!("a second challenge of {host} to be refused"),
                PATIENCE,
                async || {
                    let told = ask(cluster, Method::POST, path, &again).await?;
                    let message = told.body["message"].as_str().unwrap_or_default();
                    ensure!(told.status == 400 && message.contains(&reason), "{}", told.body);
                    anyhow::Ok(())
                },
            )
            .await?;
        }
        fairway.stop().await
    });
}

/// One that makes challenges of our class, and one that does not.
const ISSUED: [&str; 2] = [
    "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: own, namespace: demo}, spec: {acme: {solvers: \
     [{http01: {ingress: {ingressClassName: nginx}}}]}}}",
    "{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: all}, spec: {acme: {solvers: [{http01: \
     {ingress: {ingressClassName: former}}}]}}}",
];

/// What `check` says of the cluster with the rights of a kubeconfig, on both outputs.
async fn checked(kubeconfig: &Path) -> Result<String> {
    let mut check = Command::new(crate::fairway::binary());
    check.args(["check", "--all", "--kubeconfig"]).arg(kubeconfig);
    let output = check.output().await?;
    Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
}

#[test]
fn check_names_the_issuer_whose_challenges_are_of_another_class() {
    cluster::test(async |cluster| {
        applications(cluster).await?;
        let issued = |name: &str, issuer: &str| {
            application(name, "ssl-redirect: 'false'")
                .replace("annotations: {", &format!("annotations: {{cert-manager.io/{issuer}, "))
        };
        cluster.apply(&issued("own", "issuer: own")).await?;
        cluster.apply(&issued("all", "cluster-issuer: all")).await?;
        let admin = cluster.admin_kubeconfig()?;
        let without = checked(&admin).await?;
        ensure!(!without.contains("ssuer"), "there is no cert-manager: {without}");
        let kinds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deploy/crds.yaml");
        cluster.apply(&std::fs::read_to_string(kinds)?).await?;
        for issuer in ISSUED {
            eventually("the kinds of cert-manager", PATIENCE, async || cluster.apply(issuer).await)
                .await?;
        }
        let said = checked(&admin).await?;
        let noted =
            "ClusterIssuer all answers challenges for all.test by Ingresses of class former";
        ensure!(said.contains(noted) && said.matches("answers challenges").count() == 1, "{said}");
        let forbidden = checked(&cluster.fairway_kubeconfig().await?).await?;
        let why = "the Issuers of cert-manager are not known";
        ensure!(forbidden.contains(why) && forbidden.contains("forbidden"), "{forbidden}");
        Ok(())
    });
}
