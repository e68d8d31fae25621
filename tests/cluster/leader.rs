//! One replica writes, whatever happens to it, to its Lease or to the API server; all of them serve.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::{WatchStreamExt, watcher};
use testkit::cluster::{self, Cluster, eventually};
use tokio::task::JoinHandle;

use crate::fairway::Fairway;
use crate::objects::{ingress, one_host};
use crate::replicas::{ingresses, leads, lease, replica, take_lease, tells, told};

/// A short time, so that tests need not wait for long.
const TTL: Duration = Duration::from_secs(8);

/// Replica `fairway-<number>`, which is known by the address that it writes.
pub(crate) async fn start(cluster: &Cluster, number: u8) -> Result<Fairway> {
    start_with(cluster, number, TTL).await
}

async fn start_with(cluster: &Cluster, number: u8, ttl: Duration) -> Result<Fairway> {
    let pod = format!("fairway-{number}");
    replica(cluster, &pod).await?;
    let address = format!("--publish-status-address={}", address(number));
    let ttl = format!("--election-ttl={}s", ttl.as_secs());
    Fairway::start_as(cluster, &pod, &[&address, &ttl]).await
}

pub(crate) fn address(number: u8) -> String {
    format!("192.0.2.{number}")
}

/// A new Ingress, and who has written its status.
pub(crate) async fn written_by(cluster: &Cluster, name: &str, number: u8) -> Result<()> {
    cluster.apply(&ingress(name, &format!("{name}.test"), "/", "a")).await?;
    tells(cluster, name, &[&address(number)]).await
}

/// Notes every address that any Ingress ever tells from now on.
pub(crate) struct Witness {
    seen: Arc<Mutex<BTreeSet<String>>>,
    watching: JoinHandle<()>,
}

impl Witness {
    pub(crate) async fn start(cluster: &Cluster) -> Result<Self> {
        let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let noted = seen.clone();
        let mut events =
            Box::pin(watcher(ingresses(cluster), watcher::Config::default()).default_backoff());
        while !matches!(events.next().await, Some(Ok(watcher::Event::InitDone))) {}
        let watching = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if let Ok(watcher::Event::Apply(ingress)) = event {
                    noted.lock().expect("no panic").extend(told(&ingress));
                }
            }
        });
        Ok(Self { seen, watching })
    }

    /// Waits until it has heard of an address: it may be later than whoever asks for the object.
    pub(crate) async fn hears(&self) -> Result<()> {
        eventually("the witness to hear", crate::fairway::PATIENCE, async || {
            ensure!(!self.seen.lock().expect("no panic").is_empty(), "it has heard nothing");
            Ok(())
        })
        .await
    }

    pub(crate) fn end(self) -> BTreeSet<String> {
        self.watching.abort();
        std::mem::take(&mut self.seen.lock().expect("no panic"))
    }
}

#[test]
fn of_two_replicas_one_writes_and_hands_over_as_soon_as_it_ends() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let first = start(cluster, 1).await?;
        leads(cluster, "fairway-1").await?;
        let second = start(cluster, 2).await?;
        let witness = Witness::start(cluster).await?;
        written_by(cluster, "before", 1).await?;
        witness.hears().await?;
        ensure!(witness.end() == BTreeSet::from([address(1)]));
        let ended = Instant::now();
        first.stop().await?;
        leads(cluster, "fairway-2").await?;
        let took = ended.elapsed();
        ensure!(took < TTL / 2, "the lead was handed over after {took:?}");
        // Nothing was taken away, since a replica stays; and the next one makes it its own.
        tells(cluster, "a", &[&address(2)]).await?;
        written_by(cluster, "after", 2).await?;
        ensure!(lease(cluster).await?.lease_transitions == Some(1));
        second.stop().await
    });
}

