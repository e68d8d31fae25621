//! A running Fairway for tests: the binary with a kubeconfig, its ports, and the questions that tests ask.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testkit::cluster::{Answer, Cluster, Connection, Process, Traffic, eventually};
use tokio::process::Command;

/// How long a change may take to show: generous, since the machine runs a whole cluster besides.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The ConfigMap that Fairway is told to read.
pub(crate) const CONFIG_MAP: &str = "fairway/fairway";

/// A Fairway process.
pub(crate) struct Fairway {
    process: Process,
    http: SocketAddr,
    https: SocketAddr,
    health: SocketAddr,
}

impl Fairway {
    /// Starts Fairway with the kubeconfig of its ServiceAccount, and waits until it says that it is ready.
    pub(crate) async fn start(cluster: &Cluster) -> Result<Self> {
        Self::start_with(cluster, &[]).await
    }

    /// As `start`, with further flags.
    pub(crate) async fn start_with(cluster: &Cluster, flags: &[&str]) -> Result<Self> {
        let mut fairway = Self::begin(cluster, flags).await?;
        fairway.ready().await?;
        Ok(fairway)
    }

    /// Starts the replica that is said to be in this Pod of namespace `fairway`, and waits until it is ready.
    pub(crate) async fn start_as(cluster: &Cluster, pod: &str, flags: &[&str]) -> Result<Self> {
        let kubeconfig = cluster.fairway_kubeconfig().await?;
        let environment = [("POD_NAMESPACE", "fairway"), ("POD_NAME", pod)];
        let mut fairway = Self::begin_with(cluster, &kubeconfig, &environment, flags)?;
        fairway.ready().await?;
        Ok(fairway)
    }

    /// As `start_as`, with its admin server at this address: that of its Pod.
    pub(crate) async fn start_at(
        cluster: &Cluster,
        pod: &str,
        health: SocketAddr,
        flags: &[&str],
    ) -> Result<Self> {
        let kubeconfig = cluster.fairway_kubeconfig().await?;
        let environment = [("POD_NAMESPACE", "fairway"), ("POD_NAME", pod)];
        let (host, port) = (health.ip().to_string(), health.port().to_string());
        let place = ["--healthz-host", &host, "--healthz-port", &port];
        let flags = [&place[..], flags].concat();
        let begun = Self::begin_with(cluster, &kubeconfig, &environment, &flags)?;
        let mut fairway = Self { health, ..begun };
        fairway.ready().await?;
        Ok(fairway)
    }

    /// Starts Fairway and does not wait.
    pub(crate) async fn begin(cluster: &Cluster, flags: &[&str]) -> Result<Self> {
        Self::begin_with(cluster, &cluster.fairway_kubeconfig().await?, &[], flags)
    }

    /// As `begin`, as whoever this kubeconfig is for.
    pub(crate) fn begin_as(cluster: &Cluster, kubeconfig: &Path, flags: &[&str]) -> Result<Self> {
        Self::begin_with(cluster, kubeconfig, &[], flags)
    }

    /// As `begin`, with another kubeconfig and further variables in its environment.
    pub(crate) fn begin_with(
        cluster: &Cluster,
        kubeconfig: &Path,
        environment: &[(&str, &str)],
        flags: &[&str],
    ) -> Result<Self> {
        let [http, https, health] = free_addresses()?;
        let mut command = Command::new(binary());
        command.arg("run").arg("--kubeconfig").arg(kubeconfig).args(["--configmap", CONFIG_MAP]);
        for (flag, address) in
            [("--http-port", http), ("--https-port", https), ("--healthz-port", health)]
        {
            command.arg(flag).arg(address.port().to_string());
        }
        command.args(flags);
        command.envs(environment.iter().copied());
        let pod = environment.iter().find(|(name, _)| *name == "POD_NAME");
        let name = pod.map_or("fairway", |(_, pod)| pod);
        let [log, access] = [format!("{name}.log"), "access.log".to_owned()]
            .map(|name| cluster.folder().join(name));
        let process = Process::start_apart(&mut command, &log, &access)?;
        Ok(Self { process, http, https, health })
    }

    /// Where it takes HTTP.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where its admin server is.
    pub(crate) fn health(&self) -> SocketAddr {
        self.health
    }

