//! What a namespace does with its own Ingresses, all the time and as large as the API server lets it, holds up nobody.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use testkit::cluster::{self, Cluster};

use crate::fairway::Fairway;
use crate::objects::{GROUND, ingress, numbered, one_host, pod_behind_service};
use crate::replicas::{replica, tells};

const FIXED: &str = "--publish-status-address=192.0.2.1";

/// How many Ingresses flap; 2,000 of them take too long for every run of all tests.
fn many() -> Result<usize> {
    match std::env::var("FAIRWAY_INGRESSES") {
        Ok(number) => number.parse().context("FAIRWAY_INGRESSES is a number"),
        Err(_) => Ok(200),
    }
}

async fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}")).await
}

/// One of many Ingresses, in this namespace.
fn numbered_in(namespace: &str, number: usize) -> Value {
    let mut ingress = numbered(number);
    ingress["metadata"]["namespace"] = json!(namespace);
    ingress
}

/// Between two changes. A Fairway without optimisations cannot follow all that an API server takes while the processor
/// is busy with other tests besides; a released one can.
const PAUSE: Duration = Duration::from_millis(3);

/// Changes where all Ingresses of a namespace lead, all the time.
async fn flap(api: Api<Ingress>, many: usize) -> Result<()> {
    let pace = tokio::time::interval(PAUSE);
    let ticks = stream::unfold(pace, |mut pace| async { Some((pace.tick().await, pace)) });
    let changes = ticks.enumerate().map(|(turn, _)| {
        let api = &api;
        async move {
            let (number, path) = (turn % many, format!("/{}", turn / many));
            let op = json!([{"op": "replace", "path": "/spec/rules/0/http/paths/0/path", "value": path}]);
            let patch: Patch<Value> = Patch::Json(serde_json::from_value(op)?);
            api.patch(&format!("host-{number}"), &PatchParams::default(), &patch).await?;
            anyhow::Ok(())
        }
    });
    changes.buffer_unordered(8).try_collect().await
}

#[test]
fn ingresses_that_flap_all_the_time_keep_no_other_namespace_waiting() {
    cluster::test(async |cluster| {
        let many = many()?;
        one_host(cluster).await?;
        namespace(cluster, "noisy").await?;
        cluster.create_all((0..many).map(|number| numbered_in("noisy", number))).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        let quiet = changes(cluster, &fairway, "quiet").await?;
        let storm = tokio::spawn(flap(Api::namespaced(cluster.client(), "noisy"), many));
        let beside = changes(cluster, &fairway, "beside").await?;
        cluster.apply(&ingress("late", "late.test", "/", "a")).await?;
        tells(cluster, "late", &["192.0.2.1"]).await?;
        if storm.is_finished() {
            bail!("the storm has ended: {:?}", storm.await);
        }
        storm.abort();
        eprintln!(
            "of 10 changes the slowest showed after {quiet:?}, beside {many} Ingresses that flap after {beside:?}"
        );
        fairway.stop().await
    });
}

/// How long the slowest of ten changes takes, the API server's share included.
async fn changes(cluster: &Cluster, fairway: &Fairway, word: &str) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for number in 0..10 {
        let path = format!("/{word}-{number}");
        let began = Instant::now();
        cluster.apply(&ingress("a", "a.test", &path, "a")).await?;
        fairway.answers("a.test", &path, 200).await?;
        slowest = slowest.max(began.elapsed());
    }
    Ok(slowest)
}

/// An Ingress with labels of about so many bytes.
fn large(namespace: &str, bytes: usize) -> Value {
    let mut ingress = numbered_in(namespace, 0);
    let label = |number: usize| (format!("label-{number:05}"), json!("x".repeat(50)));
    let mut labels: Map<String, Value> = (0..bytes / 100).map(label).collect();
    labels.insert("rest".to_owned(), json!("x".repeat(bytes % 50)));
    ingress["metadata"]["labels"] = Value::Object(labels);
    ingress
}

/// The largest that etcd takes, to 8 bytes, and how long the API server has for one of about that size.
async fn largest(cluster: &Cluster) -> Result<(usize, Duration)> {
    let api: Api<Ingress> = Api::namespaced(cluster.client(), "noisy-0");
    let (mut good, mut bad) = (500_000, 3_000_000);
    let (began, mut tried) = (Instant::now(), 0);
    while bad - good > 8 {
        tried += 1;
        let middle = usize::midpoint(good, bad);
        let object = serde_json::from_value(large("noisy-0", middle))?;
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => {
                api.delete("host-0", &Default::default()).await?;
                good = middle;
            }
            Err(_) => bad = middle,
        }
    }
    ensure!(good > 500_000, "not even half a megabyte is taken");
    Ok((good, began.elapsed() / tried))
}

#[test]
fn ingresses_too_large_for_a_status_keep_no_other_one_from_its_own() {
    cluster::test(async |cluster| {
        const NOISY: usize = 8;
        const QUIET: usize = 100;
        cluster.apply(GROUND).await?;
        pod_behind_service(cluster, "a").await?;
        for number in 0..NOISY {
            namespace(cluster, &format!("noisy-{number}")).await?;
        }
        let (bytes, each) = largest(cluster).await?;
        eprintln!("labels of {bytes} bytes, {each:?} for each");
        let noisy = (0..NOISY).map(|number| large(&format!("noisy-{number}"), bytes));
        cluster.create_all(noisy).await?;
        cluster.create_all((0..QUIET).map(numbered)).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        let began = Instant::now();
        for number in 0..QUIET {
            tells(cluster, &format!("host-{number}"), &["192.0.2.1"]).await?;
        }
        let taken = began.elapsed();
        let said = fairway.said();
        ensure!(said.contains("cannot write the status of this Ingress"), "none was too large");
        // It waited for half a second after each of them that failed, ten at a time at best. What the API server itself
        // takes for them, all at once and tried again, is nobody's wait: seconds on a busy machine.
        let most = Duration::from_secs(4) + each * 4 * NOISY as u32;
        ensure!(taken < most, "told after {taken:?}, at most {most:?}");
        fairway.stop().await
    });
}
