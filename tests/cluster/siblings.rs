//! Several replicas and the Gateway API: an object is told what becomes of it once every ready replica serves that, and
//! one that stays silent holds it up for some seconds only.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;
use testkit::cluster::{self, Cluster};

use crate::fairway::{Fairway, free_addresses};
use crate::gateways::{FIXED, GATEWAYS, api, holds, route, told};
use crate::objects::{ingress, one_host};
use crate::replicas::{leads, pod_of_a_process, tells};

/// How long an object waits.
const BOUND: Duration = Duration::from_secs(5);

/// What the leader says when it has waited in vain.
const IN_VAIN: &str = "not every replica showed within 5 s";

/// Two replicas at addresses of their Pods, of which the first leads, and a route that both serve.
async fn start(cluster: &Cluster) -> Result<(Fairway, Fairway)> {
    one_host(cluster).await?;
    let [free] = free_addresses()?;
    let start = async |number: u8| {
        let pod = format!("fairway-{number}");
        let address = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2 + number));
        pod_of_a_process(cluster, &pod, address).await?;
        Fairway::start_at(cluster, &pod, SocketAddr::new(address, free.port()), &[FIXED]).await
    };
    let first = start(0).await?;
    leads(cluster, "fairway-0").await?;
    let second = start(1).await?;
    cluster.apply(GATEWAYS).await?;
    cluster.apply(&route("one.test")).await?;
    told(cluster, "HTTPRoute", "a", |status| is_told(status, 1)).await?;
    told(cluster, "Gateway", "web", |status| holds(&status["conditions"], "Programmed", 1)).await?;
    for replica in [&first, &second] {
        replica.reaches("one.test", "/", "a").await?;
    }
    Ok((first, second))
}

/// How often a replica has waited in vain, as it says.
fn said_in_vain(replica: &Fairway) -> usize {
    replica.said().matches(IN_VAIN).count()
}

/// Whether a route is told that this generation is accepted.
fn is_told(status: &Value, generation: u64) -> bool {
    let parents = status["parents"].as_array().into_iter().flatten();
    let mut ours = parents.filter(|one| one["controllerName"] == "fairway/gateway-controller");
    ours.any(|one| holds(&one["conditions"], "Accepted", generation))
}

#[test]
fn a_status_waits_for_a_replica_that_lags_and_is_written_once_that_has_caught_up() {
    cluster::test_with_gateway_api(async |cluster| {
        let (first, second) = start(cluster).await?;
        for attempt in 1.. {
            ensure!(attempt < 6, "the machine is too slow to see it");
            // Whoever was too late the last time answers again.
            cluster.apply(&route(&format!("before-{attempt}.test"))).await?;
            told(cluster, "HTTPRoute", "a", |status| is_told(status, 2 * attempt)).await?;
            let (host, mark) = (format!("{attempt}.test"), format!("mark-{attempt}"));
            let in_vain = said_in_vain(&first);
            second.freeze(true)?;
            let began = Instant::now();
            cluster.apply(&route(&host)).await?;
            first.reaches(&host, "/", "a").await?;
            // What does not wait is written meanwhile, and comes later.
            cluster.apply(&ingress(&mark, &format!("{mark}.test"), "/", "a")).await?;
            tells(cluster, &mark, &["192.0.2.1"]).await?;
            let status = api(cluster, "HTTPRoute").get("a").await?.data["status"].clone();
            let in_time = began.elapsed() < BOUND / 2;
            second.freeze(false)?;
            let generation = 2 * attempt + 1;
            told(cluster, "HTTPRoute", "a", |status| is_told(status, generation)).await?;
            if in_time && said_in_vain(&first) == in_vain {
                second.expect(&host, "/", 200).await?;
                ensure!(!is_told(&status, generation), "told too early: {status}");
                break;
            }
        }
        first.stop().await?;
        second.stop().await
    });
}

#[test]
fn a_replica_that_stays_silent_holds_up_a_status_for_some_seconds_and_the_next_ones_no_more() {
    cluster::test_with_gateway_api(async |cluster| {
        let (first, second) = start(cluster).await?;
        second.freeze(true)?;
        let began = Instant::now();
        cluster.apply(&route("two.test")).await?;
        first.reaches("two.test", "/", "a").await?;
        told(cluster, "HTTPRoute", "a", |status| is_told(status, 2)).await?;
        let took = began.elapsed();
        ensure!(took >= BOUND, "told after {took:?}");
        let said = first.said();
        let mut lines = said.lines().filter(|line| line.contains(IN_VAIN));
        ensure!(lines.any(|line| line.contains("fairway-1 (127.0.0.3:")), "{said}");
        let in_vain = said_in_vain(&first);
        cluster.apply(&route("three.test")).await?;
        told(cluster, "HTTPRoute", "a", |status| is_told(status, 3)).await?;
        ensure!(said_in_vain(&first) == in_vain, "{}", first.said());
        // Once it answers it is waited for again.
        second.freeze(false)?;
        second.reaches("three.test", "/", "a").await?;
        cluster.apply(&route("four.test")).await?;
        told(cluster, "HTTPRoute", "a", |status| is_told(status, 4)).await?;
        second.reaches("four.test", "/", "a").await?;
        first.stop().await?;
        second.stop().await
    });
}
