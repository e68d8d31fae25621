//! Argo Rollouts and Flagger beside Fairway: the weights that they write are the shares of requests, step by step.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::cluster::{self, Cluster, Connection, Process, eventually, go_programs};
use testkit::ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{GROUND, ingress};

/// How many requests tell a share, and by how much it may miss the weight.
const REQUESTS: usize = 10_000;
const OFF_BY: f64 = 0.02;

/// Host and name of the Ingress in front of the application.
const HOST: &str = "web.test";

/// The folder of a Go module that ours names.
async fn folder_of(ours: &str, module: &str) -> Result<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join(ours);
    let mut command = Command::new("go");
    command.args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(ours);
    let output = command.output().await.context("start `go`")?;
    let said = String::from_utf8(output.stdout)?.trim().to_owned();
    ensure!(!said.is_empty(), "no {module}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(PathBuf::from(said))
}

/// Gives the API server the definitions of a folder as they are written, and waits until there are objects of them.
async fn define(cluster: &Cluster, folder: &Path, probe: &ApiResource) -> Result<()> {
    const PLACE: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for entry in std::fs::read_dir(folder).context("read the definitions")? {
        let text = std::fs::read_to_string(entry?.path()).context("read a definition")?;
        let is_definition = |one: &&str| one.contains("kind: CustomResourceDefinition\n");
        for definition in text.split("\n---\n").filter(is_definition) {
            let post = http::Request::post(PLACE).header("content-type", "application/yaml");
            let definition = definition.as_bytes().to_vec();
            cluster.client().request_text(post.body(definition)?).await?;
        }
    }
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "demo", probe);
    eventually("the definitions to be taken", PATIENCE, async || {
        api.list(&ListParams::default()).await
    })
    .await?;
    Ok(())
}

/// What a Pod of this version is, as a template of some workload.
fn template(version: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 10, "containers": [{
            "name": "web",
            "image": "fairway.test/pod:v1",
            "env": [
                {"name": "VERSION", "value": version},
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            "ports": [{"name": "http", "containerPort": 8080}],
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 1},
        }]},
    })
}

/// Which part of this many requests a version answers; each has to be answered.
async fn share(fairway: SocketAddr, version: &str, requests: usize) -> Result<f64> {
    let mut connection = Connection::open(fairway).await?;
    let mut count = 0_u32;
    for _ in 0..requests {
        let answer = connection.get(HOST, "/").await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
        count += u32::from(answer.json()?["version"] == version);
        if answer.closes() {
            connection = Connection::open(fairway).await?;
        }
    }
    Ok(f64::from(count) / f64::from(u32::try_from(requests)?))
}

/// Waits until the Ingress of the canary has these annotations, and the version that share of the requests.
async fn in_force(
    cluster: &Cluster,
    fairway: &Fairway,
    canary: &str,
    (weight, total): (u32, u32),
    version: &str,
) -> Result<()> {
    let ingresses: Api<Ingress> = Api::namespaced(cluster.client(), "demo");
    eventually(format!("{canary} to have weight {weight}"), PATIENCE * 2, async || {
        let found = ingresses.get(canary).await?.metadata.annotations.unwrap_or_default();
        let said = |key: &str| found.get(&format!("nginx.ingress.kubernetes.io/{key}")).cloned();
        ensure!(said("canary-weight") == Some(weight.to_string()), "it has {found:?}");
        ensure!(said("canary-weight-total").is_none_or(|said| said == total.to_string()));
        anyhow::Ok(())
    })
    .await?;
    let wanted = f64::from(weight) / f64::from(total);
    eventually(format!("{weight} of {total} to be {version}"), PATIENCE, async || {
        // A look at a few first: the change may not be in force yet.
        for requests in [200, REQUESTS] {
            let share = share(fairway.http(), version, requests).await?;
            let off_by = if requests == REQUESTS { OFF_BY } else { 0.2 };
            ensure!((share - wanted).abs() <= off_by, "{share} of {requests} requests");
            let exact = weight == 0 || weight == total;
            ensure!(!exact || (share - wanted).abs() < f64::EPSILON, "{share}, not all or none");
            if requests == REQUESTS {
                eprintln!("{canary}: weight {weight} of {total}, share {share}");
            }
        }
        anyhow::Ok(())
    })
    .await
}

