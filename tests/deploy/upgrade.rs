//! The chart installed, upgraded and rolled back: hooks run, Pods start, the webhook's certificate is believed.

use crate::helm::{chart, helm};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::cluster::{self, Cluster, Connection, eventually};
use testkit::kubelet::{GATEWAY, Image, Images};

const PATIENCE: Duration = Duration::from_secs(60);
const NAMESPACE: &str = "ingress-nginx";
const ADMISSION: &str = "ingress-nginx-admission";

/// Accounts are made beforehand, for their tokens to be in kubeconfigs: Pods have no mounts here.
const GROUND: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: ingress-nginx}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: fairway, namespace: ingress-nginx}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: jobs, namespace: ingress-nginx}}
";

/// Fairway's image has no entry point: the first argument is the program's path there.
pub(crate) fn image() -> Result<Image> {
    let named = std::env::var_os("FAIRWAY_BINARY").map(PathBuf::from);
    Image::started_by_arguments(&named.unwrap_or_else(|| env!("CARGO_BIN_EXE_fairway").into()))
}

/// A kubeconfig that reaches the API server from inside Pods.
pub(crate) async fn kubeconfig(cluster: &Cluster, account: &str) -> Result<PathBuf> {
    let admin = fs::read_to_string(cluster.admin_kubeconfig()?)?;
    let admin: Value = serde_json::from_str(&admin)?;
    let server = admin["clusters"][0]["cluster"]["server"].as_str().context("a server")?;
    let server = server.replace("127.0.0.1", &GATEWAY.to_string());
    let path = cluster.kubeconfig_of(NAMESPACE, account).await?;
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    config["clusters"][0]["cluster"]["server"] = server.into();
    let path = cluster.folder().join(format!("{account}-in-pods.kubeconfig"));
    fs::write(&path, config.to_string())?;
    Ok(path)
}

async fn values(cluster: &Cluster) -> Result<PathBuf> {
    let (own, jobs) = (kubeconfig(cluster, "fairway").await?, kubeconfig(cluster, "jobs").await?);
    let files = cluster.folder().join("certificates");
    fs::create_dir_all(&files)?;
    let values = json!({
        "serviceAccount": {"create": false, "name": "fairway"},
        "controller": {
            "image": {"repository": "fairway.test/fairway"},
            "extraEnvs": [{"name": "KUBECONFIG", "value": own}],
            // Helm would wait for the address of a load balancer, and here is none.
            "service": {"type": "NodePort"},
            "admissionWebhooks": {
                "certificate": files.join("cert"),
                "key": files.join("key"),
                "extraEnvs": [{"name": "KUBECONFIG", "value": jobs}],
                "patch": {"serviceAccount": {"create": false, "name": "jobs"}},
            },
        },
    });
    let path = cluster.folder().join("values.json");
    fs::write(&path, values.to_string())?;
    Ok(path)
}

