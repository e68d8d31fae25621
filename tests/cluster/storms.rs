//! Many Gateways and routes at once: a storm settles, statuses are written once, and who is bad is alone with it.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::gateways::{FIXED, GATEWAYS, api, holds, told};
use crate::objects::one_host;
use crate::replicas::replica;

/// Routes, unless `FAIRWAY_ROUTES` says how many.
const FEW: usize = 300;

/// So many requests to the API server at once.
const AT_ONCE: usize = 64;

/// A Gateway of the same class, with much that is wrong.
const BAD: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: bad, namespace: demo}
spec:
  gatewayClassName: fairway
  addresses: [{type: IPAddress, value: 203.0.113.9}]
  listeners:
  - {name: odd, protocol: example.com/odd, port: 80}
  - {name: port, protocol: HTTP, port: 4711}
  - {name: tls, protocol: HTTPS, port: 443, hostname: r0.test, tls: {certificateRefs: [{name: nobody}]}}
  - {name: http, protocol: HTTP, port: 80, hostname: bad.test}
";

fn routes() -> Result<usize> {
    match std::env::var("FAIRWAY_ROUTES") {
        Ok(number) => number.parse().context("FAIRWAY_ROUTES is a number"),
        Err(_) => Ok(FEW),
    }
}

fn route(name: &str, parent: &str, host: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {
            "parentRefs": [{"name": parent}],
            "hostnames": [host],
            "rules": [{"backendRefs": [{"name": "a", "port": 80}]}],
        },
    })
}

/// Does something to each of so many routes, many at once.
async fn each(number: usize, what: impl AsyncFn(usize) -> kube::Result<()>) -> Result<()> {
    let what = &what;
    let all = stream::iter((0..number).map(async |one| what(one).await));
    Ok(all.buffer_unordered(AT_ONCE).try_collect::<()>().await?)
}

/// The version of each route of a Gateway, once all of them are told of this generation.
async fn settled(cluster: &Cluster, generation: u64) -> Result<BTreeMap<String, String>> {
    let is_told =
        |status: &Value| holds(&status["parents"][0]["conditions"], "Accepted", generation);
    eventually("all routes to be told", PATIENCE * 4, async || {
        let all = api(cluster, "HTTPRoute").list(&Default::default()).await?;
        let of_web = || all.items.iter().filter(|one| name(one).starts_with("web-"));
        // A list is dear, so one that is still to be told is waited for before the next list.
        if let Some(one) = of_web().rfind(|one| !is_told(&one.data["status"])) {
            told(cluster, "HTTPRoute", name(one), is_told).await?;
            bail!("{} was not told", name(one));
        }
        let version = |one: &DynamicObject| one.metadata.resource_version.clone();
        let versions: BTreeMap<String, String> =
            of_web().map(|one| (name(one).to_owned(), version(one).unwrap_or_default())).collect();
        ensure!(versions.len() == routes()?, "there are {}", versions.len());
        anyhow::Ok(versions)
    })
    .await
}

fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

#[test]
fn a_storm_of_routes_settles_and_a_bad_gateway_touches_no_other_one() {
    cluster::test_with_gateway_api(async |cluster| {
        let number = routes()?;
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply_value(&route("steady", "web", "steady.test")).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        fairway.reaches("steady.test", "/", "a").await?;
        let traffic = [fairway.traffic("a.test"), fairway.traffic("steady.test")];
        let routes = api(cluster, "HTTPRoute");
        each(number, async |one| {
            let made = route(&format!("web-{one}"), "web", &format!("r{one}.test"));
            let made = serde_json::from_value(made).map_err(kube::Error::SerdeError)?;
            routes.create(&PostParams::default(), &made).await.map(drop)
        })
        .await?;
        settled(cluster, 1).await?;
        fairway.reaches("r0.test", "/", "a").await?;
        // The storm, and a Gateway that comes in it with routes of its own, some for the hosts of others.
        let began = Instant::now();
        cluster.apply(BAD).await?;
        each(number, async |one| {
            let patch = Patch::Merge(json!({"spec": {"hostnames": [format!("moved-{one}.test")]}}));
            let name = format!("web-{one}");
            routes.patch(&name, &PatchParams::default(), &patch).await.map(drop)
        })
        .await?;
        eprintln!("{number} changes were sent in {:?}", began.elapsed());
        cluster.apply_value(&route("bad-0", "bad", "steady.test")).await?;
        cluster.apply_value(&route("bad-1", "bad", "bad.test")).await?;
        for one in [0, number / 2, number - 1] {
            fairway.reaches(&format!("moved-{one}.test"), "/", "a").await?;
            fairway.answers(&format!("r{one}.test"), "/", 404).await?;
        }
        let versions = settled(cluster, 2).await?;
        eprintln!("they were served and told after {:?}", began.elapsed());
        told(cluster, "Gateway", "web", |status| {
            holds(&status["conditions"], "Programmed", 1)
                && status["listeners"][0]["attachedRoutes"] == number + 1
        })
        .await?;
        told(cluster, "Gateway", "bad", |status| {
            let all = status["listeners"].as_array().cloned().unwrap_or_default();
            let good = all.iter().filter(|one| holds(&one["conditions"], "Accepted", 1));
            all.len() == 4 && good.count() < 4 && !holds(&status["conditions"], "Programmed", 1)
        })
        .await?;
        // Another change is told, and nobody else is written to again.
        cluster.apply_value(&route("bad-2", "bad", "late.test")).await?;
        told(cluster, "HTTPRoute", "bad-2", |status| {
            status["parents"].as_array().is_some_and(|parents| !parents.is_empty())
        })
        .await?;
        ensure!(settled(cluster, 2).await? == versions, "a status was written again");
        for requests in traffic {
            requests.stop().await.all_good()?;
        }
        fairway.stop().await
    });
}