/// The application as a Rollout, its two Services, and its Ingress.
fn rollout(version: &str, steps: &[u32], total: u32) -> Value {
    let steps: Vec<_> = steps
        .iter()
        .flat_map(|weight| [json!({"setWeight": weight}), json!({"pause": {}})])
        .collect();
    let notes = json!({"canary-by-header": "X-Canary", "canary-by-header-value": "please"});
    let mut routing =
        json!({"nginx": {"stableIngress": "web", "additionalIngressAnnotations": notes}});
    if total != 100 {
        routing["maxTrafficWeight"] = total.into();
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(version),
            "strategy": {"canary": {
                "stableService": "stable",
                "canaryService": "canary",
                "trafficRouting": routing,
                "steps": steps,
            }},
        },
    })
}

fn service(name: &str) -> Value {
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http"}]);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {"selector": {"app": "web"}, "ports": ports},
    })
}

/// A Rollout in front of people: what `kubectl argo rollouts` does.
struct Rollout {
    api: Api<DynamicObject>,
}

impl Rollout {
    const MODULE: &str = "tests/ecosystem/rollouts";

    fn kind() -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Rollout"))
    }

    /// Starts the controller.
    async fn controller(cluster: &Cluster) -> Result<(Process, Self)> {
        let program = go_programs(Self::MODULE)?.join("rollouts-controller");
        let module = folder_of(Self::MODULE, "github.com/argoproj/argo-rollouts").await?;
        define(cluster, &module.join("manifests/crds"), &Self::kind()).await?;
        let mut command = Command::new(program);
        command.args(["--leader-elect=false", "--loglevel=info", "--kubeconfig"]);
        command.arg(cluster.admin_kubeconfig()?);
        for flag in ["--metricsPort", "--healthzPort"] {
            command.arg(format!("{flag}={}", ports::free()));
        }
        let process = Process::start(&mut command, &cluster.folder().join("rollouts.log"))?;
        let api = Api::namespaced_with(cluster.client(), "demo", &Self::kind());
        Ok((process, Self { api }))
    }

    /// Says something in its status, as the plugin of kubectl does.
    async fn say(&self, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api.patch_status("web", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits for a pause, and ends it.
    async fn promote(&self) -> Result<()> {
        self.reaches("Paused").await?;
        self.say(json!({"pauseConditions": null})).await
    }

    async fn reaches(&self, phase: &str) -> Result<()> {
        eventually(format!("the Rollout to be {phase}"), PATIENCE * 2, async || {
            let found = self.api.get("web").await?;
            let status = &found.data["status"];
            let seen = status["observedGeneration"].as_str().and_then(|seen| seen.parse().ok());
            ensure!(seen == found.metadata.generation, "not yet seen: {status}");
            ensure!(status["phase"] == phase, "it is {status}");
            anyhow::Ok(())
        })
        .await
    }
}

/// A new version through steps of weights, each with its share; header and value reach it at every step.
async fn steps(
    cluster: &Cluster,
    fairway: &Fairway,
    rollout: &Rollout,
    version: &str,
    (weights, total): (&[u32], u32),
) -> Result<()> {
    for weight in weights {
        in_force(cluster, fairway, "web-web-canary", (*weight, total), version).await?;
        let mut connection = Connection::open(fairway.http()).await?;
        let told = connection.get_with(HOST, "/", &["X-Canary: please"]).await?.json()?;
        ensure!(told["version"] == version, "with its header at weight {weight}: {told}");
        rollout.promote().await?;
    }
    rollout.reaches("Healthy").await?;
    in_force(cluster, fairway, "web-web-canary", (0, total), "nobody").await?;
    ensure!(share(fairway.http(), version, 500).await? >= 1.0, "{version} does not have it all");
    Ok(())
}

#[test]
#[ignore = "builds Argo Rollouts from the Go module proxy: make ecosystem runs it"]
fn requests_follow_the_steps_of_argo_rollouts() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let (_controller, canary) = Rollout::controller(cluster).await?;
        for name in ["stable", "canary"] {
            cluster.apply_value(&service(name)).await?;
        }
        cluster.apply(&ingress("web", HOST, "/", "stable")).await?;
        let (first, second) = ([5, 50, 100], [50, 500, 1000]);
        cluster.apply_value(&rollout("v1", &first, 100)).await?;
        canary.reaches("Healthy").await?;
        let fairway = Fairway::start(cluster).await?;
        in_force(cluster, &fairway, "web-web-canary", (0, 100), "nobody").await?;
        let traffic = fairway.traffic(HOST);
        cluster.apply_value(&rollout("v2", &first, 100)).await?;
        steps(cluster, &fairway, &canary, "v2", (&first, 100)).await?;
        // With weights of a thousand, and one that is given up half way.
        cluster.apply_value(&rollout("v3", &second, 1000)).await?;
        steps(cluster, &fairway, &canary, "v3", (&second, 1000)).await?;
        cluster.apply_value(&rollout("v4", &second, 1000)).await?;
        in_force(cluster, &fairway, "web-web-canary", (50, 1000), "v4").await?;
        canary.say(json!({"abort": true})).await?;
        canary.reaches("Degraded").await?;
        in_force(cluster, &fairway, "web-web-canary", (0, 1000), "v4").await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

/// Says yes to as many questions of Flagger as it may, and no to all others.
struct Gate {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Gate {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen for Flagger")?;
        let (address, open) = (listener.local_addr()?, Arc::<AtomicUsize>::default());
        let mut tasks = JoinSet::new();
        let left = Arc::clone(&open);
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(answer(client, Arc::clone(&left)));
            }
        });
        Ok(Self { address, open, _tasks: tasks })
    }

    /// Lets it take one more step.
    fn one_more(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads a question with its body, and answers it.
async fn answer(mut client: TcpStream, open: Arc<AtomicUsize>) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        // Whoever goes away while asking gets no answer.
        let Ok(1..) = client.read_buf(&mut asked).await else { return };
    }
    let less = |left: usize| left.checked_sub(1);
    let may = open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
    let status = if may { "200 OK" } else { "403 Forbidden" };
    let said = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    // It asks again if this does not arrive.
    let _sent = client.write_all(said.as_bytes()).await;
}

