//! Gateways and routes beside Ingresses: definitions that come later and go, statuses, and who else writes there.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, Connection, eventually};
use tokio::process::Command;

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::one_host;
use crate::replicas::replica;

pub(crate) const FIXED: &str = "--publish-status-address=192.0.2.1";

/// A class of ours, one of somebody else's, and a Gateway of each.
pub(crate) const GATEWAYS: &str = "
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

pub(crate) fn route(host: &str) -> String {
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
        cluster.define(&cluster.gateway_api()?).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(&route("route.test")).await?;
        fairway.reaches("route.test", "/", "a").await?;
        let accepted =
            |status: &Value, generation: u64| holds(&status["conditions"], "Accepted", generation);
        told(cluster, "GatewayClass", "fairway", |status| {
            let features = status["supportedFeatures"].as_array().cloned().unwrap_or_default();
            accepted(status, 1) && features.contains(&json!({"name": "HTTPRoute"}))
        })
        .await?;
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

#[test]
fn what_the_native_engine_served_is_told_when_nginx_serves_it_no_more_and_comes_back_with_the_other()
 {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(&route("route.test")).await?;
        replica(cluster, "fairway-0").await?;
        let folder = format!("--nginx-directory={}", cluster.folder().join("nginx").display());
        let native = &[FIXED][..];
        let nginx = &[FIXED, "--engine=nginx", "--sync-rate-limit=0", &folder][..];
        for (flags, is_served) in [(native, true), (nginx, false), (native, true)] {
            let fairway = Fairway::start_as(cluster, "fairway-0", flags).await?;
            fairway.reaches("a.test", "/", "a").await?;
            let is_right = |conditions: &Value| {
                let all = conditions.as_array().into_iter().flatten();
                let accepted = all.filter(|one| one["type"] == "Accepted").collect::<Vec<_>>();
                holds(conditions, "Accepted", 1) == is_served
                    && accepted.len() == 1
                    && (is_served || accepted[0]["reason"] == "Unsupported")
            };
            told(cluster, "GatewayClass", "fairway", |status| is_right(&status["conditions"]))
                .await?;
            told(cluster, "Gateway", "web", |status| {
                let addresses = status["addresses"].as_array().map_or(0, Vec::len);
                let listener = &status["listeners"][0];
                is_right(&status["conditions"])
                    && holds(&status["conditions"], "Programmed", 1) == is_served
                    && holds(&listener["conditions"], "Programmed", 1) == is_served
                    && listener["attachedRoutes"] == u32::from(is_served)
                    && addresses == usize::from(is_served)
            })
            .await?;
            told(cluster, "HTTPRoute", "a", |status| is_right(&status["parents"][0]["conditions"]))
                .await?;
            if is_served {
                fairway.reaches("route.test", "/", "a").await?;
            } else {
                fairway.answers("route.test", "/", 404).await?;
            }
            fairway.stop().await?;
        }
        Ok(())
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
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        // It would have one of the two, and both may be held by the one that is a second older.
        api(cluster, "Gateway").delete("web", &Default::default()).await?;
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
fn the_last_replica_takes_the_shared_address_of_gateways_away_and_leaves_them_their_own() {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(OWN).await?;
        replica(cluster, "fairway-0").await?;
        let has_one = |status: &Value| {
            holds(&status["conditions"], "Programmed", 1)
                && status["addresses"].as_array().is_some_and(|all| all.len() == 1)
        };
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        told(cluster, "Gateway", "web", has_one).await?;
        fairway.stop().await?;
        let left = api(cluster, "Gateway").get("web").await?;
        let status = &left.data["status"];
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let programmed = conditions.find(|one| one["type"] == "Programmed");
        let why = programmed.map(|one| &one["reason"]);
        ensure!(
            status["addresses"] == json!([]) && why == Some(&json!("AddressNotAssigned")),
            "nobody serves it: {status}"
        );
        // What is a Gateway's own stays its own.
        let flags = [FIXED, "--gateway-addresses=127.92.0.4/30"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        for name in ["web", "own"] {
            told(cluster, "Gateway", name, has_one).await?;
        }
        fairway.stop().await?;
        for name in ["web", "own"] {
            let kept = api(cluster, "Gateway").get(name).await?;
            ensure!(has_one(&kept.data["status"]), "{name}: {}", kept.data["status"]);
        }
        Ok(())
    });
}

/// A second Fairway with the same name for its classes serves on when the first one ends.
#[test]
fn the_last_replica_leaves_a_gateway_alone_that_tells_somebody_else_s_address() {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        let theirs = json!([{"type": "IPAddress", "value": "203.0.113.9"}]);
        let gateways = api(cluster, "Gateway");
        // As often as it takes until they are given way.
        for _ in 0..4 {
            told(cluster, "Gateway", "web", |status| {
                status["addresses"] == json!([{"type": "IPAddress", "value": "192.0.2.1"}])
            })
            .await?;
            let patch = Patch::Merge(json!({"status": {"addresses": theirs}}));
            gateways.patch_status("web", &PatchParams::default(), &patch).await?;
        }
        fairway.stop().await?;
        let left = gateways.get("web").await?;
        ensure!(left.data["status"]["addresses"] == theirs, "{}", left.data["status"]);
        let events: Api<Event> = Api::namespaced(cluster.client(), "demo");
        let contested = ListParams::default().fields("reason=StatusContested");
        let found = events.list(&contested).await?.items;
        let message = found.first().and_then(|event| event.message.as_deref()).unwrap_or_default();
        ensure!(message.contains("the same --gateway-controller-name"), "{message:?}");
        Ok(())
    });
}

