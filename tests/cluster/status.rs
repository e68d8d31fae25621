//! The addresses in the status of Ingresses: where they come from, whose they are, and when they go.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{GROUND, ingress, ingress_with, numbered, one_host, pod_behind_service};
use crate::replicas::{ingresses, replica, tells, told, write_as};

const FIXED: &str = "--publish-status-address=192.0.2.1";

#[test]
fn a_published_service_is_followed_whatever_its_type() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let services: Api<Service> = Api::namespaced(cluster.client(), "fairway");
        cluster.apply(&published("type: LoadBalancer")).await?;
        balance(&services, &json!([{"ip": "203.0.113.1"}, {"hostname": "lb.example.com"}])).await?;
        // It is followed where it is, though nothing else there is.
        let flags = ["--publish-service=fairway/public", "--watch-namespace=demo"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        tells(cluster, "a", &["203.0.113.1", "lb.example.com"]).await?;
        let changed = Instant::now();
        balance(&services, &json!([{"ip": "203.0.113.2"}])).await?;
        tells(cluster, "a", &["203.0.113.2"]).await?;
        ensure!(changed.elapsed() < Duration::from_secs(30), "it waited for the interval");
        cluster.apply(&published("type: NodePort, externalIPs: [198.51.100.7]")).await?;
        tells(cluster, "a", &["198.51.100.7"]).await?;
        cluster.apply(&published("type: ClusterIP")).await?;
        let own = services.get("public").await?.spec.and_then(|spec| spec.cluster_ip);
        tells(cluster, "a", &[&own.context("no cluster IP")?]).await?;
        cluster.apply(&published("type: ExternalName, externalName: edge.example.com")).await?;
        tells(cluster, "a", &["edge.example.com"]).await?;
        // A Service that is gone says nothing: what is written stays, for new Ingresses, too.
        services.delete("public", &DeleteParams::default()).await?;
        cluster.apply(&ingress("late", "late.test", "/", "a")).await?;
        tells(cluster, "late", &["edge.example.com"]).await?;
        tells(cluster, "a", &["edge.example.com"]).await?;
        fairway.stop().await
    });
}

pub(crate) fn published(spec: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: public, namespace: fairway}}
spec: {{{spec}, ports: [{{name: http, port: 80}}]}}
"
    )
}

pub(crate) async fn balance(services: &Api<Service>, ingress: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
    services.patch_status("public", &PatchParams::default(), &patch).await?;
    Ok(())
}

#[test]
fn without_a_flag_ingresses_tell_the_nodes_of_our_pods() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        replica(cluster, "fairway-1").await?;
        let flags = ["--status-update-interval=5"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        let internal = testkit::kubelet::GATEWAY.to_string();
        tells(cluster, "a", &[&internal]).await?;
        let nodes: Api<Node> = Api::all(cluster.client());
        let addresses = json!([
            {"type": "InternalIP", "address": internal},
            {"type": "ExternalIP", "address": "198.51.100.1"},
        ]);
        let patch = Patch::Merge(json!({"status": {"addresses": addresses}}));
        nodes.patch_status(testkit::kubelet::NODE, &PatchParams::default(), &patch).await?;
        tells(cluster, "a", &["198.51.100.1"]).await?;
        fairway.stop().await
    });
}

#[test]
fn only_what_is_served_is_written_and_only_what_differs() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let foreign = ingress_with("foreign", "ingressClassName: foreign", "f.test", "/", "a");
        cluster.apply(&foreign).await?;
        let refused = ingress("refused", "refused.test", "/", "a").replace(
            "name: refused,",
            "name: refused, annotations: {nginx.ingress.kubernetes.io/auth-type: basicx},",
        );
        cluster.apply(&refused).await?;
        let flags = [FIXED, "--status-update-interval=5"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        let version =
            async || anyhow::Ok(ingresses(cluster).get("a").await?.metadata.resource_version);
        let written = version().await?;
        // Later than whatever the two others and a second look would have been.
        #[expect(
            clippy::disallowed_methods,
            reason = "absence is shown by time: longer than a look at everything"
        )]
        tokio::time::sleep(Duration::from_secs(6)).await;
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        tells(cluster, "mark", &["192.0.2.1"]).await?;
        ensure!(version().await? == written, "written again without need");
        for name in ["foreign", "refused"] {
            let told = told(&ingresses(cluster).get(name).await?);
            ensure!(told.is_empty(), "{name} tells {told:?}");
        }
        fairway.stop().await
    });
}

