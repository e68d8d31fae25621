//! A release of ingress-nginx becomes one of Fairway, in place and under load, is upgraded, and goes back: no request
//! is lost, no Ingress tells no address, no session leaves its Pod. `make takeover` does it for a million requests.

mod objects;
mod service;
mod witness;

use crate::dns::Dns;
use crate::helm::{chart, helm};
use crate::load::{Load, Target};
use crate::upgrade::{image, run};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Service as Object};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use service::Service;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::cluster::{self, Cluster, Connection, eventually};
use testkit::kubelet::Images;
use witness::{Addresses, Sessions};

/// Namespace and release.
const NAME: &str = "ingress-nginx";
/// What the load balancer is said to have.
const ADDRESS: &str = "203.0.113.1";
const PATIENCE: Duration = Duration::from_secs(120);
/// Requests of each kind that are sent between two steps.
const AT_EACH: usize = 200;

const STICKY: &str =
    "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: sticky, namespace: demo}}";

/// How many requests have to be sent at least.
fn requests() -> Result<usize> {
    match std::env::var("FAIRWAY_REQUESTS") {
        Ok(number) => number.parse().context("FAIRWAY_REQUESTS is a number"),
        Err(_) => Ok(1),
    }
}

/// A cluster, the charts, and what they are told.
struct Stage {
    cluster: Cluster,
    former: PathBuf,
    fairway: PathBuf,
    next: PathBuf,
}

impl Stage {
    async fn set() -> Result<(Self, String)> {
        let images = Images::default().with("fairway.test/fairway", image()?);
        let cluster = Cluster::start(images).await?;
        cluster.apply(objects::GROUND).await?;
        let (ingresses, authority) = objects::ingresses()?;
        cluster.apply(&ingresses).await?;
        let (former, fairway) =
            (objects::former(&cluster).await?, objects::fairway(&cluster).await?);
        let next = objects::next_chart(&cluster)?;
        Ok((Self { cluster, former, fairway, next }, authority))
    }

    /// Installs or upgrades the one release, and waits until its Pods are exchanged.
    async fn upgrade(&self, chart: &Path, values: &Path) -> Result<()> {
        let mut command = helm(&["upgrade", "--install", NAME, "--namespace", NAME]);
        command.arg("--values").arg(values).arg(chart);
        run(self.as_admin(command)?).await?;
        self.settled().await
    }

    async fn roll_back(&self, revision: usize) -> Result<()> {
        let revision = revision.to_string();
        run(self.as_admin(helm(&["rollback", NAME, &revision, "--namespace", NAME]))?).await?;
        self.settled().await
    }

    fn as_admin(&self, mut command: std::process::Command) -> Result<std::process::Command> {
        command.env("KUBECONFIG", self.cluster.admin_kubeconfig()?);
        Ok(command)
    }

    /// Waits until one Pod is there, it is ready, and it is of the release's latest revision.
    async fn settled(&self) -> Result<()> {
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(self.cluster.client(), NAME);
        eventually("the Pods to be exchanged", PATIENCE, async || {
            let found = deployments.get("ingress-nginx-controller").await?;
            let status = found.status.unwrap_or_default();
            ensure!(status.observed_generation == found.metadata.generation, "not yet seen");
            let counts = [status.updated_replicas, status.available_replicas, status.replicas];
            ensure!(counts == [Some(1); 3], "updated, available, all: {counts:?}");
            let pods = self.pods().await?;
            ensure!(pods.len() == 1, "{} Pods", pods.len());
            anyhow::Ok(())
        })
        .await
    }