#[test]
fn what_is_left_of_us_in_a_route_goes_with_the_next_leader_and_others_words_stay() {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
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

/// A Gateway that lets others in, a ListenerSet that adds to it, and a route there.
const ADDED: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: open, namespace: demo}
spec:
  gatewayClassName: fairway
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: http, protocol: HTTP, port: 80, hostname: open.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: added, namespace: demo}
spec:
  parentRef: {name: open}
  listeners: [{name: http, protocol: HTTP, port: 80, hostname: added.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: added, namespace: demo}
spec:
  parentRefs: [{name: added, kind: ListenerSet}]
  rules: [{backendRefs: [{name: a, port: 80}]}]
";

#[test]
fn a_listener_that_is_added_to_a_gateway_is_served_and_told_so_and_goes_with_its_definition() {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(ADDED).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        fairway.reaches("added.test", "/", "a").await?;
        told(cluster, "ListenerSet", "added", |status| {
            let listener = &status["listeners"][0];
            holds(&status["conditions"], "Accepted", 1)
                && holds(&status["conditions"], "Programmed", 1)
                && listener["attachedRoutes"] == 1
                && holds(&listener["conditions"], "Programmed", 1)
        })
        .await?;
        let sets = async |count: u32| {
            told(cluster, "Gateway", "open", |status| status["attachedListenerSets"] == count).await
        };
        sets(1).await?;
        fairway.answers("open.test", "/", 404).await?;
        let closed = ADDED.replace("from: Same", "from: None");
        cluster.apply(&closed).await?;
        fairway.answers("added.test", "/", 404).await?;
        told(cluster, "ListenerSet", "added", |status| {
            status["conditions"][0]["reason"] == "NotAllowed" && status["listeners"] == json!([])
        })
        .await?;
        sets(0).await?;
        cluster.apply(ADDED).await?;
        fairway.reaches("added.test", "/", "a").await?;
        undefine(cluster, "listenersets").await?;
        fairway.answers("added.test", "/", 404).await?;
        sets(0).await?;
        fairway.reaches("a.test", "/", "a").await?;
        fairway.stop().await
    });
}

/// Addresses of the bridge that Pods are on.
const POOL: &str = "10.244.0.64/31";

/// What `--gateway-services` takes.
const SERVICES: &str = include_str!("../../deploy/gateway-services.yaml");

