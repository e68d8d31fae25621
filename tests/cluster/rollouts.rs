//! Deployments through the real controllers: rolling updates and scaling lose no request.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{GROUND, ingress};

/// A Deployment behind Service and Ingress `web`, host web.test.
pub(crate) struct Web {
    pub(crate) version: String,
    pub(crate) replicas: usize,
    /// Seconds between a Pod's deletion and its SIGTERM.
    pub(crate) pause: u32,
}

impl Web {
    /// Makes it so, and waits until it is.
    pub(crate) async fn apply(&self, cluster: &Cluster) -> Result<()> {
        let Self { version, replicas, pause } = self;
        let lifecycle = if *pause == 0 {
            "{}".to_owned()
        } else {
            format!("{{preStop: {{sleep: {{seconds: {pause}}}}}}}")
        };
        let yaml = format!(
            "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: demo}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  strategy: {{rollingUpdate: {{maxUnavailable: 0, maxSurge: 1}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: fairway.test/pod:{version}
        lifecycle: {lifecycle}
        env:
        - {{name: VERSION, value: {version}}}
        - {{name: POD_NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}
        ports: [{{name: http, containerPort: 8080}}]
        readinessProbe: {{httpGet: {{path: /healthz, port: http}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: demo}}
spec:
  selector: {{app: web}}
  ports: [{{name: http, port: 80, targetPort: http}}]
"
        );
        cluster.apply(&yaml).await?;
        cluster.apply(&ingress("web", "web.test", "/", "web")).await?;
        self.rolled_out(cluster).await
    }

    /// Waits until every replica is of this version and available, and no other is left.
    async fn rolled_out(&self, cluster: &Cluster) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "demo");
        let wanted = i32::try_from(self.replicas)?;
        eventually(format!("version {}", self.version), PATIENCE, async || {
            let found = deployments.get("web").await?;
            let status = found.status.unwrap_or_default();
            ensure!(status.observed_generation == found.metadata.generation, "not yet seen");
            let counts = [status.updated_replicas, status.available_replicas, status.replicas];
            let counts = counts.map(Option::unwrap_or_default);
            ensure!(counts == [wanted; 3], "updated, available, all: {counts:?}");
            Ok(())
        })
        .await
    }

    /// Waits until exactly the Pods of this version answer.
    pub(crate) async fn answers(&self, fairway: &Fairway) -> Result<()> {
        eventually(format!("{} Pods to answer", self.replicas), PATIENCE, async || {
            let mut pods = BTreeSet::new();
            for _ in 0..self.replicas * 5 {
                let told = fairway.expect("web.test", "/", 200).await?.json()?;
                ensure!(told["version"] == self.version, "{told}");
                pods.insert(told["pod"].to_string());
            }
            ensure!(pods.len() == self.replicas, "{pods:?}");
            Ok(())
        })
        .await
    }
}

/// Three Pods of v1, replaced by three of v2 under traffic.
async fn replace(cluster: &Cluster, pause: u32) -> Result<()> {
    cluster.apply(GROUND).await?;
    Web { version: "v1".to_owned(), replicas: 3, pause }.apply(cluster).await?;
    let fairway = Fairway::start(cluster).await?;
    let traffic = fairway.traffic("web.test");
    let new = Web { version: "v2".to_owned(), replicas: 3, pause };
    new.apply(cluster).await?;
    new.answers(&fairway).await?;
    traffic.stop().await.all_good()?;
    fairway.stop().await
}

#[test]
fn a_rolling_update_loses_no_request() {
    cluster::test(async |cluster| replace(cluster, 1).await);
}

#[test]
fn a_rolling_update_of_pods_that_end_at_once_loses_no_request_that_may_be_repeated() {
    cluster::test(async |cluster| replace(cluster, 0).await);
}

#[test]
fn a_deployment_that_grows_and_shrinks_is_followed() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let sized = |replicas| Web { version: "v1".to_owned(), replicas, pause: 1 };
        sized(1).apply(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("web.test");
        for replicas in [4, 2] {
            sized(replicas).apply(cluster).await?;
            sized(replicas).answers(&fairway).await?;
        }
        traffic.stop().await.all_good()?;
        sized(0).apply(cluster).await?;
        fairway.answers("web.test", "/", 503).await?;
        fairway.stop().await
    });
}
