//! The processes of a control plane: etcd, kube-apiserver, kube-controller-manager.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::{Value, json};
use tokio::process::Command;

use super::credentials::{Credentials, Identity};
use super::process::Process;
use super::program::Programs;
use super::seed::{self, Seed};
use super::{definitions, eventually};
use crate::kubelet::GATEWAY;

/// From a start to `/readyz`, on a machine that is busy with other things.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// Where a copy of etcd's files is kept.
const BACKUP: &str = "etcd-backup";

/// What an API server says of its kinds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Publishes {
    /// Their schemas as OpenAPI, which helm and kubectl read: a sixth of what a start computes.
    Schemas,
    /// No schemas; it checks objects all the same.
    Nothing,
}

/// A running control plane.
pub(super) struct Plane {
    program: PathBuf,
    publishes: Publishes,
    folder: PathBuf,
    credentials: Credentials,
    etcd_port: u16,
    peer_port: u16,
    port: u16,
    etcd: Process,
    apiserver: Process,
    controllers: Option<Process>,
}

impl Plane {
    /// Starts the three parts, with their files in `folder`, and waits until the API is ready.
    pub(super) async fn start(
        programs: &Programs,
        folder: &Path,
        publishes: Publishes,
        seed: Seed,
    ) -> Result<Self> {
        seed::sow(programs, folder, &folder.join("etcd"), seed).await?;
        let mut plane = Self::begin(programs, folder, publishes).await?;
        plane.controllers = Some(plane.start_controllers()?);
        Ok(plane)
    }

    /// Lets an API server put what it needs, and what is to be there besides, into an empty etcd in `folder`, and
    /// stops both.
    pub(super) async fn first(programs: &Programs, folder: &Path, seed: Seed) -> Result<()> {
        let plane = Self::begin(programs, folder, Publishes::Nothing).await?;
        if let Seed::GatewayApi = seed {
            let client = client(&plane.admin()?).await?;
            definitions::define(&client, &definitions::gateway_api(programs)?).await?;
        }
        plane.stop().await
    }

    /// Starts etcd and the API server, and waits until that is ready.
    async fn begin(programs: &Programs, folder: &Path, publishes: Publishes) -> Result<Self> {
        let gateway = GATEWAY.to_string();
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc", &gateway];
        let credentials = Credentials::create(&folder.join("credentials"), &names)?;
        let [etcd_port, peer_port, port] = free_ports()?;
        let program = programs.control_plane.clone();
        let etcd = start_etcd(&program, folder, etcd_port, peer_port)?;
        let ports = [etcd_port, port];
        let apiserver = start_apiserver(&program, publishes, folder, &credentials, ports)?;
        let mut plane = Self {
            program,
            publishes,
            folder: folder.to_path_buf(),
            credentials,
            etcd_port,
            peer_port,
            port,
            etcd,
            apiserver,
            controllers: None,
        };
        plane.ready().await?;
        Ok(plane)
    }

    /// Where the API server listens.
    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A kubeconfig for `who`, which reaches the API server at `port` of loopback.
    pub(super) fn kubeconfig(&self, name: &str, port: u16, who: &Identity) -> Result<PathBuf> {
        self.credentials.kubeconfig(name, port, who)
    }

    /// The administrator's kubeconfig, past every relay.
    pub(super) fn admin(&self) -> Result<PathBuf> {
        let admin = self.credentials.client("admin", Some("system:masters"))?;
        self.kubeconfig("admin", self.port, &admin)
    }

    /// Ends the API server, leaves it down while `meanwhile` runs, starts it on the same port and waits for it.
    pub(super) async fn restart_apiserver(
        &mut self,
        meanwhile: impl AsyncFnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        self.stop_apiserver().await?;
        meanwhile(self).await?;
        self.start_apiserver_again().await
    }

    /// Keeps a copy of all that etcd holds, for [`Plane::restore`].
    pub(super) fn back_up(&self) -> Result<()> {
        // What is copied is what a machine that fails would leave behind, from which etcd starts.
        self.etcd.pause()?;
        let copied = seed::copy(&self.folder.join("etcd"), &self.folder.join(BACKUP));
        self.etcd.resume()?;
        copied
    }