#[test]
fn a_leader_that_dies_is_followed_when_its_time_is_over() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let mut first = start(cluster, 1).await?;
        leads(cluster, "fairway-1").await?;
        let second = start(cluster, 2).await?;
        let died = Instant::now();
        first.process().kill().await?;
        leads(cluster, "fairway-2").await?;
        let took = died.elapsed();
        ensure!(took > TTL / 2 && took < TTL * 2, "the next leader came after {took:?}");
        written_by(cluster, "after", 2).await?;
        second.stop().await
    });
}

#[test]
fn a_leader_that_dies_with_its_pod_is_followed_as_soon_as_it_is_late() {
    cluster::test(async |cluster| {
        // Long enough to tell what is late from what is over.
        let ttl = TTL * 4;
        one_host(cluster).await?;
        let mut first = start_with(cluster, 1, ttl).await?;
        leads(cluster, "fairway-1").await?;
        let second = start_with(cluster, 2, ttl).await?;
        eventually("the second one to know of the first", crate::fairway::PATIENCE, async || {
            let log = std::fs::read_to_string(cluster.folder().join("fairway-2.log"))?;
            ensure!(log.contains("another replica is the leader"), "{log}");
            anyhow::Ok(())
        })
        .await?;
        first.process().kill().await?;
        let pods: Api<Pod> = Api::namespaced(cluster.client(), "fairway");
        pods.delete("fairway-1", &DeleteParams::default().grace_period(0)).await?;
        let died = Instant::now();
        leads(cluster, "fairway-2").await?;
        let took = died.elapsed();
        ensure!(took < ttl / 2, "the next leader came after {took:?}");
        written_by(cluster, "after", 2).await?;
        second.stop().await
    });
}

#[test]
fn a_leader_that_was_paused_for_too_long_writes_nothing_afterwards() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let mut first = start(cluster, 1).await?;
        tells(cluster, "a", &[&address(1)]).await?;
        let second = start(cluster, 2).await?;
        first.process().pause()?;
        // Something that the paused one would write, were it still the leader when it wakes up.
        cluster.apply(&ingress("meanwhile", "meanwhile.test", "/", "a")).await?;
        leads(cluster, "fairway-2").await?;
        tells(cluster, "meanwhile", &[&address(2)]).await?;
        let witness = Witness::start(cluster).await?;
        first.process().resume()?;
        first.answers("meanwhile.test", "/", 200).await.context("it serves on")?;
        for number in 0..3 {
            written_by(cluster, &format!("after-{number}"), 2).await?;
            first.answers(&format!("after-{number}.test"), "/", 200).await?;
        }
        witness.hears().await?;
        let seen = witness.end();
        ensure!(seen == BTreeSet::from([address(2)]), "{seen:?}");
        // It is well, and leads again when it is its turn.
        second.stop().await?;
        leads(cluster, "fairway-1").await?;
        written_by(cluster, "again", 1).await?;
        first.stop().await
    });
}

