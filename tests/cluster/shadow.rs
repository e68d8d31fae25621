//! `fairway run --shadow` beside the Fairway that serves a real cluster: copies of live requests come to it, changes
//! reach it, and nothing that it does is to be seen in the cluster.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use serde_json::{Value, json};
use testkit::cluster::{self, eventually};
use testkit::kubelet::GATEWAY;

use crate::fairway::{Fairway, PATIENCE};
use crate::leader::{Witness, address, start, written_by};
use crate::objects::{ingress, one_host};
use crate::replicas::{leads, replica};

/// What the page says of copies.
async fn copies(shadow: &Fairway) -> Result<Value> {
    let page = shadow.page("/api/v1/shadow").await?;
    serde_json::from_slice(&page.body).context("JSON")
}

/// Waits until so many copies of a host came to one decision.
async fn decided(shadow: &Fairway, host: &str, decision: &str, times: u64) -> Result<Value> {
    eventually(format!("{times} copies of {host}: {decision}"), PATIENCE, async || {
        let all = copies(shadow).await?;
        let mut groups = all["groups"].as_array().context("a list")?.iter();
        let is_it = |group: &&Value| group["host"] == host && group["decision"] == decision;
        let group = groups.find(is_it).with_context(|| format!("{all}"))?;
        ensure!(group["count"] == times, "{group}");
        Ok(group.clone())
    })
    .await
}

#[test]
fn a_shadow_beside_who_serves_gets_copies_and_is_not_to_be_seen_in_the_cluster() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let witness = Witness::start(cluster).await?;
        replica(cluster, "fairway-9").await?;
        let hidden = format!("--publish-status-address={}", address(9));
        // It is there first: whoever takes part in an election would lead.
        let shadow = Fairway::start_as(cluster, "fairway-9", &["--shadow", &hidden]).await?;
        let first = start(cluster, 1).await?;
        leads(cluster, "fairway-1").await?;
        let notes = json!({
            "nginx.ingress.kubernetes.io/mirror-target":
                format!("http://{GATEWAY}:{}$request_uri", shadow.http().port()),
            "nginx.ingress.kubernetes.io/mirror-host": "$host",
        });
        let copied = ingress("a", "a.test", "/", "a")
            .replace("namespace: demo}", &format!("namespace: demo, annotations: {notes}}}"));
        cluster.apply(&copied).await?;
        eventually("copies to be made", PATIENCE, async || {
            first.expect("a.test", "/first", 200).await?;
            ensure!(copies(&shadow).await?["copies"]["upstream"] != 0, "none came");
            Ok(())
        })
        .await?;
        let before = copies(&shadow).await?["copies"]["upstream"].as_u64().context("a number")?;
        for number in 0..20 {
            let path = format!("/page-{number}?token=secret");
            let answer = first.expect("a.test", &path, 200).await?.json()?;
            ensure!(answer["pod"] == "a", "{answer}");
        }
        let group = decided(&shadow, "a.test", "upstream", before + 20).await?;
        ensure!(group["ingress"] == "demo/a" && group["upstream"] == "demo-a-80", "{group}");
        // What changes in the cluster counts for copies as for who serves.
        let moved = json!({"nginx.ingress.kubernetes.io/permanent-redirect": "https://b.test/"});
        let moved = ingress("moved", "moved.test", "/", "a")
            .replace("namespace: demo}", &format!("namespace: demo, annotations: {moved}}}"));
        cluster.apply(&moved).await?;
        first.answers("moved.test", "/", 301).await?;
        shadow.answers("moved.test", "/", 301).await?;
        let group = decided(&shadow, "moved.test", "redirect", 1).await?;
        ensure!(group["ingress"] == "demo/moved" && group["status"] == 301, "{group}");
        // Nobody leads for a while, and then another one does.
        first.stop().await?;
        let second = start(cluster, 2).await?;
        leads(cluster, "fairway-2").await?;
        written_by(cluster, "after", 2).await?;
        shadow.answers("after.test", "/", 204).await?;
        witness.hears().await?;
        let seen = witness.end();
        ensure!(!seen.contains(&address(9)), "it wrote a status: {seen:?}");
        let events: Api<Event> = Api::all(cluster.client());
        for event in events.list(&Default::default()).await? {
            ensure!(event.reporting_instance.as_deref() != Some("fairway-9"), "{event:?}");
        }
        second.stop().await?;
        shadow.stop().await
    });
}
