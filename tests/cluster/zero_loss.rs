//! Two experiments: what is behind Fairway is rolled, and Fairway itself is, under the load of every kind of client.
//! `make rollout` runs them with more rolls.

use anyhow::{Context, Result};
use testkit::cluster;

use crate::balancer::Balancer;
use crate::fairway::Fairway;
use crate::load::Load;
use crate::objects::{GROUND, ingress};
use crate::rollouts::Web;

/// How often each is rolled; two are enough to see that it works at all.
fn rolls() -> Result<usize> {
    match std::env::var("FAIRWAY_ROLLS") {
        Ok(number) => number.parse().context("FAIRWAY_ROLLS is a number"),
        Err(_) => Ok(2),
    }
}

/// The Deployment `web`, also as grpc.test.
async fn ground(cluster: &cluster::Cluster) -> Result<()> {
    cluster.apply(GROUND).await?;
    web(0).apply(cluster).await?;
    let key = "nginx.ingress.kubernetes.io/backend-protocol";
    let grpc = ingress("grpc", "grpc.test", "/", "web")
        .replace("namespace: demo}", &format!("namespace: demo, annotations: {{{key}: GRPC}}}}"));
    cluster.apply(&grpc).await
}

fn web(version: usize) -> Web {
    Web { version: format!("v{version}"), replicas: 3, pause: 2 }
}

#[test]
fn pods_that_are_rolled_under_load_lose_no_request() {
    cluster::test(async |cluster| {
        ground(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        web(0).answers(&fairway).await?;
        fairway.answers("grpc.test", "/", 200).await?;
        let load = Load::start(fairway.http());
        let rolls = rolls()?;
        for roll in 1..=rolls {
            web(roll).apply(cluster).await?;
            load.progress(&format!("Pods, roll {roll} of {rolls}"));
        }
        load.goes_on(10).await;
        load.stop(&format!("a Deployment of 3 Pods, rolled {rolls} times")).await?;
        fairway.stop().await
    });
}

#[test]
fn a_fairway_that_is_rolled_under_load_loses_no_request() {
    cluster::test(async |cluster| {
        ground(cluster).await?;
        let limits = "{apiVersion: v1, kind: ConfigMap, metadata: {name: fairway, namespace: fairway}, \
                      data: {worker-shutdown-timeout: 3s}}";
        // The namespace comes with the rights.
        cluster.fairway_kubeconfig().await?;
        cluster.apply(limits).await?;
        let balancer = Balancer::start().await?;
        let flags = ["--shutdown-grace-period", "3"];
        let mut replicas = std::collections::VecDeque::new();
        for _ in 0..2 {
            let fairway = Fairway::start_with(cluster, &flags).await?;
            fairway.answers("grpc.test", "/", 200).await?;
            balancer.add(fairway.http(), fairway.health()).await?;
            replicas.push_back(fairway);
        }
        let load = Load::start(balancer.address);
        let rolls = rolls()?;
        for roll in 1..=rolls {
            for _ in 0..2 {
                let fairway = Fairway::start_with(cluster, &flags).await?;
                balancer.add(fairway.http(), fairway.health()).await?;
                replicas.push_back(fairway);
                let old = replicas.pop_front().context("there are three")?;
                let http = old.http();
                old.stop().await?;
                balancer.remove(http);
            }
            load.progress(&format!("Fairway, roll {roll} of {rolls}"));
        }
        load.stop(&format!("two replicas of Fairway, both rolled {rolls} times")).await
    });
}
