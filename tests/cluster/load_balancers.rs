//! Gateways behind Services of type LoadBalancer: their ports on every replica, and the address that they are told.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, Connection, eventually};
use tokio::process::Command;

use crate::fairway::{Fairway, PATIENCE};
use crate::gateways::{GATEWAYS, api, holds, told};
use crate::objects::one_host;
use crate::replicas::replica;

/// Addresses of the bridge that Pods are on, as if replicas had them. EndpointSlices take no address of the loopback.
const POOL: &str = "10.244.0.72/31";
pub(crate) const REPLICA: &str = "10.244.0.72";

/// What `--gateway-services` takes.
const RIGHTS: &str = include_str!("../../deploy/gateway-services.yaml");

/// The Service of the replicas, with one of them.
pub(crate) const OWN: &str = "
apiVersion: v1
kind: Service
metadata: {name: own, namespace: fairway}
spec: {type: LoadBalancer, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: own, namespace: fairway, labels: {kubernetes.io/service-name: own}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints: [{addresses: [10.244.0.72], nodeName: node-a, conditions: {ready: true}}]
";

/// Two Gateways with the same ports, hosts and paths, and another route to each.
pub(crate) fn gateway(name: &str, more: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: demo}}
spec:
  gatewayClassName: fairway
  infrastructure: {{labels: {{tier: {name}}}}}
{more}
  listeners:
  - {{name: http, protocol: HTTP, port: 8080}}
  - {{name: tcp, protocol: TCP, port: 9090}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: demo}}
