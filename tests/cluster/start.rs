//! Ready means: everything that existed at the start is being served.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::cluster;

use crate::fairway::Fairway;
use crate::objects::{GROUND, one_host, pod_behind_service};

#[test]
fn with_no_ingress_it_is_ready_and_answers_404() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.expect("a.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn with_one_ingress_the_first_request_after_ready_is_served() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let told = fairway.expect("a.test", "/first", 200).await?.json()?;
        ensure!(told["pod"] == "a" && told["uri"] == "/first", "{told}");
        fairway.expect("other.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn with_a_thousand_ingresses_every_one_is_served_as_soon_as_it_is_ready() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        pod_behind_service(cluster, "a").await?;
        cluster.create_all((0..1000).map(numbered)).await?;
        let fairway = Fairway::start(cluster).await?;
        for number in 0..1000 {
            let host = format!("host-{number}.test");
            let served = fairway.expect(&host, "/", 200).await;
            served.with_context(|| format!("after {number} of 1000 hosts"))?;
        }
        fairway.expect("host-1000.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn without_an_api_server_it_is_not_ready_and_becomes_so_when_there_is_one() {
    cluster::test(async |cluster| -> Result<()> {
        one_host(cluster).await?;
        cluster.wire().down();
        let mut fairway = Fairway::begin(cluster, &[]).await?;
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
        for _ in 0..30 {
            looks.tick().await;
            ensure!(fairway.healthy().await.is_err(), "ready without ever having seen the cluster");
        }
        cluster.wire().up();
        fairway.ready().await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.stop().await
    });
}

fn numbered(number: usize) -> Value {
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
