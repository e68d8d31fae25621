//! The test cluster itself: real controllers, Pods that answer, and every way to disturb a watch.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use testkit::cluster::{self, Cluster, Connection, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

const DEMO: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}";

/// A Deployment with its Service, and a version that the Pods tell.
fn web(version: &str, replicas: u32) -> String {
    format!(
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: demo}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: web
        image: fairway.test/pod:{version}
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
    )
}

/// The addresses in the slices of Service `web` that are ready.
async fn ready_addresses(cluster: &Cluster) -> Result<BTreeSet<SocketAddr>> {
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), "demo");
    let of_web = ListParams::default().labels("kubernetes.io/service-name=web");
    let mut ready = BTreeSet::new();
    for slice in slices.list(&of_web).await? {
        let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
        let ports: Vec<u16> = ports.map(u16::try_from).collect::<Result<_, _>>()?;
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref().context("no conditions")?;
            if conditions.ready != Some(true) {
                continue;
            }
            for (address, port) in endpoint.addresses.iter().zip(&ports) {
                ready.insert((address.parse::<std::net::IpAddr>()?, *port).into());
            }
        }
    }
    Ok(ready)
}

async fn wait_for_addresses(cluster: &Cluster, count: usize) -> Result<BTreeSet<SocketAddr>> {
    eventually(format!("{count} ready endpoints"), PATIENCE, async || {
        let ready = ready_addresses(cluster).await?;
        ensure!(ready.len() == count, "there are {ready:?}");
        Ok(ready)
    })
    .await
}

#[test]
fn pods_of_a_deployment_answer_at_the_addresses_of_their_endpoint_slices() {
    cluster::test(async |cluster| {
        cluster.apply(DEMO).await?;
        cluster.apply(&web("v1", 3)).await?;
        let mut names = BTreeSet::new();
        for address in wait_for_addresses(cluster, 3).await? {
            let answer = Connection::open(address).await?.get("demo.test", "/who").await?;
            let told = answer.json()?;
            ensure!(told["version"] == "v1" && told["uri"] == "/who", "{told}");
            names.insert(told["pod"].to_string());
        }
        ensure!(names.len() == 3, "three Pods, not {names:?}");
        Ok(())
    });
}

#[test]
fn a_rolling_update_replaces_every_pod_and_old_ones_end_within_their_grace_period() {
    cluster::test(async |cluster| {
        cluster.apply(DEMO).await?;
        cluster.apply(&web("v1", 2)).await?;
        let old = wait_for_addresses(cluster, 2).await?;
        cluster.apply(&web("v2", 2)).await?;
        let pods: Api<Pod> = Api::namespaced(cluster.client(), "demo");
        eventually("two Pods of v2 and no other", PATIENCE, async || {
            let images = pods.list(&ListParams::default()).await?.into_iter().map(|pod| {
                pod.spec.and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default()
            });
            let images: Vec<String> = images.collect();
            ensure!(images == ["fairway.test/pod:v2", "fairway.test/pod:v2"], "{images:?}");
            Ok(())
        })
        .await?;
        let new = wait_for_addresses(cluster, 2).await?;
        ensure!(old.is_disjoint(&new), "no address is given twice: {old:?} {new:?}");
        for address in old {
            ensure!(Connection::open(address).await.is_err(), "{address} still answers");
        }
        Ok(())
    });
}

#[test]
fn a_container_that_ends_is_started_again_and_an_unknown_image_is_reported() {
    cluster::test(async |cluster| {
        cluster.apply(DEMO).await?;
        let service_account = "default";
        eventually("the default ServiceAccount", PATIENCE, async || {
            cluster.kubeconfig_of("demo", service_account).await
        })
        .await?;
        let pod = |name: &str, container: &str| {
            format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: demo}}, \
                 spec: {{containers: [{{name: main, {container}}}]}}}}"
            )
        };
        let ends = "image: fairway.test/pod, command: [sh, -c, 'echo begun; exit 3']";
        cluster.apply(&pod("ends", ends)).await?;
        cluster.apply(&pod("strange", "image: 'elsewhere/image:1'")).await?;
        let pods: Api<Pod> = Api::namespaced(cluster.client(), "demo");
        eventually("a second start", PATIENCE, async || {
            let status = pods.get_status("ends").await?.status.unwrap_or_default();
            let statuses = status.container_statuses.unwrap_or_default();
            ensure!(statuses.iter().any(|container| container.restart_count > 0), "{statuses:?}");
            let log = cluster.kubelet().log("demo", "ends", "main")?;
            ensure!(log.matches("begun").count() > 1, "{log}");
            Ok(())
        })
        .await?;
        eventually("the complaint", PATIENCE, async || {
            let status = pods.get_status("strange").await?.status.unwrap_or_default();
            let message = status.message.unwrap_or_default();
            ensure!(message.contains("elsewhere/image:1"), "{:?} {message:?}", status.phase);
            Ok(())
        })
        .await
    });
}

