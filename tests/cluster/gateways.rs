//! Gateways and routes beside Ingresses: definitions that come later and go, statuses, and who else writes there.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, Connection, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::one_host;
use crate::replicas::replica;

const FIXED: &str = "--publish-status-address=192.0.2.1";

/// A class of ours, one of somebody else's, and a Gateway of each.
const GATEWAYS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway}
spec: {controllerName: fairway/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: theirs}
spec: {controllerName: example.com/theirs}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: demo}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: web}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: theirs, namespace: demo}
spec:
  gatewayClassName: theirs
  listeners: [{name: http, protocol: HTTP, port: 80}]
";

fn route(host: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: a, namespace: demo}}
spec:
  parentRefs: [{{name: web}}, {{name: theirs}}]
  hostnames: [{host}]
  rules: [{{backendRefs: [{{name: a, port: 80}}]}}]
"
    )
}

/// A route of the other kind for HTTP listeners.
const CALLS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: a, namespace: demo}
spec:
  parentRefs: [{name: web}]
  hostnames: [calls.test]
  rules: [{matches: [{method: {service: shop.Cart}}], backendRefs: [{name: a, port: 80}]}]
";

#[test]
fn gateways_are_served_and_told_so_as_soon_as_their_definitions_are_there() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        fairway.reaches("a.test", "/", "a").await?;
        define(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(&route("route.test")).await?;
        fairway.reaches("route.test", "/", "a").await?;
        let accepted =
            |status: &Value, generation: u64| holds(&status["conditions"], "Accepted", generation);
        told(cluster, "GatewayClass", "fairway", |status| accepted(status, 1)).await?;
        told(cluster, "Gateway", "web", |status| {
            let listener = &status["listeners"][0];
            accepted(status, 1)
                && holds(&status["conditions"], "Programmed", 1)
                && status["addresses"] == json!([{"type": "IPAddress", "value": "192.0.2.1"}])
                && listener["attachedRoutes"] == 1
                && holds(&listener["conditions"], "Programmed", 1)
        })
        .await?;
        let of_route = |status: &Value, generation: u64| {
            let parents = status["parents"].as_array().cloned().unwrap_or_default();
            let ours =
                parents.iter().filter(|one| one["controllerName"] == "fairway/gateway-controller");
            let ours: Vec<_> = ours.collect();
            ours.len() == 1
                && ours[0]["parentRef"]["name"] == "web"
                && ["Accepted", "ResolvedRefs"]
                    .iter()
                    .all(|kind| holds(&ours[0]["conditions"], kind, generation))
        };
        told(cluster, "HTTPRoute", "a", |status| of_route(status, 1)).await?;
        let theirs = api(cluster, "Gateway").get("theirs").await?.data["status"].clone();
        ensure!(!holds(&theirs["conditions"], "Accepted", 1), "it is not ours: {theirs}");
        // What others say there stays, through a change of what the route asks for.
        let foreign = add_foreign_parent(cluster).await?;
        cluster.apply(&route("moved.test")).await?;
        fairway.reaches("moved.test", "/", "a").await?;
        fairway.answers("route.test", "/", 404).await?;
        told(cluster, "HTTPRoute", "a", |status| {
            let parents = status["parents"].as_array().cloned().unwrap_or_default();
            of_route(status, 2) && parents.contains(&foreign)
        })
        .await?;
        cluster.apply(CALLS).await?;
        told(cluster, "GRPCRoute", "a", |status| of_route(status, 1)).await?;
        let attached = async |count: u32| {
            told(cluster, "Gateway", "web", |status| {
                status["listeners"][0]["attachedRoutes"] == count
            })
            .await
        };
        attached(2).await?;
        undefine(cluster, "grpcroutes").await?;
        attached(1).await?;
        // Without definitions there is nothing of it, and Ingresses do not notice.
        undefine(cluster, "httproutes").await?;
        fairway.answers("moved.test", "/", 404).await?;
        fairway.reaches("a.test", "/", "a").await?;
        fairway.stop().await
    });
}

/// A Gateway with an address of its own, and a route to each of its listeners.
const OWN: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: own, namespace: demo}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: http, protocol: HTTP, port: 8080}
  - {name: tcp, protocol: TCP, port: 9090}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: own, namespace: demo}