/// Runs Helm beside the Node and whatever else the test does meanwhile; what it says.
pub(crate) async fn run(mut command: Command) -> Result<String> {
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "Helm says: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Values that are taken without having an effect; the notes after installing have to name each.
const WITHOUT_EFFECT: [&str; 7] = [
    "controller.image.chroot=true",
    "controller.maxmindLicenseKey=abc",
    "controller.enableMimalloc=false",
    "controller.opentelemetry.enabled=true",
    "podSecurityPolicy.enabled=true",
    "controller.admissionWebhooks.patch.image.tag=v1.6.9",
    "controller.service.internal.enabled=true",
];

fn names_all_without_effect(said: &str) -> Result<()> {
    let (_, notes) = said.split_once("Values without effect:").context("no notes")?;
    for setting in WITHOUT_EFFECT {
        let names = notes.lines().filter_map(|line| line.trim().split(':').next());
        let mut names = names.flat_map(|names| names.split(", ")).filter(|name| !name.is_empty());
        ensure!(names.any(|name| setting.starts_with(name)), "{setting} is not among{notes}");
    }
    Ok(())
}

/// What the notes say of settings that mean something else than they seem to, or that may hurt; nothing is installed.
async fn says_what_may_surprise(cluster: &Cluster, values: &Path) -> Result<()> {
    let scope = "rbac.scope=true,controller.scope.enabled=true,controller.scope.namespace=apps";
    let class =
        "serves Ingresses in namespace apps with the annotation kubernetes.io/ingress.class: nginx";
    let short = "controller.terminationGracePeriodSeconds=5";
    let long = "controller.config.worker-shutdown-timeout=1h";
    let stuck = "controller.replicaCount=2,controller.minAvailable=2";
    let cases = [
        (scope, class),
        (short, "is killed after controller.terminationGracePeriodSeconds (5)"),
        (
            long,
            "worker-shutdown-timeout of controller.config (1h), and 5 s. Make the first one 3615",
        ),
        (stuck, "no node with a Pod of it can be drained"),
    ];
    for (setting, said) in cases {
        let told = run(upgrade(cluster, values, &["--dry-run=client", "--set", setting])?).await?;
        ensure!(told.contains(said), "{setting}: {told}");
    }
    let told = run(upgrade(cluster, values, &["--dry-run=client"])?).await?;
    ensure!(told.contains("serves Ingresses of class nginx."), "{told}");
    ensure!(!cases.iter().any(|(_, said)| told.contains(said)), "{told}");
    Ok(())
}

fn upgrade(cluster: &Cluster, values: &Path, more: &[&str]) -> Result<Command> {
    let mut command = helm(&["upgrade", "--install", NAMESPACE, "--namespace", NAMESPACE]);
    command.args(["--wait", "--timeout", "60s"]).args(more).arg("--values").arg(values);
    command.arg(chart()).env("KUBECONFIG", cluster.admin_kubeconfig()?);
    Ok(command)
}

/// What a kubelet would mount: the entries of the Secret as files.
async fn mount(cluster: &Cluster) -> Result<()> {
    let secret = secret(cluster).await?;
    for (name, bytes) in secret.data.context("a Secret without data")? {
        fs::write(cluster.folder().join("certificates").join(name), bytes.0)?;
    }
    Ok(())
}

async fn secret(cluster: &Cluster) -> Result<Secret> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), NAMESPACE);
    eventually("the Secret of the first Job", PATIENCE, async || secrets.get(ADMISSION).await).await
}

/// The authorities that the API server believes, as PEM.
async fn believed(cluster: &Cluster) -> Result<String> {
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let webhook = webhooks.get(ADMISSION).await?.webhooks.context("no webhooks")?.remove(0);
    let bundle = webhook.client_config.ca_bundle.context("the second Job left caBundle empty")?;
    Ok(String::from_utf8(bundle.0)?)
}

async fn pod_addresses(cluster: &Cluster) -> Result<Vec<IpAddr>> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/component=controller");
    let addresses = pods.list(&ours).await?.into_iter().filter_map(|pod| pod.status?.pod_ip);
    addresses.map(|address| Ok(address.parse()?)).collect()
}

/// The rights of the chart are enough for what the controller does in its Pod.
async fn leads_without_being_refused(cluster: &Cluster) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(cluster.client(), NAMESPACE);
    let holder = eventually("somebody to lead", PATIENCE, async || {
        let lease = leases.get("ingress-nginx-leader").await?;
        lease.spec.and_then(|spec| spec.holder_identity).context("nobody leads")
    })
    .await?;
    let log = cluster.kubelet().log(NAMESPACE, &holder, "controller")?;
    ensure!(!log.contains("forbidden"), "{log}");
    Ok(())
}