/// A client with Fairway's rights, through the wire.
async fn fairway(cluster: &Cluster) -> Result<Client> {
    client(&cluster.fairway_kubeconfig().await?).await
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let config = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
    Ok(Client::try_from(config)?)
}

#[test]
fn fairway_may_read_what_it_serves_and_nothing_more() {
    cluster::test(async |cluster| {
        let client = fairway(cluster).await?;
        let ask = async |path: &str| {
            let ask = http::Request::get(path).body(Vec::new())?;
            anyhow::Ok(client.request_text(ask).await)
        };
        for group in ["/apis/networking.k8s.io/v1/ingresses", "/api/v1/secrets"] {
            ask(group).await?.with_context(|| group.to_owned())?;
        }
        match ask("/api/v1/nodes").await? {
            Err(kube::Error::Api(refusal)) => ensure!(refusal.code == 403, "{refusal:?}"),
            other => bail!("Nodes are no business of Fairway's: {other:?}"),
        }
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "fairway");
        let map = ConfigMap::default();
        let named = ConfigMap {
            metadata: kube::core::ObjectMeta { name: Some("mine".to_owned()), ..map.metadata },
            ..map
        };
        match maps.create(&Default::default(), &named).await {
            Err(kube::Error::Api(refusal)) => ensure!(refusal.code == 403, "{refusal:?}"),
            other => bail!("Fairway writes nothing: {other:?}"),
        }
        Ok(())
    });
}

#[test]
fn an_old_version_is_gone_after_history_was_forgotten() {
    cluster::test(async |cluster| {
        cluster.apply(DEMO).await?;
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "demo");
        let old = maps.list(&ListParams::default()).await?;
        let old = old.metadata.resource_version.context("a list without a version")?;
        for number in 0..3 {
            let map = format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{number}, namespace: demo}}}}"
            );
            cluster.apply(&map).await?;
        }
        cluster.forget_history().await?;
        let mut events = pin!(maps.watch(&WatchParams::default(), &old).await?);
        match events.next().await.context("a watch that ends without a word")?? {
            WatchEvent::Error(error) => ensure!(error.code == 410, "{error:?}"),
            other => bail!("expected 410 Gone, got {other:?}"),
        }
        Ok(())
    });
}

#[test]
fn the_wire_cuts_a_watch_in_the_middle_and_hides_the_api_server() {
    cluster::test(async |cluster| {
        cluster.apply(DEMO).await?;
        let client = fairway(cluster).await?;
        let maps: Api<ConfigMap> = Api::namespaced(client, "demo");
        let mut events = pin!(maps.watch(&WatchParams::default(), "0").await?);
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: seen, namespace: demo}}";
        cluster.apply(map).await?;
        loop {
            match events.next().await.context("the watch ended before its cut")?? {
                WatchEvent::Added(map) if map.name_any() == "seen" => break,
                _ => {}
            }
        }
        cluster.wire().cut_within(100);
        let big = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: big, namespace: demo}}, data: {{k: {}}}}}",
            "x".repeat(100_000)
        );
        cluster.apply(&big).await?;
        let broken = tokio::time::timeout(PATIENCE, events.next()).await?;
        ensure!(!matches!(broken, Some(Ok(_))), "the cut message arrived: {broken:?}");
        maps.get("big").await.context("a new connection after a cut")?;
        cluster.wire().down();
        ensure!(maps.get("big").await.is_err(), "the API server should be out of reach");
        cluster.wire().up();
        eventually("the API server", PATIENCE, async || maps.get("big").await).await?;
        cluster.wire().silence();
        let silent = tokio::time::timeout(Duration::from_secs(1), maps.get("big")).await;
        ensure!(silent.is_err(), "a silent wire said {silent:?}");
        cluster.wire().up();
        eventually("the API server", PATIENCE, async || maps.get("big").await).await?;
        Ok(())
    });
}