spec:
  parentRefs: [{name: own}]
  rules: [{backendRefs: [{name: a, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: own, namespace: demo}
spec:
  parentRefs: [{name: own}]
  rules: [{backendRefs: [{name: a, port: 80}]}]
";

#[test]
fn a_gateway_keeps_the_address_that_its_status_names_and_is_served_as_soon_as_it_is_told_so() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        define(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(OWN).await?;
        replica(cluster, "fairway-0").await?;
        for address in ["127.92.0.2", "127.92.0.3"] {
            // As a replica before it left it: one of the two is not what it would choose by itself.
            let addresses = json!([{"type": "IPAddress", "value": address}]);
            let conditions = json!([{
                "type": "Programmed", "status": "Unknown", "reason": "Pending", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]);
            let status = json!({"status": {"addresses": addresses, "conditions": conditions}});
            let patch = Patch::Merge(status);
            api(cluster, "Gateway").patch_status("own", &PatchParams::default(), &patch).await?;
            let flags = [FIXED, "--gateway-addresses=127.92.0.2/31"];
            let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
            told(cluster, "Gateway", "own", |status| {
                holds(&status["conditions"], "Programmed", 1)
                    && status["addresses"] == addresses
                    && status["listeners"][1]["attachedRoutes"] == 1
            })
            .await?;
            for port in [8080, 9090] {
                let place: SocketAddr =
                    format!("{address}:{port}").parse().context("an address")?;
                eventually(place, PATIENCE, async || {
                    let answer = Connection::open(place).await?.get("any.test", "/").await?;
                    ensure!(answer.status == 200, "it answers {}", answer.text());
                    anyhow::Ok(())
                })
                .await?;
            }
            told(cluster, "TCPRoute", "own", |status| {
                holds(&status["parents"][0]["conditions"], "Accepted", 1)
            })
            .await?;
            fairway.stop().await?;
        }
        Ok(())
    });
}

#[test]
fn what_is_left_of_us_in_a_route_goes_with_the_next_leader_and_others_words_stay() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        define(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        // It has left our Gateway while nobody led, and no word about that was written.
        cluster.apply(&route("route.test").replace("{name: web}, ", "")).await?;
        let told_by = |controller: &str, gateway: &str| {
            let group = "gateway.networking.k8s.io";
            json!({
                "controllerName": controller,
                "parentRef": {"group": group, "kind": "Gateway", "name": gateway},
                "conditions": [{
                    "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                    "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            })
        };
        let foreign = told_by("example.com/theirs", "theirs");
        let parents = json!([told_by("fairway/gateway-controller", "web"), foreign]);
        let patch = Patch::Merge(json!({"status": {"parents": parents}}));
        api(cluster, "HTTPRoute").patch_status("a", &PatchParams::default(), &patch).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        told(cluster, "HTTPRoute", "a", |status| status["parents"] == json!([foreign])).await?;
        fairway.stop().await
    });
}

/// Whether a condition is true, and of this generation.
fn holds(conditions: &Value, kind: &str, generation: u64) -> bool {
    let all = conditions.as_array().into_iter().flatten();
    let mut named = all.filter(|one| one["type"] == kind);
    named.any(|one| one["status"] == "True" && one["observedGeneration"] == generation)
}

fn api(cluster: &Cluster, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk(&gvk);
    match kind {
        "GatewayClass" => Api::all_with(cluster.client(), &resource),
        _ => Api::namespaced_with(cluster.client(), "demo", &resource),
    }
}

/// Waits until the status of an object is as it should be.
async fn told(
    cluster: &Cluster,
    kind: &str,
    name: &str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<()> {
    eventually(format!("the status of {kind} {name}"), PATIENCE, async || {
        let found = api(cluster, kind).get(name).await?;
        ensure!(is_right(&found.data["status"]), "it is {}", found.data["status"]);
        anyhow::Ok(())
    })
    .await
}

/// Applies the definitions, and waits until objects of them can be made.
async fn define(cluster: &Cluster) -> Result<()> {
    for definition in cluster.gateway_api()? {
        cluster.apply_value(&definition).await?;
    }
    for kind in ["GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute", "TCPRoute"] {
        eventually(format!("the definition of {kind}"), PATIENCE, async || {
            api(cluster, kind).list(&Default::default()).await
        })
        .await?;
    }
    Ok(())
}

async fn undefine(cluster: &Cluster, plural: &str) -> Result<()> {
    let name = format!("{plural}.gateway.networking.k8s.io");
    let definitions = cluster.gateway_api()?;
    let found = definitions.iter().find(|one| one["metadata"]["name"] == *name);
    let found = found.with_context(|| format!("no definition {name}"))?;
    cluster.delete(&found.to_string()).await
}

/// Says something in the name of another controller; what it said.
async fn add_foreign_parent(cluster: &Cluster) -> Result<Value> {
    let routes = api(cluster, "HTTPRoute");
    let foreign = json!({
        "controllerName": "example.com/theirs",
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "theirs"},
        "conditions": [{
            "type": "Accepted", "status": "True", "reason": "Theirs", "message": "theirs",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    });
    let mut parents = routes.get("a").await?.data["status"]["parents"].clone();
    parents.as_array_mut().context("it was told")?.push(foreign.clone());
    let patch = Patch::Merge(json!({"status": {"parents": parents}}));
    routes.patch_status("a", &PatchParams::default(), &patch).await?;
    Ok(foreign)
}
