//! Which Ingresses are served: by class, and by namespace.

use testkit::cluster;

use crate::fairway::Fairway;
use crate::objects::{ingress, ingress_with, one_host, service};

#[test]
fn an_ingress_that_changes_its_class() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(&class("foreign", "example.test/other")).await?;
        let fairway = Fairway::start(cluster).await?;
        let of_class = |class: &str| {
            let class = format!("ingressClassName: {class}");
            ingress_with("moving", &class, "moving.test", "/", "a")
        };
        cluster.apply(&of_class("foreign")).await?;
        // Served later than the one above would be.
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        fairway.answers("mark.test", "/", 200).await?;
        fairway.expect("moving.test", "/", 404).await?;
        cluster.apply(&of_class("nginx")).await?;
        fairway.answers("moving.test", "/", 200).await?;
        cluster.apply(&of_class("foreign")).await?;
        fairway.answers("moving.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn ingresses_come_and_go_with_their_class() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let waiting = ingress_with("late", "ingressClassName: late", "late.test", "/", "a");
        cluster.apply(&waiting).await?;
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        fairway.answers("mark.test", "/", 200).await?;
        fairway.expect("late.test", "/", 404).await?;
        let late = class("late", "k8s.io/ingress-nginx");
        cluster.apply(&late).await?;
        fairway.answers("late.test", "/", 200).await?;
        cluster.delete(&late).await?;
        fairway.answers("late.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn only_the_watched_namespace_is_served() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        elsewhere(cluster, "").await?;
        let fairway = Fairway::start_with(cluster, &["--watch-namespace", "demo"]).await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.expect("elsewhere.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn a_namespace_is_served_while_its_labels_are_selected() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        elsewhere(cluster, "").await?;
        let selector = ["--watch-namespace-selector", "team=web"];
        let fairway = Fairway::start_with(cluster, &selector).await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.expect("elsewhere.test", "/", 404).await?;
        // No endpoints there: 503 says that the Ingress is known.
        elsewhere(cluster, "team: web").await?;
        fairway.answers("elsewhere.test", "/", 503).await?;
        elsewhere(cluster, "").await?;
        fairway.answers("elsewhere.test", "/", 404).await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.stop().await
    });
}

fn class(name: &str, controller: &str) -> String {
    format!(
        "{{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {{name: {name}}}, \
         spec: {{controller: {controller}}}}}"
    )
}

/// Namespace `elsewhere` with these labels, and an Ingress and a Service in it.
async fn elsewhere(cluster: &cluster::Cluster, labels: &str) -> anyhow::Result<()> {
    let namespace = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: elsewhere, labels: {{{labels}}}}}}}"
    );
    cluster.apply(&namespace).await?;
    let here = |yaml: String| yaml.replace("namespace: demo", "namespace: elsewhere");
    cluster.apply(&here(service("a", 80))).await?;
    cluster.apply(&here(ingress("a", "elsewhere.test", "/", "a"))).await
}