#[test]
fn a_gateway_has_a_service_with_its_labels_and_what_others_made_is_left_alone() {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(SERVICES).await?;
        cluster.apply(GATEWAYS).await?;
        let labelled = |label: &str| {
            OWN.replace(
                "  gatewayClassName: fairway\n",
                &format!(
                    "  gatewayClassName: fairway\n  infrastructure: {{labels: {{tier: {label}}}, annotations: {{to: us}}}}\n"
                ),
            )
        };
        cluster.apply(&labelled("web")).await?;
        let foreign = "apiVersion: v1\nkind: Service\nmetadata: {name: gateway-theirs-too, namespace: demo}\n\
                       spec: {ports: [{port: 80}]}\n";
        cluster.apply(foreign).await?;
        cluster.apply(&OWN.replace("name: own", "name: theirs-too")).await?;
        replica(cluster, "fairway-0").await?;
        // EndpointSlices take no address of the loopback.
        let mut route = Command::new("ip");
        let status = route.args(["route", "add", "local", POOL, "dev", "lo"]).status().await?;
        ensure!(status.success(), "the addresses are not there");
        let pool = format!("--gateway-addresses={POOL}");
        let flags = [FIXED, &pool, "--gateway-services=true"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        let services: Api<Service> = Api::namespaced(cluster.client(), "demo");
        let has = async |label: &str| {
            eventually(format!("a Service with label {label}"), PATIENCE, async || {
                let found = json!(services.get("gateway-own").await?);
                let (meta, ports) = (&found["metadata"], &found["spec"]["ports"]);
                let labels = &meta["labels"];
                ensure!(labels["tier"] == label, "it has {labels}");
                ensure!(labels["gateway.networking.k8s.io/gateway-name"] == "own");
                ensure!(meta["annotations"]["to"] == "us" && found["spec"]["clusterIP"] == "None");
                ensure!(ports[0]["port"] == 8080 && ports[1]["port"] == 9090, "it has {ports}");
                anyhow::Ok(())
            })
            .await
        };
        has("web").await?;
        cluster.apply(&labelled("db")).await?;
        has("db").await?;
        let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), "demo");
        let slice = json!(slices.get("gateway-own-v4").await?);
        let address = &slice["endpoints"][0]["addresses"][0];
        ensure!(address.as_str().is_some_and(|one| one.starts_with("10.244.0.")), "{address}");
        told(cluster, "Gateway", "own", |status| status["addresses"][0]["value"] == *address)
            .await?;
        // What goes is made again, as long as the Gateway is there.
        services.delete("gateway-own", &Default::default()).await?;
        has("db").await?;
        let theirs = services.get("gateway-theirs-too").await?;
        ensure!(theirs.metadata.owner_references.is_none(), "somebody else's was taken");
        api(cluster, "Gateway").delete("own", &Default::default()).await?;
        eventually("the Service to go", PATIENCE, async || {
            let (service, slice) =
                (services.get_opt("gateway-own").await?, slices.get_opt("gateway-own-v4").await?);
            ensure!(service.is_none() && slice.is_none(), "it is there");
            anyhow::Ok(())
        })
        .await?;
        fairway.stop().await
    });
}

/// A kind in the group of the Gateway API that nobody here knows.
fn definition_of(kind: &str) -> Value {
    let (plural, singular) = (format!("{}s", kind.to_lowercase()), kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.gateway.networking.k8s.io"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "gateway.networking.k8s.io",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

#[test]
fn kinds_that_nobody_here_looks_at_are_told_once_and_again_when_there_are_others() {
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(&route("route.test")).await?;
        cluster.apply_value(&definition_of("TeapotRoute")).await?;
        let fairway = Fairway::start(cluster).await?;
        let lines = || {
            let said = fairway.said();
            let of_it = |line: &&str| line.contains("gateway_kinds: ");
            said.lines().filter(of_it).map(str::to_owned).collect::<Vec<_>>()
        };
        let names = |line: &str, kind: &str| line.contains(kind);
        let told = async |kind: &str| {
            eventually(format!("a line that names {kind}"), PATIENCE, async || {
                let lines = lines();
                let last = lines.last().context("it says nothing")?;
                ensure!(names(last, kind), "it says {lines:?}");
                anyhow::Ok(())
            })
            .await
        };
        told("TeapotRoute").await?;
        fairway.reaches("route.test", "/", "a").await?;
        // It has asked again when this is noticed, and said nothing anew.
        undefine(cluster, "httproutes").await?;
        fairway.answers("route.test", "/", 404).await?;
        cluster.apply_value(&definition_of("CoffeeRoute")).await?;
        told("CoffeeRoute").await?;
        let lines = lines();
        // Each by itself, and nothing of those whose objects are served.
        ensure!(lines.len() == 2 && names(&lines[0], "TeapotRoute"), "it says {lines:?}");
        fairway.reaches("a.test", "/", "a").await?;
        fairway.stop().await
    });
}

/// Whether a condition is true, and of this generation.
pub(crate) fn holds(conditions: &Value, kind: &str, generation: u64) -> bool {
    let all = conditions.as_array().into_iter().flatten();
    let mut named = all.filter(|one| one["type"] == kind);
    named.any(|one| one["status"] == "True" && one["observedGeneration"] == generation)
}

pub(crate) fn api(cluster: &Cluster, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk(&gvk);
    match kind {
        "GatewayClass" => Api::all_with(cluster.client(), &resource),
        _ => Api::namespaced_with(cluster.client(), "demo", &resource),
    }
}

/// Waits until the status of an object is as it should be.
pub(crate) async fn told(
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
