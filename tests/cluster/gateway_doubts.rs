//! What an API server does not say, or says for a moment, ends no Gateway, opens none, and takes no load balancer away.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::gateways::{FIXED, GATEWAYS, api, route, told};
use crate::load_balancers::{
    FLAGS, REPLICA, balance, gateway, ground, serves, services, target, tells,
};
use crate::objects::one_host;
use crate::replicas::replica;

/// The rights of an installation.
const RIGHTS: &str = include_str!("../../deploy/rbac.yaml");

/// What `--gateway-services` takes besides.
const SERVICES: &str = include_str!("../../deploy/gateway-services.yaml");

/// What lets everybody ask which kinds there are.
const DISCOVERY: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: \
                         system:discovery}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \
                         system:discovery}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \
                         system:authenticated}]}";

#[test]
fn gateways_stay_where_nobody_may_ask_for_their_kinds_and_are_closed_where_policies_are_forbidden()
{
    cluster::test_with_gateway_api(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(GATEWAYS).await?;
        cluster.apply(&route("route.test")).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        fairway.reaches("route.test", "/", "a").await?;
        let traffic = fairway.traffic("route.test");
        cluster.delete(DISCOVERY).await?;
        fairway.says("system:discovery").await?;
        cluster.apply(&route("route.test, late.test")).await?;
        fairway.reaches("late.test", "/", "a").await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await?;
        // Nor does it keep anybody from starting. That a kind may not be listed does not, either.
        let kubeconfig = cluster.fairway_kubeconfig().await?;
        let older = RIGHTS.replacen(", backendtlspolicies]", "]", 1);
        ensure!(older != RIGHTS, "the rights are written in another way");
        cluster.apply(&older).await?;
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &[FIXED])?;
        fairway.says("list and watch backendtlspolicies").await?;
        fairway.ready().await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.expect("route.test", "/", 500).await?;
        cluster.apply(RIGHTS).await?;
        fairway.reaches("route.test", "/", "a").await?;
        cluster.apply(DISCOVERY).await?;
        fairway.stop().await
    });
}

/// The Service of Gateway `one`, if it is there.
async fn uid(cluster: &Cluster) -> Result<String> {
    let found = services(cluster).get("gateway-one").await?;
    found.metadata.uid.context("a Service without a uid")
}

/// Gateway `one` with listeners that nobody knows.
fn text_of_unknown_protocols() -> String {
    gateway("one", "")
        .replace("protocol: HTTP,", "protocol: SCTP,")
        .replace("protocol: TCP,", "protocol: DCCP,")
}

/// Changes the only class.
async fn change_class(cluster: &Cluster, parameters: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"parametersRef": parameters}}));
    api(cluster, "GatewayClass").patch("fairway", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the Service of Gateway `one` leads to the replicas, or nowhere.
async fn leads(cluster: &Cluster, somewhere: bool) -> Result<()> {
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), "demo");
    eventually(format!("endpoints: {somewhere}"), PATIENCE, async || {
        let found = slices.get_opt("gateway-one-v4").await?;
        ensure!(found.is_some() == somewhere, "it has {found:?}");
        anyhow::Ok(())
    })
    .await
}

#[test]
fn a_service_that_is_forbidden_is_made_once_it_may_be_and_its_gateway_says_why_it_waits() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        cluster.delete(SERVICES).await?;
        cluster.apply(&gateway("one", "")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        fairway.says("it takes the rights of deploy/gateway-services.yaml").await?;
        told(cluster, "Gateway", "one", |status| {
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let said = conditions.iter().filter_map(|one| one["message"].as_str());
            said.into_iter().any(|said| said.contains("the API server refuses it"))
        })
        .await?;
        cluster.apply(SERVICES).await?;
        let port = target(cluster, "one", 8080).await?;
        serves("one", (REPLICA, port)).await?;
        balance(cluster, "one", &["192.0.2.7"]).await?;
        tells(cluster, "one", "Programmed", &["192.0.2.7"]).await?;
        fairway.stop().await
    });
}