    /// Waits until `/healthz` answers 200.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let health = self.health;
        let ready = eventually("Fairway to be ready", PATIENCE, async || healthy(health).await);
        tokio::select! {
            ready = ready => ready,
            ended = self.process.ended() => bail!("Fairway ended with {}", ended?),
        }
    }

    /// Whether Fairway says at this moment that it is ready.
    pub(crate) async fn healthy(&self) -> Result<()> {
        healthy(self.health).await
    }

    /// A page of the admin server.
    pub(crate) async fn page(&self, path: &str) -> Result<Answer> {
        Connection::open(self.health).await?.get("localhost", path).await
    }

    /// One request over HTTP, on a connection of its own.
    pub(crate) async fn get(&self, host: &str, path: &str) -> Result<Answer> {
        let ask = async { Connection::open(self.http).await?.get(host, path).await };
        tokio::time::timeout(Duration::from_secs(10), ask).await.context("no answer in 10 s")?
    }

    /// One request over HTTPS to a certificate that `authority` has signed.
    pub(crate) async fn get_tls(&self, host: &str, path: &str, authority: &str) -> Result<Answer> {
        let ask = async {
            Connection::open_tls(self.https, host, authority).await?.get(host, path).await
        };
        tokio::time::timeout(Duration::from_secs(10), ask).await.context("no answer in 10 s")?
    }

    /// Waits until a request has this status.
    pub(crate) async fn answers(&self, host: &str, path: &str, status: u16) -> Result<Answer> {
        eventually(format!("http://{host}{path} to answer {status}"), PATIENCE, async || {
            self.expect(host, path, status).await
        })
        .await
    }

    /// As `answers`, but at the first try.
    pub(crate) async fn expect(&self, host: &str, path: &str, status: u16) -> Result<Answer> {
        let answer = self.get(host, path).await?;
        ensure!(answer.status == status, "{host}{path}: {} {}", answer.status, answer.text());
        Ok(answer)
    }

    /// Waits until a request reaches the Pod of this name.
    pub(crate) async fn reaches(&self, host: &str, path: &str, pod: &str) -> Result<()> {
        eventually(format!("http://{host}{path} to reach {pod}"), PATIENCE, async || {
            let told = self.expect(host, path, 200).await?.json()?;
            ensure!(told["pod"] == pod, "it was {told}");
            Ok(())
        })
        .await
    }

    /// Requests that go on until they are stopped.
    pub(crate) fn traffic(&self, host: &str) -> Traffic {
        Traffic::start(self.http, host, "/")
    }

    /// The process, to be treated badly.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Lets the process stand still, as a machine that is suspended, or go on.
    pub(crate) fn freeze(&self, still: bool) -> Result<()> {
        self.process.stand_still(still)
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        self.process.log()
    }

    /// Waits until it has said this: a line may come after what it is about is served.
    pub(crate) async fn says(&self, what: &str) -> Result<()> {
        eventually(format!("a line with {what}"), PATIENCE, async || {
            ensure!(self.said().contains(what), "it says {}", self.said());
            Ok(())
        })
        .await
    }

    /// Ends Fairway with SIGTERM; it has to end by itself and well.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let status = self.process.stop(Duration::from_secs(30)).await?;
        ensure!(status.success(), "after SIGTERM, Fairway ended with {status}");
        Ok(())
    }
}

async fn healthy(health: SocketAddr) -> Result<()> {
    let answer = Connection::open(health).await?.get("localhost", "/healthz").await?;
    ensure!(answer.status == 200, "/healthz says {}: {}", answer.status, answer.text());
    Ok(())
}

/// The binary under test: cargo's, or another one named by FAIRWAY_BINARY, such as a release build.
pub(crate) fn binary() -> PathBuf {
    let named = std::env::var_os("FAIRWAY_BINARY").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_fairway").into())
}

/// Ports that were free a moment ago: in the test's private network nobody else takes them.
pub(crate) fn free_addresses<const COUNT: usize>() -> Result<[SocketAddr; COUNT]> {
    let mut held = Vec::new();
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); COUNT];
    for address in &mut addresses {
        let listener = TcpListener::bind(*address).context("find a free port")?;
        *address = listener.local_addr().context("ask for a port")?;
        held.push(listener);
    }
    Ok(addresses)
}