#[test]
fn the_last_replica_takes_the_addresses_away_and_no_other_one_does() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        replica(cluster, "fairway-1").await?;
        let first = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        let second = Fairway::start_as(cluster, "fairway-1", &[FIXED]).await?;
        first.stop().await?;
        ensure!(told(&ingresses(cluster).get("a").await?) == ["192.0.2.1"], "the other one stays");
        // The lead may not have been taken over yet: that is waited for.
        cluster
            .delete("{apiVersion: v1, kind: Pod, metadata: {name: fairway-0, namespace: fairway}}")
            .await?;
        second.stop().await?;
        let left = told(&ingresses(cluster).get("a").await?);
        ensure!(left.is_empty(), "nobody serves it, and it tells {left:?}");
        // Told to leave them, the last one does.
        let flags = [FIXED, "--update-status-on-shutdown=false"];
        let third = Fairway::start_as(cluster, "fairway-1", &flags).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        third.stop().await?;
        ensure!(told(&ingresses(cluster).get("a").await?) == ["192.0.2.1"]);
        Ok(())
    });
}

#[test]
fn another_controller_that_insists_is_given_way_and_named() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        for _ in 0..2 {
            tells(cluster, "a", &["192.0.2.1"]).await?;
            write_as(cluster, "other-controller", "a", &["203.0.113.9"]).await?;
        }
        tells(cluster, "a", &["192.0.2.1"]).await?;
        write_as(cluster, "other-controller", "a", &["203.0.113.9"]).await?;
        let events: Api<Event> = Api::namespaced(cluster.client(), "demo");
        let contested = ListParams::default().fields("reason=StatusContested");
        eventually("an Event about it", PATIENCE, async || {
            let found = events.list(&contested).await?.items;
            let message =
                found.first().and_then(|event| event.message.as_deref()).unwrap_or_default();
            ensure!(
                message.starts_with("other-controller keeps replacing our addresses"),
                "{message:?}"
            );
            anyhow::Ok(())
        })
        .await?;
        ensure!(told(&ingresses(cluster).get("a").await?) == ["203.0.113.9"], "no way was given");
        // What is nobody's is ours again.
        #[expect(
            clippy::disallowed_methods,
            reason = "way is given for as long as nothing changes"
        )]
        tokio::time::sleep(Duration::from_secs(5)).await;
        write_as(cluster, "other-controller", "a", &[]).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        fairway.stop().await
    });
}

#[test]
fn an_ingress_that_others_change_all_the_time_is_written_nevertheless() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let api = ingresses(cluster);
        let storm = tokio::spawn(async move {
            let mut pace = tokio::time::interval(Duration::from_millis(50));
            for number in 0_u32.. {
                pace.tick().await;
                let note =
                    json!({"metadata": {"annotations": {"example.com/note": number.to_string()}}});
                api.patch("a", &PatchParams::default(), &Patch::Merge(note)).await?;
            }
            anyhow::Ok(())
        });
        let fairway = Fairway::start_as(cluster, "fairway-0", &[FIXED]).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        ensure!(!storm.is_finished(), "{:?}", storm.await);
        storm.abort();
        // What others have written is still there, and nobody was taken for a rival.
        let notes = ingresses(cluster).get("a").await?.metadata.annotations.unwrap_or_default();
        ensure!(notes.contains_key("example.com/note"), "{notes:?}");
        fairway.stop().await
    });
}

#[test]
fn an_address_that_the_api_server_refuses_is_told_once_and_not_insisted_on() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        cluster.apply(&ingress("b", "b.test", "/", "a")).await?;
        replica(cluster, "fairway-0").await?;
        let flags = ["--publish-status-address=no_host_name", "--status-update-interval=5"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        let complaints = || -> Result<usize> {
            let log = std::fs::read_to_string(cluster.folder().join("fairway-0.log"))?;
            Ok(log.matches("the API server does not take the addresses").count())
        };
        eventually("a word about it", PATIENCE, async || {
            ensure!(complaints()? > 0);
            anyhow::Ok(())
        })
        .await?;
        // Two looks at everything later it is still the only one.
        #[expect(
            clippy::disallowed_methods,
            reason = "absence is shown by time: two looks at everything"
        )]
        tokio::time::sleep(Duration::from_secs(11)).await;
        ensure!(complaints()? == 1, "told {} times", complaints()?);
        fairway.expect("b.test", "/", 200).await?;
        fairway.stop().await
    });
}