spec:
  parentRefs: [{{name: {name}}}]
  rules:
  - matches: [{{path: {{value: /moved}}}}]
    filters: [{{type: RequestRedirect, requestRedirect: {{hostname: {name}.test}}}}]
  - matches: [{{path: {{value: /}}}}]
    backendRefs: [{{name: a, port: 80}}]
    filters: [{{type: ResponseHeaderModifier, responseHeaderModifier: {{set: [{{name: x-gateway, value: {name}}}]}}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {{name: {name}, namespace: demo}}
spec:
  parentRefs: [{{name: {name}}}]
  rules: [{{backendRefs: [{{name: a, port: 80}}]}}]
"
    )
}

pub(crate) fn services(cluster: &Cluster) -> Api<Service> {
    Api::namespaced(cluster.client(), "demo")
}

/// Where the Service of a Gateway leads from a port, once it is there.
pub(crate) async fn target(cluster: &Cluster, gateway: &str, port: u16) -> Result<u16> {
    let name = format!("gateway-{gateway}");
    eventually(format!("Service {name}"), PATIENCE, async || {
        let found = json!(services(cluster).get(&name).await?);
        ensure!(found["spec"]["type"] == "LoadBalancer", "it is {}", found["spec"]);
        ensure!(found["metadata"]["labels"]["tier"] == gateway);
        let ports = found["spec"]["ports"].as_array().context("it has no ports")?;
        let found = ports.iter().find(|one| one["port"] == port).context("no such port")?;
        let target = found["targetPort"].as_u64().context("no number")?;
        Ok(u16::try_from(target)?)
    })
    .await
}

/// Gives the Service of a Gateway addresses, as a load balancer does.
pub(crate) async fn balance(cluster: &Cluster, gateway: &str, addresses: &[&str]) -> Result<()> {
    let one = |text: &&str| match text.parse::<IpAddr>() {
        Ok(_) => json!({"ip": text}),
        Err(_) => json!({"hostname": text}),
    };
    let ingress: Value = addresses.iter().map(one).collect();
    let status = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
    let name = format!("gateway-{gateway}");
    services(cluster).patch_status(&name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// Waits until a request to this port of a replica is answered as the Gateway's routes say.
pub(crate) async fn serves(gateway: &str, (replica, port): (&str, u16)) -> Result<()> {
    let place: SocketAddr = format!("{replica}:{port}").parse()?;
    eventually(format!("{gateway} at {place}"), PATIENCE, async || {
        let answer = Connection::open(place).await?.get("any.test", "/").await?;
        ensure!(answer.status == 200, "it answers {}", answer.status);
        ensure!(answer.header("x-gateway") == Some(gateway), "it is another Gateway's");
        let seen = answer.json()?;
        ensure!(seen["headers"]["X-Forwarded-Port"][0] == "8080", "it saw {seen}");
        anyhow::Ok(())
    })
    .await?;
    let moved = Connection::open(place).await?.get("any.test", "/moved").await?;
    let to = moved.header("location").unwrap_or_default();
    ensure!(to == format!("http://{gateway}.test:8080/moved"), "it leads to {to}");
    Ok(())
}

pub(crate) async fn tells(
    cluster: &Cluster,
    gateway: &str,
    reason: &str,
    addresses: &[&str],
) -> Result<()> {
    told(cluster, "Gateway", gateway, |status| {
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let mut programmed = conditions.iter().filter(|one| one["type"] == "Programmed");
        let given = status["addresses"].as_array().cloned().unwrap_or_default();
        programmed.any(|one| one["reason"] == reason)
            && given.iter().map(|one| &one["value"]).eq(addresses.iter())
    })
    .await
}

pub(crate) async fn ground(cluster: &Cluster) -> Result<()> {
    prepare(cluster).await?;
    replica(cluster, "fairway-0").await?;
    cluster.apply(OWN).await
}

/// The same without replicas.
pub(crate) async fn prepare(cluster: &Cluster) -> Result<()> {
    one_host(cluster).await?;
    cluster.apply(RIGHTS).await?;
    cluster.apply(GATEWAYS).await?;
    let mut route = Command::new("ip");
    let status = route.args(["route", "add", "local", POOL, "dev", "lo"]).status().await?;
    ensure!(status.success(), "the addresses are not there");
    Ok(())
}

/// Has the Service of the older Gateway lead to this port.
async fn steal(cluster: &Cluster, port: u16) -> Result<()> {
    let stolen = Patch::Strategic(json!({"spec": {"ports": [{"port": 8080, "targetPort": port}]}}));
    services(cluster).patch("gateway-one", &PatchParams::default(), &stolen).await?;
    Ok(())
}

/// Where a Service is changed while nobody looks, its Gateway gets another port, and none of somebody else's.
async fn takes_nothing_at_a_start(cluster: &Cluster, theirs: u16) -> Result<()> {
    serves("two", (REPLICA, theirs)).await?;
    let own = eventually("the port to be given back", PATIENCE, async || {
        let now = target(cluster, "one", 8080).await?;
        ensure!(now != theirs, "it is the other one's");
        anyhow::Ok(now)
    })
    .await?;
    serves("one", (REPLICA, own)).await?;
    let kept = target(cluster, "two", 8080).await?;
    ensure!(kept == theirs, "it has {kept} now, and had {theirs}");
    Ok(())
}

/// Whoever comes later keeps the ports, and takes none of somebody else's, whatever is written into the Service.
async fn keeps(cluster: &Cluster, targets: &[u16]) -> Result<()> {
    for (name, known) in ["one", "two"].into_iter().zip(targets) {
        serves(name, (REPLICA, *known)).await?;
        ensure!(target(cluster, name, 8080).await? == *known, "{name} has another port");
    }
    steal(cluster, targets[1]).await?;
    eventually("the port to be given back", PATIENCE, async || {
        let now = target(cluster, "one", 8080).await?;
        ensure!(now == targets[0], "it is {now}, which was {}", targets[0]);
        anyhow::Ok(())
    })
    .await?;
    serves("one", (REPLICA, targets[0])).await?;
    serves("two", (REPLICA, targets[1])).await?;
    Ok(())
}

pub(crate) const FLAGS: [&str; 3] = [
    "--publish-service=fairway/own",
    "--gateway-services=load-balancer",
    "--gateway-target-ports=21000-21009",
];

#[test]
fn a_gateway_has_a_load_balancer_with_ports_of_its_own_and_is_programmed_once_it_has_an_address() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        cluster.apply(&gateway("one", "")).await?;
        cluster.apply(&gateway("two", "")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        let mut targets = Vec::new();
        for name in ["one", "two"] {
            let target = target(cluster, name, 8080).await?;
            ensure!((21000..=21009).contains(&target), "{target} is not of the range");
            tells(cluster, name, "AddressNotAssigned", &[]).await?;
            serves(name, (REPLICA, target)).await?;
            targets.push(target);
        }
        // Connections of a TCPRoute reach it by a port of their own.
        let tcp = target(cluster, "one", 9090).await?;
        let place: SocketAddr = format!("{REPLICA}:{tcp}").parse()?;
        eventually("the TCPRoute", PATIENCE, async || {
            let answer = Connection::open(place).await?.get("any.test", "/").await?;
            ensure!(answer.status == 200, "it answers {}", answer.status);
            anyhow::Ok(())
        })
        .await?;
        balance(cluster, "one", &["192.0.2.7"]).await?;
        tells(cluster, "one", "Programmed", &["192.0.2.7"]).await?;
        told(cluster, "Gateway", "one", |status| {
            holds(&status["listeners"][0]["conditions"], "Programmed", 1)
        })
        .await?;
        tells(cluster, "two", "AddressNotAssigned", &[]).await?;
        // Its endpoints are the replicas.
        let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), "demo");
        let has = async |addresses: &[&str]| {
            eventually(format!("endpoints {addresses:?}"), PATIENCE, async || {
                let slice = json!(slices.get("gateway-one-v4").await?);
                let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
                let found = endpoints.iter().map(|one| &one["addresses"][0]);
                ensure!(found.eq(addresses.iter()), "it has {slice}");
                ensure!(endpoints[0]["nodeName"] == "node-a", "it has {slice}");
                let ports = slice["ports"].as_array().cloned().unwrap_or_default();
                ensure!(ports.iter().any(|one| one["port"] == targets[0]), "it has {slice}");
                anyhow::Ok(())
            })
            .await
        };
        has(&[REPLICA]).await?;
        let more = OWN
            .replace("endpoints: [", "endpoints: [{addresses: [10.244.0.73], nodeName: node-a}, ");
        cluster.apply(&more).await?;
        has(&[REPLICA, "10.244.0.73"]).await?;
        fairway.stop().await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        keeps(cluster, &targets).await?;
        fairway.stop().await?;
        steal(cluster, targets[1]).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        takes_nothing_at_a_start(cluster, targets[1]).await?;
        api(cluster, "Gateway").delete("one", &Default::default()).await?;
        eventually("the Service to go", PATIENCE, async || {
            ensure!(services(cluster).get_opt("gateway-one").await?.is_none(), "it is there");
            anyhow::Ok(())
        })
        .await?;
        fairway.stop().await
    });
}

