//! Many Gateways with routes at once: each status is written once, and nothing is written when nothing changes.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::PostParams;
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::gateways::{FIXED, GATEWAYS, api, holds, told};
use crate::objects::one_host;
use crate::replicas::replica;

/// Gateways, unless `FAIRWAY_GATEWAYS` says how many.
const FEW: usize = 50;

/// Routes of each of them.
const ROUTES: usize = 5;

/// So many requests to the API server at once.
const AT_ONCE: usize = 64;

fn gateway(number: usize) -> Value {
    let host = format!("*.g{number}.test");
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": format!("gw-{number}"), "namespace": "demo"},
        "spec": {
            "gatewayClassName": "fairway",
            "listeners": [{"name": "http", "protocol": "HTTP", "port": 80, "hostname": host}],
        },
    })
}

fn route(name: &str, gateway: usize) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {
            "parentRefs": [{"name": format!("gw-{gateway}")}],
            "hostnames": [format!("{name}.g{gateway}.test")],
            "rules": [{"backendRefs": [{"name": "a", "port": 80}]}],
        },
    })
}

async fn create(cluster: &Cluster, kind: &str, objects: Vec<Value>) -> Result<()> {
    let api = &api(cluster, kind);
    let all = stream::iter(objects.into_iter().map(async |object| {
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        api.create(&PostParams::default(), &object).await.map(drop)
    }));
    Ok(all.buffer_unordered(AT_ONCE).try_collect::<()>().await?)
}

/// Writes of statuses in the Gateway API, as the API server counts them: nobody else makes any.
async fn writes(cluster: &Cluster) -> Result<u64> {
    let ask = http::Request::get("/metrics").body(Vec::new())?;
    let page = cluster.client().request_text(ask).await?;
    let of_statuses = page.lines().filter(|line| {
        let has = |label: &str| line.contains(label);
        line.starts_with("apiserver_request_total{")
            && has("group=\"gateway.networking.k8s.io\"")
            && has("subresource=\"status\"")
    });
    let counts = of_statuses.map(|line| {
        let (_, count) = line.rsplit_once(' ').context("a line without a value")?;
        Ok(count.parse::<f64>()? as u64)
    });
    counts.sum()
}

/// Waits until every Gateway and every route is told.
async fn settled(cluster: &Cluster, gateways: usize, patience: u32) -> Result<()> {
    eventually("all to be told", PATIENCE * patience, async || {
        let is_told = |status: &Value| holds(&status["parents"][0]["conditions"], "Accepted", 1);
        let told = all_told(cluster, "HTTPRoute", is_told).await?;
        ensure!(told == gateways * ROUTES, "{told} routes are told");
        let is_told = |status: &Value| {
            holds(&status["conditions"], "Programmed", 1)
                && status["listeners"][0]["attachedRoutes"] == ROUTES
        };
        let told = all_told(cluster, "Gateway", is_told).await?;
        ensure!(told == gateways, "{told} Gateways are told");
        anyhow::Ok(())
    })
    .await
}

/// How many of a kind there are, all of them told. A list is dear, so one that is still to be told is waited for before
/// the next list.
async fn all_told(
    cluster: &Cluster,
    kind: &str,
    is_told: impl Fn(&Value) -> bool,
) -> Result<usize> {
    let all = api(cluster, kind).list(&Default::default()).await?.items;
    if let Some(one) = all.iter().rfind(|one| !is_told(&one.data["status"])) {
        let name = one.metadata.name.as_deref().context("an object without a name")?;
        told(cluster, kind, name, is_told).await?;
        bail!("{kind} {name} was not told");
    }
    Ok(all.len())
}

/// Adds a route, waits until it and its Gateway are told, and says how much was written for that.
async fn written_for_one_more(cluster: &Cluster, name: &str, attached: usize) -> Result<u64> {
    let before = writes(cluster).await?;
    cluster.apply_value(&route(name, 0)).await?;
    eventually("a late route and its Gateway to be told", PATIENCE * 4, async || {
        let late = api(cluster, "HTTPRoute").get(name).await?;
        let conditions = &late.data["status"]["parents"][0]["conditions"];
        ensure!(holds(conditions, "Accepted", 1), "it is not told");
        let gateway = api(cluster, "Gateway").get("gw-0").await?;
        let count = &gateway.data["status"]["listeners"][0]["attachedRoutes"];
        ensure!(*count == attached, "its Gateway has {count}");
        anyhow::Ok(())
    })
    .await?;
    Ok(writes(cluster).await? - before)
}

#[test]
fn many_gateways_and_routes_are_told_once_and_nothing_is_written_when_nothing_changes() {
    let number = std::env::var("FAIRWAY_GATEWAYS").ok().and_then(|text| text.parse().ok());
    let gateways = number.unwrap_or(FEW);
    let patience = 4 + u32::try_from(gateways / 100).expect("not that many");
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        // Whose routes are counted elsewhere.
        api(cluster, "Gateway").delete("web", &Default::default()).await?;
        api(cluster, "Gateway").delete("theirs", &Default::default()).await?;
        replica(cluster, "fairway-0").await?;
        let stays = [FIXED, "--update-status-on-shutdown=false"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &stays).await?;
        let (before, began) = (writes(cluster).await?, Instant::now());
        create(cluster, "Gateway", (0..gateways).map(gateway).collect()).await?;
        let of = |number: usize| route(&format!("r-{number}"), number % gateways);
        create(cluster, "HTTPRoute", (0..gateways * ROUTES).map(of).collect()).await?;
        eprintln!("{gateways} Gateways and their routes are there after {:?}", began.elapsed());
        settled(cluster, gateways, patience).await?;
        let spent = writes(cluster).await? - before;
        eprintln!("they are told after {:?}, with {spent} writes", began.elapsed());
        // A route is told once, a Gateway whenever it has more routes; nobody can be told by fewer.
        let (least, most) = (gateways * (ROUTES + 1), gateways * (2 * ROUTES + 1));
        ensure!((least..=most).contains(&usize::try_from(spent)?), "{spent} writes");
        for (name, attached) in [("late-0", ROUTES + 1), ("late-1", ROUTES + 2)] {
            let written = written_for_one_more(cluster, name, attached).await?;
            ensure!(written <= 2, "{written} statuses were written for one route");
        }
        fairway.stop().await?;
        // Who leads next finds everything as it should be.
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        let before = writes(cluster).await?;
        for (name, attached) in [("late-2", ROUTES + 3), ("late-3", ROUTES + 4)] {
            written_for_one_more(cluster, name, attached).await?;
        }
        let written = writes(cluster).await? - before;
        ensure!(written <= 4, "{written} statuses were written after a start");
        fairway.stop().await
    });
}