fn deployment(version: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(version)},
    })
}

/// What Flagger is to do with the Deployment: three weights, each of which waits for the gate.
fn canary(gate: SocketAddr) -> Value {
    let hook = |kind: &str| json!({"name": kind, "type": kind, "url": format!("http://{gate}/")});
    json!({
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "provider": "nginx",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "ingressRef": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web"},
            "progressDeadlineSeconds": 600,
            "service": {"port": 80, "targetPort": "http"},
            "analysis": {
                "interval": "10s",
                "threshold": 10,
                "stepWeights": [5, 50, 100],
                "webhooks": [hook("confirm-traffic-increase")],
            },
        },
    })
}

/// Starts Flagger.
async fn flagger(cluster: &Cluster) -> Result<(Process, Api<DynamicObject>)> {
    const MODULE: &str = "tests/ecosystem/flagger";
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("flagger.app", "v1beta1", "Canary"));
    let kind = ApiResource { plural: "canaries".to_owned(), ..kind };
    let program = go_programs(MODULE)?.join("flagger");
    let module = folder_of(MODULE, "github.com/fluxcd/flagger").await?;
    define(cluster, &module.join("artifacts/flagger"), &kind).await?;
    let mut command = Command::new(program);
    command.args(["-mesh-provider=nginx", "-log-level=info", "-kubeconfig"]);
    command.arg(cluster.admin_kubeconfig()?);
    command.arg(format!("-port={}", ports::free()));
    // No rule of this test asks for a metric: Prometheus has a test of its own.
    command.arg(format!("-metrics-server=http://127.0.0.1:{}", ports::free()));
    let process = Process::start(&mut command, &cluster.folder().join("flagger.log"))?;
    Ok((process, Api::namespaced_with(cluster.client(), "demo", &kind)))
}

async fn phase(canaries: &Api<DynamicObject>, phase: &str) -> Result<()> {
    eventually(format!("the Canary to be {phase}"), PATIENCE * 3, async || {
        let found = canaries.get("web").await?;
        ensure!(found.data["status"]["phase"] == phase, "it is {}", found.data["status"]);
        anyhow::Ok(())
    })
    .await
}

#[test]
#[ignore = "builds Flagger from the Go module proxy: make ecosystem runs it"]
fn requests_follow_the_weights_of_flagger() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let gate = Gate::start().await?;
        let (_flagger, canaries) = flagger(cluster).await?;
        cluster.apply_value(&deployment("v1")).await?;
        cluster.apply(&ingress("web", HOST, "/", "web")).await?;
        cluster.apply_value(&canary(gate.address)).await?;
        phase(&canaries, "Initialized").await?;
        let fairway = Fairway::start(cluster).await?;
        in_force(cluster, &fairway, "web-canary", (0, 100), "nobody").await?;
        let traffic = fairway.traffic(HOST);
        cluster.apply_value(&deployment("v2")).await?;
        for weight in [5, 50, 100] {
            gate.one_more();
            in_force(cluster, &fairway, "web-canary", (weight, 100), "v2").await?;
        }
        // Its copy of the Deployment becomes v2, then the weight goes.
        gate.one_more();
        phase(&canaries, "Succeeded").await?;
        in_force(cluster, &fairway, "web-canary", (0, 100), "nobody").await?;
        ensure!(share(fairway.http(), "v2", 500).await? >= 1.0, "v2 does not have it all");
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}