#[test]
fn a_load_balancer_is_asked_for_one_address_and_a_full_range_of_ports_is_told() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        let asks = |addresses: &str| gateway("one", &format!("  addresses: [{addresses}]"));
        cluster.apply(&asks("{type: IPAddress, value: 192.0.2.9}")).await?;
        let flags = [FLAGS[0], FLAGS[1], "--gateway-target-ports=21010-21011"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        let port = target(cluster, "one", 8080).await?;
        let found = services(cluster).get("gateway-one").await?;
        let asked = found.spec.and_then(|spec| spec.load_balancer_ip);
        ensure!(asked.as_deref() == Some("192.0.2.9"), "it asks for {asked:?}");
        balance(cluster, "one", &["192.0.2.10"]).await?;
        tells(cluster, "one", "AddressNotUsable", &["192.0.2.10"]).await?;
        balance(cluster, "one", &["192.0.2.9"]).await?;
        tells(cluster, "one", "Programmed", &["192.0.2.9"]).await?;
        cluster.apply(&asks("{type: Hostname, value: lb.test}")).await?;
        tells(cluster, "one", "AddressNotUsable", &["192.0.2.9"]).await?;
        serves("one", (REPLICA, port)).await?;
        // Both ports are taken: the other Gateway gets none until they are free.
        cluster.apply(&gateway("two", "")).await?;
        told(cluster, "Gateway", "two", |status| {
            let accepted = |conditions: &Value| conditions[0]["reason"].clone();
            accepted(&status["conditions"]) == "ListenersNotValid"
                && accepted(&status["listeners"][0]["conditions"]) == "PortUnavailable"
        })
        .await?;
        ensure!(services(cluster).get_opt("gateway-two").await?.is_none(), "it has a Service");
        api(cluster, "Gateway").delete("one", &Default::default()).await?;
        let port = target(cluster, "two", 8080).await?;
        serves("two", (REPLICA, port)).await?;
        fairway.stop().await
    });
}