#[test]
fn a_load_balancer_outlives_parameters_and_a_class_that_is_gone_for_a_while() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        cluster.apply(&gateway("one", "")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        let port = target(cluster, "one", 8080).await?;
        balance(cluster, "one", &["192.0.2.7"]).await?;
        tells(cluster, "one", "Programmed", &["192.0.2.7"]).await?;
        let first = uid(cluster).await?;
        let reason = |status: &Value, reason: &str| status["conditions"][0]["reason"] == reason;
        change_class(cluster, json!({"group": "a.example", "kind": "Sizes", "name": "s"})).await?;
        told(cluster, "GatewayClass", "fairway", |status| reason(status, "InvalidParameters"))
            .await?;
        serves("one", (REPLICA, port)).await?;
        change_class(cluster, Value::Null).await?;
        told(cluster, "GatewayClass", "fairway", |status| reason(status, "Accepted")).await?;
        // Its own parameters are refused, and nothing of it is served.
        let refused = "  infrastructure: {labels: {tier: one}, parametersRef: {group: a.example, kind: Sizes, name: s}}";
        let text = gateway("one", "").replace("  infrastructure: {labels: {tier: one}}", refused);
        cluster.apply(&text).await?;
        told(cluster, "Gateway", "one", |status| reason(status, "InvalidParameters")).await?;
        fairway.says("nothing of its Gateway is served").await?;
        leads(cluster, false).await?;
        let patch = Patch::Merge(json!({"spec": {"infrastructure": {"parametersRef": null}}}));
        api(cluster, "Gateway").patch("one", &PatchParams::default(), &patch).await?;
        serves("one", (REPLICA, port)).await?;
        leads(cluster, true).await?;
        ensure!(uid(cluster).await? == first, "it was made anew");
        // None of its listeners is one: its ports are anybody's from then on.
        cluster.apply(&text_of_unknown_protocols()).await?;
        leads(cluster, false).await?;
        ensure!(uid(cluster).await? == first, "it was made anew");
        cluster.apply(&gateway("one", "")).await?;
        leads(cluster, true).await?;
        // The class is gone for longer than is waited for it.
        api(cluster, "GatewayClass").delete("fairway", &Default::default()).await?;
        fairway.says("there is no GatewayClass fairway now").await?;
        leads(cluster, false).await?;
        cluster.apply(GATEWAYS).await?;
        serves("one", (REPLICA, port)).await?;
        leads(cluster, true).await?;
        tells(cluster, "one", "Programmed", &["192.0.2.7"]).await?;
        ensure!(uid(cluster).await? == first, "it was made anew");
        api(cluster, "Gateway").delete("one", &Default::default()).await?;
        eventually("the Service to go", PATIENCE, async || {
            ensure!(services(cluster).get_opt("gateway-one").await?.is_none(), "it is there");
            anyhow::Ok(())
        })
        .await?;
        fairway.stop().await
    });
}

/// Deletes Gateway `one` and leaves its Service behind: the garbage collector takes the owner from it.
async fn orphan(cluster: &Cluster) -> Result<()> {
    let policy = Some(PropagationPolicy::Orphan);
    let how = DeleteParams { propagation_policy: policy, ..DeleteParams::default() };
    api(cluster, "Gateway").delete("one", &how).await?;
    eventually("the Gateway to go", PATIENCE, async || {
        ensure!(api(cluster, "Gateway").get_opt("one").await?.is_none(), "it is there");
        let owners = services(cluster).get("gateway-one").await?.metadata.owner_references;
        ensure!(owners.is_none_or(|owners| owners.is_empty()), "it has an owner");
        anyhow::Ok(())
    })
    .await
}

#[test]
fn a_service_that_has_lost_its_gateway_leads_nowhere_whoever_leads() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        cluster.apply(&gateway("one", "")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        target(cluster, "one", 8080).await?;
        leads(cluster, true).await?;
        let first = uid(cluster).await?;
        orphan(cluster).await?;
        leads(cluster, false).await?;
        ensure!(uid(cluster).await? == first, "the address is lost");
        // It is nobody's now: a Gateway of the same name does not take it.
        cluster.apply(&gateway("one", "")).await?;
        fairway.says("Service demo/gateway-one is somebody else's").await?;
        leads(cluster, false).await?;
        services(cluster).delete("gateway-one", &Default::default()).await?;
        leads(cluster, true).await?;
        // Without the label it is somebody else's, and it is ours again with it.
        let first = uid(cluster).await?;
        for by in ["Helm", "fairway"] {
            let label = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": by}}});
            let patch = Patch::Merge(label);
            services(cluster).patch("gateway-one", &PatchParams::default(), &patch).await?;
            leads(cluster, by == "fairway").await?;
        }
        ensure!(uid(cluster).await? == first, "the address is lost");
        // Whoever leads next knows nothing of a Gateway that went while nobody led.
        fairway.stop().await?;
        orphan(cluster).await?;
        leads(cluster, true).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        leads(cluster, false).await?;
        ensure!(uid(cluster).await? == first, "the address is lost");
        fairway.stop().await
    });
}