    /// Puts etcd and the API server back to what [`Plane::back_up`] kept, on the same ports.
    pub(super) async fn restore(&mut self) -> Result<()> {
        self.stop_apiserver().await?;
        self.etcd.kill().await?;
        let data = self.folder.join("etcd");
        std::fs::remove_dir_all(&data).context("remove etcd's files")?;
        std::fs::rename(self.folder.join(BACKUP), &data).context("put etcd's files back")?;
        self.etcd = start_etcd(&self.program, &self.folder, self.etcd_port, self.peer_port)?;
        self.start_apiserver_again().await
    }

    async fn stop_apiserver(&mut self) -> Result<()> {
        // It would wait a minute for open watches; a real one is killed then, too.
        self.apiserver.stop(Duration::from_secs(2)).await.map(drop)
    }

    async fn start_apiserver_again(&mut self) -> Result<()> {
        self.apiserver = start_apiserver(
            &self.program,
            self.publishes,
            &self.folder,
            &self.credentials,
            [self.etcd_port, self.port],
        )?;
        self.ready().await
    }

    /// The process of the API server.
    pub(super) fn apiserver(&self) -> &Process {
        &self.apiserver
    }

    /// The process of etcd.
    pub(super) fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// Makes etcd forget every revision before the present one.
    pub(super) async fn compact(&self) -> Result<()> {
        let head = self.ask_etcd("/v3/kv/range", &json!({"key": "AA=="})).await?;
        let revision = &head["header"]["revision"];
        let revision = revision.as_str().context("etcd tells no revision")?;
        let wanted = json!({"revision": revision, "physical": true});
        self.ask_etcd("/v3/kv/compaction", &wanted).await?;
        Ok(())
    }

    async fn ask_etcd(&self, path: &str, body: &Value) -> Result<Value> {
        let address = (Ipv4Addr::LOCALHOST, self.etcd_port).into();
        let mut connection = super::http::Connection::open(address).await?;
        let answer = connection.post_json("etcd", path, body).await?;
        if answer.status != 200 {
            bail!("etcd answers {} to {path}: {}", answer.status, answer.text());
        }
        serde_json::from_slice(&answer.body).context("read etcd's answer")
    }

    /// Stops the parts, in the order in which they need each other.
    pub(super) async fn stop(mut self) -> Result<()> {
        let grace = Duration::from_secs(2);
        if let Some(mut controllers) = self.controllers.take() {
            controllers.stop(grace).await?;
        }
        self.apiserver.stop(grace).await?;
        self.etcd.stop(grace).await?;
        Ok(())
    }

    async fn ready(&mut self) -> Result<()> {
        let client = client(&self.admin()?).await?;
        let ready = async {
            eventually("the API server to be ready", PATIENCE, async || {
                let ask = http::Request::get("/readyz").body(Vec::new())?;
                anyhow::Ok(client.request_text(ask).await?)
            })
            .await
        };
        tokio::select! {
            ready = ready => ready.map(drop),
            ended = self.apiserver.ended() => {
                bail!("the API server ended with {}:\n{}", ended?, self.apiserver.log())
            }
            ended = self.etcd.ended() => bail!("etcd ended with {}:\n{}", ended?, self.etcd.log()),
        }
    }

    fn start_controllers(&self) -> Result<Process> {
        let who = self.credentials.client("system:kube-controller-manager", None)?;
        let kubeconfig = self.kubeconfig("controllers", self.port, &who)?;
        let mut command = short_lived(&self.program);
        command
            .arg("controllers")
            .arg(flag("kubeconfig", kubeconfig))
            .arg(flag("authentication-kubeconfig", self.credentials.path("controllers.kubeconfig")))
            .arg(flag("authorization-kubeconfig", self.credentials.path("controllers.kubeconfig")))
            .arg(flag("root-ca-file", self.credentials.path("ca.crt")))
            .arg(flag("service-account-private-key-file", self.credentials.path("tokens.key")))
            .args(["--leader-elect=false", "--use-service-account-credentials", "--secure-port=0"])
            .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
            .arg(flag("controllers", CONTROLLERS.join(",")));
        Process::start(&mut command, &self.folder.join("controllers.log"))
    }
}