    async fn pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), NAME);
        Ok(pods.list(&ListParams::default()).await?.items)
    }

    /// Whose Pod is there: its image, and the chart that its labels name.
    async fn image_and_chart(&self) -> Result<(String, String)> {
        let pod = self.pods().await?.into_iter().next().context("no Pod")?;
        let image = pod.spec.and_then(|spec| spec.containers.into_iter().next()?.image);
        let chart = pod.metadata.labels.unwrap_or_default().remove("helm.sh/chart");
        Ok((image.unwrap_or_default(), chart.unwrap_or_default()))
    }

    /// Installs the controller before, with an address that all Ingresses tell.
    async fn begin(&self) -> Result<()> {
        let folder = crate::root().join("tests/deploy/former");
        self.upgrade(&folder, &self.former).await?;
        let services: Api<Object> = Api::namespaced(self.cluster.client(), NAME);
        let balancer = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}});
        let (name, params) = ("ingress-nginx-controller", PatchParams::default());
        services.patch_status(name, &params, &Patch::Merge(balancer)).await?;
        let addresses = Addresses::watch(&self.cluster).await;
        eventually("all Ingresses to tell the address", PATIENCE, async || {
            let seen = addresses.seen();
            let tell = seen.values().filter(|told| told.last() == Some(&vec![ADDRESS.to_owned()]));
            ensure!(tell.count() == 3, "they tell {seen:?}");
            anyhow::Ok(())
        })
        .await
    }

    /// Waits until hosts are served at the Service.
    async fn answers(&self, service: &Service) -> Result<()> {
        for host in ["web.test", "sticky.test"] {
            eventually(format!("{host} to answer"), PATIENCE, async || {
                let answer = Connection::open(service.http).await?.get(host, "/").await?;
                ensure!(answer.status == 200, "{}", answer.status);
                anyhow::Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

#[test]
fn a_takeover_an_upgrade_and_the_way_back_lose_no_request_no_address_and_no_session() {
    cluster::private_network(async || {
        let (stage, authority) = Stage::set().await?;
        stage.begin().await?;
        let service = Service::start(&stage.cluster, NAME, "ingress-nginx-controller").await?;
        stage.answers(&service).await?;
        let addresses = Addresses::watch(&stage.cluster).await;
        let mut sessions = Sessions::new();
        sessions.begin(service.http, 8).await?;
        let tls = Some((service.https, authority));
        let load = Load::start(Target { http: service.http, tls, to_nginx: true });
        load.goes_on(AT_EACH).await;
        load.progress("before");
        let wanted = requests()?;
        let mut revision = 1;
        loop {
            stage.upgrade(&chart(), &stage.fairway).await?;
            // Old Pods know their kind by all labels: those that are to follow have them for this once.
            let pod = stage.image_and_chart().await?;
            ensure!(pod == ("fairway.test/fairway:0.1.0".into(), "ingress-nginx-4.15.1".into()));
            load.goes_on(AT_EACH).await;
            load.progress("taken over");
            if revision == 1 {
                sessions.begin(service.http, 8).await?;
            }
            stage.upgrade(&stage.next, &stage.fairway).await?;
            let pod = stage.image_and_chart().await?;
            ensure!(pod == ("fairway.test/fairway:99.0.0".into(), "fairway-99.0.0".into()));
            load.goes_on(AT_EACH).await;
            load.progress("upgraded");
            // Helm remembers ten revisions.
            stage.roll_back(revision).await?;
            revision += 3;
            ensure!(stage.image_and_chart().await?.1 == "ingress-nginx-4.15.1");
            load.goes_on(AT_EACH).await;
            load.progress(&format!("back, revision {revision}"));
            if load.sent() >= wanted {
                break;
            }
        }
        load.stop("ingress-nginx to Fairway, to its next version, and back").await?;
        sessions.stop().await?;
        addresses.always(ADDRESS)
    });
}

/// With `--policy=sync`: an Ingress without address would cost its records.
#[test]
#[ignore = "builds ExternalDNS from the Go module proxy: make ecosystem runs it"]
fn a_takeover_an_upgrade_and_the_way_back_cost_external_dns_no_record() {
    cluster::private_network(async || {
        let (stage, _) = Stage::set().await?;
        stage.begin().await?;
        let dns = Dns::start(&stage.cluster)?;
        let mut done =
            ["web", "grpc", "sticky"].map(|name| format!("create {name}.test A {ADDRESS}"));
        done.sort_unstable();
        dns.has_done(&done.each_ref().map(String::as_str)).await?;
        stage.upgrade(&chart(), &stage.fairway).await?;
        stage.upgrade(&stage.next, &stage.fairway).await?;
        stage.roll_back(1).await?;
        // It deletes what it should: so it has seen everything before that.
        stage.cluster.delete(STICKY).await?;
        let deleted = format!("delete sticky.test A {ADDRESS}");
        let all = [&done[0], &done[1], &done[2], &deleted].map(String::as_str);
        dns.has_done(&all).await
    });
}

/// What the test above would not see if the double of ingress-nginx were kinder than the original: Pods with labels of
/// another chart are strangers to it, and the last one it knows empties the status while it may. Fairway's chart takes
/// that right away with its Role; here rights are somebody else's.
#[test]
fn the_controller_before_empties_the_status_where_pods_after_it_have_other_labels() {
    cluster::private_network(async || {
        let (stage, _) = Stage::set().await?;
        stage.begin().await?;
        let addresses = Addresses::watch(&stage.cluster).await;
        // As from a renderer that does not see the cluster: Argo CD, `helm template`.
        let mut command = helm(&["template", NAME, "--namespace", NAME, "--set=rbac.create=false"]);
        command.arg("--values").arg(&stage.fairway).arg(chart());
        let rendered = run(command).await?;
        stage.cluster.apply(&rendered).await?;
        stage.settled().await?;
        eventually("the status to be empty and filled again", PATIENCE, async || {
            let seen = addresses.seen();
            let wanted = [vec![ADDRESS.to_owned()], Vec::new(), vec![ADDRESS.to_owned()]];
            ensure!(seen.values().all(|told| *told == wanted), "they tell {seen:?}");
            anyhow::Ok(())
        })
        .await
    });
}