#[test]
fn helm_installs_upgrades_and_rolls_back_and_the_webhook_is_believed_all_the_time() {
    cluster::private_network(async || {
        let images = Images::default().with("fairway.test/fairway", image()?);
        let cluster = Cluster::start(images).await?;
        cluster.apply(GROUND).await?;
        let values = values(&cluster).await?;
        let install = run(upgrade(&cluster, &values, &[])?);
        tokio::try_join!(install, mount(&cluster))?;
        let first = secret(&cluster).await?.data;
        let authority = believed(&cluster).await?;
        for address in pod_addresses(&cluster).await? {
            let name = "ingress-nginx-controller-admission.ingress-nginx.svc";
            let place = SocketAddr::new(address, 8443);
            Connection::open_tls(place, name, &authority).await.context("reach the webhook")?;
            let traffic = SocketAddr::new(address, 80);
            let answer = Connection::open(traffic).await?.get("a.test", "/").await?;
            ensure!(answer.status == 404, "{}", answer.status);
        }
        leads_without_being_refused(&cluster).await?;
        says_what_may_surprise(&cluster, &values).await?;
        let more =
            "controller.replicaCount=2,controller.metrics.enabled=true,tcp.9000=default/a:80";
        let more = format!("{more},{}", WITHOUT_EFFECT.join(","));
        names_all_without_effect(&run(upgrade(&cluster, &values, &["--set", &more])?).await?)?;
        ensure!(secret(&cluster).await?.data == first, "an upgrade keeps the certificate");
        ensure!(believed(&cluster).await? == authority, "and what the API server believes");
        let deployments: Api<Deployment> = Api::namespaced(cluster.client(), NAMESPACE);
        let ready = async |count| -> Result<()> {
            let status = deployments.get("ingress-nginx-controller").await?.status;
            let ready = status.and_then(|status| status.ready_replicas);
            ensure!(ready == Some(count), "{ready:?} Pods are ready");
            Ok(())
        };
        eventually("two ready Pods", PATIENCE, async || ready(2).await).await?;
        let mut rollback = helm(&["rollback", NAMESPACE, "1", "--namespace", NAMESPACE, "--wait"]);
        rollback.env("KUBECONFIG", cluster.admin_kubeconfig()?);
        run(rollback).await?;
        eventually("one ready Pod", PATIENCE, async || ready(1).await).await
    });
}

/// The command by itself, with the rights that the plain manifest gives its Job.
#[test]
fn the_certificate_is_made_once_kept_and_renewed_when_names_change() {
    cluster::test(async |cluster| {
        cluster.apply(&crate::read("deploy/rbac.yaml")).await?;
        let parts = testkit::yaml::documents(&crate::read("deploy/webhook-certificate.yaml"))?;
        for object in parts.iter().filter(|object| object["kind"] != "Job") {
            cluster.apply_value(object).await?;
        }
        let kubeconfig = cluster.kubeconfig_of("fairway", "fairway-admission").await?;
        let ensure = async |host: &str, webhook: &[&str]| -> Result<(bool, String)> {
            let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_fairway"));
            command.args([
                "webhook-certificate",
                "--secret=fairway/fairway-admission",
                "--host",
                host,
            ]);
            let output =
                command.args(webhook).arg("--kubeconfig").arg(&kubeconfig).output().await?;
            let said = [output.stdout, output.stderr].concat();
            Ok((output.status.success(), String::from_utf8(said)?))
        };
        let says = |(good, said): (bool, String), expected: (bool, &str)| -> Result<()> {
            ensure!(good == expected.0 && said.contains(expected.1), "{said}, not {}", expected.1);
            Ok(())
        };
        let webhook = ["--webhook=fairway-admission"];
        says(ensure("a.svc", &[]).await?, (true, "made"))?;
        says(
            ensure("a.svc", &webhook).await?,
            (false, "there is no ValidatingWebhookConfiguration"),
        )?;
        cluster.apply(&crate::read("deploy/webhook.yaml")).await?;
        says(ensure("a.svc", &webhook).await?, (true, "was there"))?;
        let bundle = async || -> Result<String> {
            let all: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
            let webhook = all.get("fairway-admission").await?.webhooks.context("none")?.remove(0);
            Ok(String::from_utf8(webhook.client_config.ca_bundle.context("no bundle")?.0)?)
        };
        let before = bundle().await?;
        // Who cannot tell the API server replaces nothing that is in use.
        says(ensure("b.svc", &[]).await?, (true, "was there"))?;
        says(ensure("b.svc", &webhook).await?, (true, "renewed"))?;
        let after = bundle().await?;
        ensure!(
            after.ends_with(&before) && after.len() > before.len(),
            "both are believed: {after}"
        );
        says(ensure("b.svc", &webhook).await?, (true, "was there"))?;
        says(ensure("b.svc", &["--webhook=another"]).await?, (false, "403"))
    });
}
