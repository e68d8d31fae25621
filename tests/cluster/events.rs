//! Events on objects: what is told, how often, and by whom.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::Api;
use kube::api::ListParams;
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{ingress, one_host};
use crate::replicas::{leads, replica};

const CONNECT: &str = "nginx.ingress.kubernetes.io/proxy-connect-timeout";

/// Ingress `a` with a value of an annotation that is none, or a good one.
fn annotated(value: &str) -> String {
    ingress("a", "a.test", "/", "a").replace(
        "metadata: {name: a,",
        &format!("metadata: {{name: a, annotations: {{{CONNECT}: '{value}'}},"),
    )
}

/// How often what was told of an object, by reason.
async fn told(
    cluster: &Cluster,
    namespace: &str,
    object: &str,
) -> Result<BTreeMap<String, (usize, i32)>> {
    let events: Api<Event> = Api::namespaced(cluster.client(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={object}"));
    let mut told = BTreeMap::new();
    for event in events.list(&about).await?.items {
        let component = event.source.and_then(|source| source.component);
        // Controllers of Kubernetes have something to say, too.
        if component.as_deref() != Some("nginx-ingress-controller") {
            continue;
        }
        ensure!(event.involved_object.uid.is_some(), "kubectl describe finds nothing without it");
        let (events, count): &mut (usize, i32) =
            told.entry(event.reason.unwrap_or_default()).or_default();
        *events += 1;
        *count += event.count.unwrap_or_default();
    }
    Ok(told)
}

async fn tells(
    cluster: &Cluster,
    namespace: &str,
    object: &str,
    reason: &str,
    wanted: (usize, i32),
) -> Result<()> {
    eventually(format!("{wanted:?} Events {reason} on {object}"), PATIENCE, async || {
        let told = told(cluster, namespace, object).await?;
        ensure!(told.get(reason) == Some(&wanted), "they are {told:?}");
        Ok(())
    })
    .await
}

#[test]
fn two_replicas_tell_a_problem_once_and_count_it_from_then_on() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        replica(cluster, "fairway-1").await?;
        cluster.apply(&settings("60")).await?;
        let first = Fairway::start_as(cluster, "fairway-0", &[]).await?;
        leads(cluster, "fairway-0").await?;
        let second = Fairway::start_as(cluster, "fairway-1", &[]).await?;
        tells(cluster, "fairway", "fairway", "CREATE", (1, 1)).await?;
        for times in 1..=2 {
            cluster.apply(&annotated("often")).await?;
            tells(cluster, "demo", "a", "AnnotationParsingFailed", (1, times)).await?;
            // The default counts, and what is served goes on.
            second.expect("a.test", "/", 200).await?;
            cluster.apply(&annotated("5")).await?;
            tells(cluster, "demo", "a", "Sync", (1, 2 * times)).await?;
        }
        cluster.apply(&settings("61")).await?;
        tells(cluster, "fairway", "fairway", "UPDATE", (1, 1)).await?;
        // Another leader goes on counting, in the same Events.
        cluster.apply(&annotated("often")).await?;
        tells(cluster, "demo", "a", "AnnotationParsingFailed", (1, 3)).await?;
        first.stop().await?;
        leads(cluster, "fairway-1").await?;
        tells(cluster, "demo", "a", "AnnotationParsingFailed", (1, 4)).await?;
        for pod in ["fairway-0", "fairway-1"] {
            let told = told(cluster, "fairway", pod).await?;
            ensure!(told.contains_key("RELOAD"), "{pod} tells {told:?}");
        }
        second.stop().await
    });
}

fn settings(keep_alive: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: fairway, namespace: fairway}}, \
         data: {{keep-alive: '{keep_alive}'}}}}"
    )
}

#[test]
fn an_ingress_that_flaps_makes_no_flood() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[]).await?;
        leads(cluster, "fairway-0").await?;
        for number in 0..60 {
            cluster.apply(&annotated(&format!("often-{number}"))).await?;
            cluster.apply(&annotated(&number.to_string())).await?;
        }
        // What comes last is told last: when it has come, so have all the others, or never will.
        let other = ingress("other", "other.test", "/", "nowhere");
        cluster.apply(&other).await?;
        tells(cluster, "demo", "other", "NotServed", (1, 1)).await?;
        let told = told(cluster, "demo", "a").await?;
        let all: i32 = told.values().map(|(_, count)| count).sum();
        ensure!((5..=26).contains(&all), "{told:?}");
        fairway.stop().await
    });
}

#[test]
fn told_not_to_it_tells_nothing_of_objects() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        cluster.apply(&settings("60")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &["--disable-sync-events"]).await?;
        leads(cluster, "fairway-0").await?;
        cluster.apply(&annotated("often")).await?;
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        fairway.answers("mark.test", "/", 200).await?;
        eventually("an Event RELOAD", PATIENCE, async || {
            let told = told(cluster, "fairway", "fairway-0").await?;
            ensure!(told.get("RELOAD").is_some_and(|(_, count)| *count >= 2), "{told:?}");
            anyhow::Ok(())
        })
        .await?;
        for (namespace, object) in [("demo", "a"), ("demo", "mark"), ("fairway", "fairway")] {
            let told = told(cluster, namespace, object).await?;
            ensure!(told.is_empty(), "of {object}: {told:?}");
        }
        fairway.stop().await
    });
}

/// How many Events were not taken, as the metrics say.
async fn refused(fairway: &Fairway) -> Result<u64> {
    let page = fairway.page("/metrics").await?;
    let text = page.text();
    let line = text
        .lines()
        .find(|line| line.starts_with("fairway_events_dropped_total") && line.contains("refused"));
    Ok(line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default())
}

#[test]
fn an_event_in_a_namespace_that_is_being_deleted_is_no_question_of_rights() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let namespace =
            |name: &str| format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
        cluster.apply(&namespace("ending")).await?;
        // Somebody holds it, as external-dns does, while what it names goes.
        let held = |annotations: &str| {
            let meta = format!(
                "metadata: {{name: held, finalizers: [x.test/hold], annotations: {{{annotations}}},"
            );
            let text =
                ingress("held", "held.test", "/", "a").replace("metadata: {name: held,", &meta);
            text.replace("namespace: demo", "namespace: ending")
        };
        cluster.apply(&held("")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &["--enable-metrics"]).await?;
        leads(cluster, "fairway-0").await?;
        tells(cluster, "ending", "held", "NotServed", (1, 1)).await?;
        cluster.delete(&namespace("ending")).await?;
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        eventually("the namespace to end", PATIENCE, async || {
            let found = namespaces.get("ending").await?;
            ensure!(found.metadata.deletion_timestamp.is_some(), "it stays");
            anyhow::Ok(())
        })
        .await?;
        cluster.apply(&held(&format!("{CONNECT}: 'often'"))).await?;
        eventually("an Event to be refused", PATIENCE, async || {
            ensure!(refused(&fairway).await? > 0, "none is");
            anyhow::Ok(())
        })
        .await?;
        let said = fairway.said();
        ensure!(!said.contains("cannot write an Event"), "it says {said}");
        fairway.stop().await
    });
}
