//! Whatever happens to the API server, traffic never stops, and afterwards the state converges.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubernetes::{ClientOptions, ClusterOptions, Following};
use objects::Snapshot;
use std::sync::Arc;
use testkit::cluster::{self, Cluster, Connection, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{ingress, one_host, pod, pod_behind_service, slice};

/// How long an API server stays out of reach; a minute takes too long for every run of all tests.
fn outage() -> Result<Duration> {
    match std::env::var("FAIRWAY_OUTAGE_SECONDS") {
        Ok(seconds) => {
            let seconds = seconds.parse().context("FAIRWAY_OUTAGE_SECONDS is a number")?;
            Ok(Duration::from_secs(seconds))
        }
        Err(_) => Ok(Duration::from_secs(8)),
    }
}

/// What a test changes while Fairway cannot see it, so that each kind of event has to be caught up with.
struct Unseen {
    b: std::net::IpAddr,
}

impl Unseen {
    /// Hosts: a.test, which stays, and gone.test and moved.test, which will not.
    async fn prepare(cluster: &Cluster) -> Result<Self> {
        one_host(cluster).await?;
        pod_behind_service(cluster, "moved").await?;
        let b = pod(cluster, "b").await?;
        cluster.apply(&ingress("gone", "gone.test", "/", "a")).await?;
        cluster.apply(&ingress("moved", "moved.test", "/", "moved")).await?;
        Ok(Self { b })
    }

    async fn change(&self, cluster: &Cluster) -> Result<()> {
        cluster.delete(&ingress("gone", "gone.test", "/", "a")).await?;
        cluster.apply(&ingress("new", "new.test", "/", "a")).await?;
        cluster.apply(&slice("moved", self.b, true)).await
    }

    async fn shows(&self, fairway: &Fairway) -> Result<()> {
        fairway.answers("new.test", "/", 200).await?;
        fairway.answers("gone.test", "/", 404).await?;
        fairway.reaches("moved.test", "/", "b").await
    }
}

#[test]
fn the_api_server_is_restarted() {
    cluster::test(async |cluster| {
        let unseen = Unseen::prepare(cluster).await?;
        let fairway = Fairway::start_with(cluster, &["--enable-metrics"]).await?;
        let traffic = fairway.traffic("a.test");
        cluster.restart_apiserver().await?;
        fairway.healthy().await.context("an absent API server is no reason to be unhealthy")?;
        unseen.change(cluster).await?;
        unseen.shows(&fairway).await?;
        // Of ConfigMaps and classes there is no news: that they are followed again is found out all the same.
        eventually("every kind to be followed again", PATIENCE, async || {
            let page = fairway.page("/metrics").await?.text();
            let synced: Vec<&str> =
                page.lines().filter(|line| line.starts_with("fairway_watch_synced{")).collect();
            ensure!(synced.len() >= 6, "{synced:?}");
            ensure!(synced.iter().all(|line| line.ends_with(" 1")), "{synced:?}");
            Ok(())
        })
        .await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn the_api_server_is_unreachable_for_a_while() {
    cluster::test(async |cluster| {
        let unseen = Unseen::prepare(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        cluster.wire().down();
        unseen.change(cluster).await?;
        still_serving(&fairway, outage()?).await?;
        cluster.wire().up();
        unseen.shows(&fairway).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn the_api_server_falls_silent_for_a_while() {
    cluster::test(async |cluster| {
        let unseen = Unseen::prepare(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        cluster.wire().silence();
        unseen.change(cluster).await?;
        still_serving(&fairway, outage()?).await?;
        cluster.wire().up();
        unseen.shows(&fairway).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn history_is_forgotten_while_fairway_cannot_look() {
    cluster::test(async |cluster| {
        let unseen = Unseen::prepare(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        cluster.wire().down();
        unseen.change(cluster).await?;
        // From here on every version that Fairway knows is 410 Gone.
        cluster.forget_history().await?;
        fairway.expect("gone.test", "/", 200).await.context("it cannot know yet")?;
        cluster.wire().up();
        unseen.shows(&fairway).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

/// Waits until exactly one of these passwords is let in at `guarded.test`.
async fn lets_in(fairway: &Fairway, wanted: &str) -> Result<()> {
    eventually(format!("only the password {wanted} to be let in"), PATIENCE, async || {
        for password in ["before", "between", "after"] {
            let credentials = STANDARD.encode(format!("me:{password}"));
            let header = format!("Authorization: Basic {credentials}");
            let mut connection = Connection::open(fairway.http()).await?;
            let answer = connection.get_with("guarded.test", "/", &[&header]).await?;
            let expected = if password == wanted { 200 } else { 401 };
            ensure!(answer.status == expected, "{password}: {}", answer.status);
        }
        Ok(())
    })
    .await
}

#[test]
fn what_etcd_says_counts_after_a_backup_was_restored_though_it_is_older() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let guarded = ingress("guarded", "guarded.test", "/", "a").replace(
            "namespace: demo}",
            "namespace: demo, annotations: {nginx.ingress.kubernetes.io/auth-type: basic, \
             nginx.ingress.kubernetes.io/auth-secret: auth}}",
        );
        let secret = |password: &str| {
            format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: auth, namespace: demo}}, \
                 stringData: {{auth: 'me:{{PLAIN}}{password}'}}}}"
            )
        };
        cluster.apply(&secret("before")).await?;
        cluster.apply(&guarded).await?;
        let fairway = Fairway::start(cluster).await?;
        lets_in(&fairway, "before").await?;
        cluster.back_up_etcd()?;
        // So that what is written after the restore has a lower version than what it replaces.
        for number in 0..200 {
            cluster.apply(&ingress("busy", &format!("busy-{number}.test"), "/", "a")).await?;
        }
        cluster.apply(&secret("between")).await?;
        lets_in(&fairway, "between").await?;
        cluster.restore_etcd().await?;
        lets_in(&fairway, "before").await.context("of the backup")?;
        cluster.apply(&secret("after")).await?;
        lets_in(&fairway, "after").await.context("written after the restore")?;
        fairway.stop().await
    });
}

#[test]
fn watches_are_cut_in_the_middle_of_a_message() {
    cluster::test(async |cluster| {
        let unseen = Unseen::prepare(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        let long = "x".repeat(50_000);
        for number in 0..5 {
            let broken = cluster.wire().broken();
            cluster.wire().cut_within(1000);
            let host = format!("cut-{number}.test");
            let yaml = ingress(&format!("cut-{number}"), &host, "/", "a").replace(
                "namespace: demo}",
                &format!("namespace: demo, annotations: {{example.test/long: {long}}}}}"),
            );
            cluster.apply(&yaml).await?;
            fairway.answers(&host, "/", 200).await?;
            ensure!(cluster.wire().broken() > broken, "no watch broke at {host}");
        }
        unseen.change(cluster).await?;
        unseen.shows(&fairway).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

/// Looks for a while whether Fairway goes on with what it knows.
async fn still_serving(fairway: &Fairway, period: Duration) -> Result<()> {
    let end = tokio::time::Instant::now() + period;
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    while tokio::time::Instant::now() < end {
        looks.tick().await;
        fairway.healthy().await.context("an absent API server is no reason to be unhealthy")?;
        let known = fairway.get("gone.test", "/").await?.status;
        ensure!(known == 200, "it cannot know that gone.test is gone, and says {known}");
        let unknown = fairway.get("new.test", "/").await?.status;
        ensure!(unknown == 404, "it cannot know new.test, and says {unknown}");
    }
    Ok(())
}

#[test]
fn connections_that_are_dead_without_a_word_are_given_up() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let kubeconfig = Some(cluster.fairway_kubeconfig().await?);
        // Fairway's own watches last for 40 s.
        let (watch, read) = (Duration::from_secs(1), Some(Duration::from_secs(6)));
        let client = ClientOptions { kubeconfig, read, ..ClientOptions::default() };
        let mut feed = kubernetes::cluster(ClusterOptions {
            client: kubernetes::client(&client).await?,
            server: kubernetes::server(&client).await?,
            namespace: None,
            namespace_selector: None,
            pinned: Vec::new(),
            guards: None,
            secrets_of: Arc::new(|_| Vec::new()),
            patience: PATIENCE,
            once: false,
            watch,
            relist: Duration::from_secs(1800),
            following: Following::default(),
        })
        .await?;
        cluster.wire().forget();
        cluster.apply(&ingress("new", "new.test", "/", "a")).await?;
        let is_there =
            |snapshot: &Snapshot| snapshot.ingresses.keys().any(|key| &*key.name == "new");
        let seen = tokio::time::timeout(PATIENCE, feed.snapshots.wait_for(is_there)).await;
        seen.context("nobody asks anew")??;
        Ok(())
    });
}
