//! Records that ExternalDNS makes of what Ingresses tell: `make ecosystem`.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::json;
use testkit::cluster;

use crate::dns::Dns;
use crate::fairway::Fairway;
use crate::objects::{ingress, one_host};
use crate::replicas::{ingresses, leads, replica, tells};
use crate::status::{balance, published};

#[test]
#[ignore = "builds ExternalDNS from the Go module proxy: make ecosystem runs it"]
fn records_follow_the_load_balancer_by_address_and_by_name() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        cluster.apply(&published("type: LoadBalancer")).await?;
        let services: Api<Service> = Api::namespaced(cluster.client(), "fairway");
        balance(&services, &json!([{"hostname": "lb.example.com"}])).await?;
        let flags = ["--publish-service=fairway/public"];
        let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        tells(cluster, "a", &["lb.example.com"]).await?;
        let dns = Dns::start(cluster)?;
        let mut done = vec!["create a.test CNAME lb.example.com"];
        dns.has_done(&done).await?;
        // Its address is away for a moment, as while a cloud makes it anew: nothing is deleted.
        balance(&services, &json!([])).await?;
        cluster.apply(&ingress("late", "late.test", "/", "a")).await?;
        balance(&services, &json!([{"ip": "203.0.113.1"}])).await?;
        done.extend(["delete a.test CNAME lb.example.com", "create a.test A 203.0.113.1"]);
        done.push("create late.test A 203.0.113.1");
        dns.has_done(&done).await?;
        // The last replica goes, and the records with it.
        fairway.stop().await?;
        done.extend(["delete a.test A 203.0.113.1", "delete late.test A 203.0.113.1"]);
        dns.has_done(&done).await
    });
}

#[test]
#[ignore = "builds ExternalDNS from the Go module proxy: make ecosystem runs it"]
fn ten_rolls_of_two_replicas_change_no_record_and_write_no_status() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let flags = ["--publish-status-address=192.0.2.1,192.0.2.2"];
        replica(cluster, "fairway-0").await?;
        replica(cluster, "fairway-1").await?;
        let mut first = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        let mut second = Fairway::start_as(cluster, "fairway-1", &flags).await?;
        tells(cluster, "a", &["192.0.2.1", "192.0.2.2"]).await?;
        let dns = Dns::start(cluster)?;
        let done = ["create a.test A 192.0.2.1,192.0.2.2"];
        dns.has_done(&done).await?;
        let version = async || {
            let found = ingresses(cluster).get("a").await?;
            found.metadata.resource_version.context("no version")
        };
        let written = version().await?;
        for _ in 0..10 {
            first.stop().await?;
            leads(cluster, "fairway-1").await?;
            first = Fairway::start_as(cluster, "fairway-0", &flags).await?;
            second.stop().await?;
            leads(cluster, "fairway-0").await?;
            second = Fairway::start_as(cluster, "fairway-1", &flags).await?;
        }
        ensure!(version().await? == written, "the status was written without need");
        // Whatever it was told of before this one, it has heard.
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        dns.has_done(&[done[0], "create mark.test A 192.0.2.1,192.0.2.2"]).await?;
        first.stop().await?;
        second.stop().await
    });
}

#[test]
#[ignore = "builds ExternalDNS from the Go module proxy: make ecosystem runs it"]
fn one_replica_that_is_recreated_keeps_the_records_where_it_is_told_to() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        replica(cluster, "fairway-0").await?;
        let flags = ["--publish-status-address=192.0.2.1", "--update-status-on-shutdown=false"];
        let before = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        tells(cluster, "a", &["192.0.2.1"]).await?;
        let dns = Dns::start(cluster)?;
        dns.has_done(&["create a.test A 192.0.2.1"]).await?;
        before.stop().await?;
        let after = Fairway::start_as(cluster, "fairway-0", &flags).await?;
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        let done = ["create a.test A 192.0.2.1", "create mark.test A 192.0.2.1"];
        dns.has_done(&done).await?;
        after.stop().await
    });
}