#[test]
fn a_stolen_lease_ends_the_writes_and_not_the_traffic() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = start(cluster, 1).await?;
        tells(cluster, "a", &[&address(1)]).await?;
        let traffic = fairway.traffic("a.test");
        // Wall clocks that are far off change nothing: only silence counts.
        take_lease(cluster, "thief", 6).await?;
        let stolen = Instant::now();
        // With its next renewal it notices.
        eventually("a word about the thief", crate::fairway::PATIENCE, async || {
            let log = std::fs::read_to_string(cluster.folder().join("fairway-1.log"))?;
            ensure!(log.contains("another replica has taken the lead"));
            anyhow::Ok(())
        })
        .await?;
        cluster.apply(&ingress("new", "new.test", "/", "a")).await?;
        fairway.answers("new.test", "/", 200).await?;
        let silent = told(&ingresses(cluster).get("new").await?);
        ensure!(silent.is_empty(), "written without the lead: {silent:?}");
        leads(cluster, "fairway-1").await?;
        ensure!(stolen.elapsed() > Duration::from_secs(5), "after {:?}", stolen.elapsed());
        tells(cluster, "new", &[&address(1)]).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn a_leader_that_cannot_reach_the_api_server_stops_before_another_begins() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = start(cluster, 1).await?;
        tells(cluster, "a", &[&address(1)]).await?;
        let traffic = fairway.traffic("a.test");
        cluster.wire().silence();
        cluster.apply(&ingress("meanwhile", "meanwhile.test", "/", "a")).await?;
        // Another replica, on a node that does reach it, takes over as soon as it may.
        let before = lease(cluster).await?.renew_time;
        #[expect(
            clippy::disallowed_methods,
            reason = "absence is shown by time: as long as a Lease lasts"
        )]
        tokio::time::sleep(TTL).await;
        ensure!(lease(cluster).await?.renew_time == before, "renewed through a silent wire");
        take_lease(cluster, "other", 6).await?;
        let witness = Witness::start(cluster).await?;
        cluster.wire().up();
        fairway.answers("meanwhile.test", "/", 200).await?;
        ensure!(witness.end().is_empty(), "written without the lead");
        leads(cluster, "fairway-1").await?;
        tells(cluster, "meanwhile", &[&address(1)]).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn nothing_can_be_written_for_a_while() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = start(cluster, 1).await?;
        tells(cluster, "a", &[&address(1)]).await?;
        let traffic = fairway.traffic("a.test");
        cluster.pause_etcd()?;
        let log = cluster.folder().join("fairway-1.log");
        eventually("the lead to end", crate::fairway::PATIENCE, async || {
            let log = std::fs::read_to_string(&log)?;
            ensure!(log.contains("the lead could not be renewed in time"), "{log}");
            Ok(())
        })
        .await?;
        fairway.healthy().await.context("that is no reason to be unhealthy")?;
        cluster.resume_etcd()?;
        // Once the API server has recovered.
        eventually("a new Ingress", crate::fairway::PATIENCE, async || {
            cluster.apply(&ingress("after", "after.test", "/", "a")).await
        })
        .await?;
        tells(cluster, "after", &[&address(1)]).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn a_slow_api_server_costs_no_lead() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = start(cluster, 1).await?;
        leads(cluster, "fairway-1").await?;
        let first = lease(cluster).await?.renew_time;
        // Whatever is asked takes up to a second, as 5 s are for the usual 30 s: in three times the Lease's time it
        // is renewed again and again.
        let slow = Instant::now();
        while slow.elapsed() < TTL * 3 {
            cluster.wire().silence();
            #[expect(clippy::disallowed_methods, reason = "a fault that lasts a second")]
            tokio::time::sleep(Duration::from_secs(1)).await;
            cluster.wire().up();
            #[expect(clippy::disallowed_methods, reason = "a fault that lasts a second")]
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let after = lease(cluster).await?;
        ensure!(after.holder_identity.as_deref() == Some("fairway-1"), "{after:?}");
        ensure!(after.lease_transitions == Some(0) && after.renew_time > first, "{after:?}");
        written_by(cluster, "after", 1).await?;
        fairway.stop().await
    });
}

#[test]
fn without_an_election_no_status_is_written() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-1").await?;
        let flags = ["--disable-leader-election", "--publish-status-address=192.0.2.1"];
        let fairway = Fairway::start_as(cluster, "fairway-1", &flags).await?;
        cluster.apply(&ingress("late", "late.test", "/", "a")).await?;
        fairway.answers("late.test", "/", 200).await?;
        ensure!(lease(cluster).await.is_err(), "there is a Lease");
        eventually("Fairway to say so", crate::fairway::PATIENCE, async || {
            let log = std::fs::read_to_string(cluster.folder().join("fairway-1.log"))?;
            ensure!(log.contains("the status of Ingresses is not written"), "{log}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        ensure!(told(&ingresses(cluster).get("late").await?).is_empty());
        fairway.stop().await
    });
}