/// What a Deployment needs on its way to an EndpointSlice, and what cleans up behind it.
const CONTROLLERS: [&str; 10] = [
    "endpointslice-controller",
    "endpoints-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "replicaset-controller",
    "deployment-controller",
    "job-controller",
    "root-ca-certificate-publisher-controller",
];

/// What the API server serves: whatever Fairway, its manifests, the controllers above and admission look at. Without
/// the groups that nobody asks for, a start takes a quarter less of the processor.
const GROUPS: [&str; 18] = [
    "api/v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
];

/// A client for a kubeconfig.
pub(super) async fn client(kubeconfig: &Path) -> Result<Client> {
    let config = kube::config::Kubeconfig::read_from(kubeconfig).context("read a kubeconfig")?;
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
    Client::try_from(config).context("make a client for the API")
}

/// `--name=value`.
fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}

/// A part of the plane. What lives for seconds need not collect its garbage before it has much of it: a start takes a
/// fifth less time.
fn short_lived(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("GOGC", "400").env("GOMEMLIMIT", "1GiB");
    command
}

fn start_etcd(program: &Path, folder: &Path, port: u16, peer_port: u16) -> Result<Process> {
    let clients = format!("http://127.0.0.1:{port}");
    let peers = format!("http://127.0.0.1:{peer_port}");
    let mut command = short_lived(program);
    command
        .arg("etcd")
        .arg(flag("data-dir", folder.join("etcd")))
        .arg(flag("listen-client-urls", &clients))
        .arg(flag("advertise-client-urls", &clients))
        .arg(flag("listen-peer-urls", &peers))
        .arg(flag("initial-advertise-peer-urls", &peers))
        .arg(flag("initial-cluster", format!("default={peers}")))
        // A test's data need not survive a power cut.
        .args(["--unsafe-no-fsync", "--log-level=warn"]);
    Process::start(&mut command, &folder.join("etcd.log"))
}

/// The ports are those of etcd and of the API server.
fn start_apiserver(
    program: &Path,
    publishes: Publishes,
    folder: &Path,
    credentials: &Credentials,
    [etcd_port, port]: [u16; 2],
) -> Result<Process> {
    let mut command = short_lived(program);
    command
        .arg(match publishes {
            Publishes::Schemas => "apiserver",
            Publishes::Nothing => "quiet-apiserver",
        })
        .arg(flag("etcd-servers", format!("http://127.0.0.1:{etcd_port}")))
        .arg(flag("secure-port", port.to_string()))
        .arg(flag("advertise-address", GATEWAY.to_string()))
        .arg(flag("cert-dir", folder.join("apiserver")))
        .arg(flag("tls-cert-file", credentials.path("apiserver.crt")))
        .arg(flag("tls-private-key-file", credentials.path("apiserver.key")))
        .arg(flag("client-ca-file", credentials.path("ca.crt")))
        .arg(flag("service-account-key-file", credentials.path("tokens.pub")))
        .arg(flag("service-account-signing-key-file", credentials.path("tokens.key")))
        .args(["--service-account-issuer=https://kubernetes.default.svc", "--bind-address=0.0.0.0"])
        .args([
            "--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112",
            "--authorization-mode=RBAC",
        ])
        .args(["--endpoint-reconciler-type=none", "--enable-priority-and-fairness=false"])
        .args(["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"])
        .arg(format!("--runtime-config=api/all=false,{}=true", GROUPS.join("=true,")));
    Process::start(&mut command, &folder.join("apiserver.log"))
}

/// Ports that were free a moment ago; in a private network nobody else takes them.
fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let mut held = Vec::new();
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
        *port = listener.local_addr().context("ask for a port")?.port();
        held.push(listener);
    }
    Ok(ports)
}