#[test]
fn the_rights_that_ingress_nginx_has_are_enough() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        cluster.apply(NGINX_RIGHTS).await?;
        let kubeconfig = cluster.kubeconfig_of("fairway", "ingress-nginx").await?;
        let environment = [("POD_NAMESPACE", "fairway"), ("POD_NAME", "fairway-0")];
        let flags = [FIXED, "--election-id=ingress-nginx-leader"];
        let mut fairway = Fairway::begin_with(cluster, &kubeconfig, &environment, &flags)?;
        fairway.ready().await?;
        cluster.apply(&ingress("late", "late.test", "/", "a")).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        tells(cluster, "late", &["192.0.2.1"]).await?;
        fairway.stop().await?;
        let left = told(&ingresses(cluster).get("a").await?);
        ensure!(left.is_empty(), "the last replica has left {left:?}");
        Ok(())
    });
}

/// What the published manifests of ingress-nginx v1.15 allow, as far as it matters here.
const NGINX_RIGHTS: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: ingress-nginx, namespace: fairway}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ingress-nginx}
rules:
- {apiGroups: [''], resources: [configmaps, endpoints, nodes, pods, secrets, namespaces], verbs: [list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list, watch]}
- {apiGroups: [''], resources: [nodes], verbs: [get]}
- {apiGroups: [''], resources: [services], verbs: [get, list, watch]}
- {apiGroups: [networking.k8s.io], resources: [ingresses], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [events], verbs: [create, patch]}
- {apiGroups: [networking.k8s.io], resources: [ingresses/status], verbs: [update]}
- {apiGroups: [networking.k8s.io], resources: [ingressclasses], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ingress-nginx}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ingress-nginx}
subjects: [{kind: ServiceAccount, name: ingress-nginx, namespace: fairway}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ingress-nginx, namespace: fairway}
rules:
- {apiGroups: [''], resources: [configmaps, pods, secrets, endpoints], verbs: [get, list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [ingress-nginx-leader], verbs: [get, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ingress-nginx, namespace: fairway}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ingress-nginx}
subjects: [{kind: ServiceAccount, name: ingress-nginx, namespace: fairway}]
";

/// How many Ingresses there are; 5,000 of them take too long for every run of all tests.
fn many() -> Result<usize> {
    match std::env::var("FAIRWAY_INGRESSES") {
        Ok(number) => number.parse().context("FAIRWAY_INGRESSES is a number"),
        Err(_) => Ok(500),
    }
}

#[test]
fn a_changed_address_reaches_all_ingresses_in_less_than_half_a_minute() {
    cluster::test(async |cluster| {
        let many = many()?;
        cluster.apply(GROUND).await?;
        pod_behind_service(cluster, "a").await?;
        replica(cluster, "fairway-0").await?;
        cluster.create_all((0..many).map(numbered)).await?;
        let services: Api<Service> = Api::namespaced(cluster.client(), "fairway");
        cluster.apply(&published("type: LoadBalancer")).await?;
        balance(&services, &json!([{"ip": "203.0.113.1"}])).await?;
        let flags = ["--publish-service=fairway/public", "--update-status-on-shutdown=false"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        all_tell(cluster, many, "203.0.113.1", Duration::from_secs(120)).await?;
        let changed = Instant::now();
        balance(&services, &json!([{"ip": "203.0.113.2"}])).await?;
        all_tell(cluster, many, "203.0.113.2", Duration::from_secs(30)).await?;
        eprintln!("{many} Ingresses tell a changed address after {:?}", changed.elapsed());
        fairway.stop().await
    });
}

/// Waits until every Ingress tells this address, as a watch tells: asking for them would slow the API server down.
async fn all_tell(cluster: &Cluster, many: usize, address: &str, patience: Duration) -> Result<()> {
    let mut waiting: BTreeSet<String> = (0..many).map(|number| format!("host-{number}")).collect();
    let mut events =
        Box::pin(watcher(ingresses(cluster), watcher::Config::default()).default_backoff());
    let watching = async {
        while !waiting.is_empty() {
            let event = events.next().await.context("the watch has ended")?;
            if let Ok(watcher::Event::InitApply(ingress) | watcher::Event::Apply(ingress)) = event
                && told(&ingress) == [address]
            {
                waiting.remove(ingress.metadata.name.as_deref().unwrap_or_default());
            }
        }
        anyhow::Ok(())
    };
    let told = tokio::time::timeout(patience, watching).await;
    told.unwrap_or_else(|_| bail!("after {patience:?}, {} of {many} do not tell it", waiting.len()))
}
