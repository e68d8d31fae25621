//! A real control plane for tests: etcd, kube-apiserver and kube-controller-manager, with a small kubelet beside them.
//!
//! ```no_run
//! use testkit::cluster;
//!
//! #[test]
//! fn a_namespace_can_be_made() {
//!     cluster::test(async |cluster| {
//!         cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: demo}}").await
//!     });
//! }
//! ```
//!
//! Every such test has a control plane and a network of its own, see [`private_network`].

mod credentials;
mod definitions;
mod http;
mod objects;
mod plane;
mod private;
mod process;
mod program;
mod seed;
mod traffic;
mod wire;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::time::Instant;

pub use self::definitions::definitions;
pub use self::http::{Answer, Connection, Stream, secure};
pub use self::private::private_network;
pub use self::process::Process;
pub use self::program::go_programs;
pub use self::traffic::{Outcome, Traffic};
pub use self::wire::Wire;

use self::credentials::Identity;
use self::plane::{Plane, Publishes};
use self::program::Programs;
use self::seed::Seed;
use crate::kubelet::{Image, Images, Kubelet};

/// The image of the HTTP server in `tests/cluster/pod/`, for Pods of tests.
pub const POD_IMAGE: &str = "fairway.test/pod";

/// The image of ingress-nginx's double in `tests/cluster/former/`; the first argument is the program, as in its image.
pub const FORMER_IMAGE: &str = "fairway.test/ingress-nginx";

/// Runs the body of a `#[test]` with a fresh control plane, in a private network; the closure must stand in the test.
///
/// # Panics
/// When the body fails, or when the control plane cannot be built or started here; the message says what would help.
pub fn test<F: AsyncFnOnce(&mut Cluster) -> Result<()>>(body: F) {
    run(Seed::Bare, body);
}

/// As [`test`], with the definitions of the Gateway API there from the start: to take them in costs an API server more
/// than its start does.
///
/// # Panics
/// As [`test`].
pub fn test_with_gateway_api<F: AsyncFnOnce(&mut Cluster) -> Result<()>>(body: F) {
    run(Seed::GatewayApi, body);
}

fn run<F: AsyncFnOnce(&mut Cluster) -> Result<()>>(seed: Seed, body: F) {
    // The name of the test is read off the closure's type, and this one names the caller's.
    private::run::<F>(async || {
        let mut cluster = Cluster::with(Images::default(), Publishes::Nothing, seed).await?;
        // No goodbye: the namespaces end with this process, and everything in them.
        body(&mut cluster).await
    });
}

/// A running control plane with a Node.
pub struct Cluster {
    folder: PathBuf,
    plane: Plane,
    client: Client,
    wire: Wire,
    kubelet: Kubelet,
}

impl Cluster {
    /// Starts a cluster whose Pods may have `images`, besides [`POD_IMAGE`]. Only inside a private network. Its API
    /// server publishes schemas, which that of [`test`] does not.
    pub async fn start(images: Images) -> Result<Self> {
        Self::with(images, Publishes::Schemas, Seed::Bare).await
    }

    async fn with(images: Images, publishes: Publishes, seed: Seed) -> Result<Self> {
        let folder = private::folder()
            .context("a test cluster starts inside private_network() or cluster::test() only")?;
        let programs = Programs::ready()?;
        let former = Image::started_by_arguments(&programs.former)?;
        let images = images.with(POD_IMAGE, Image::new(&programs.pod)).with(FORMER_IMAGE, former);
        // First, since its bridge carries an address of the API server.
        let network = crate::kubelet::Network::create().await?;
        let plane = Plane::start(&programs, &folder, publishes, seed).await?;
        let client = plane::client(&plane.admin()?).await?;
        let wire = Wire::start(plane.address()).await?;
        let kubelet = Kubelet::start(client.clone(), network, images, &folder.join("pods")).await?;
        Ok(Self { folder, plane, client, wire, kubelet })
    }

    /// A folder for files of the test; it vanishes with the private network.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The administrator's client, which goes past the [`Wire`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The administrator's kubeconfig, which goes past the [`Wire`].
    pub fn admin_kubeconfig(&self) -> Result<PathBuf> {
        self.plane.admin()
    }

    /// The connection between whoever uses [`Cluster::kubeconfig_of`] and the API server, to be cut at will.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The Node of this cluster.
    pub fn kubelet(&self) -> &Kubelet {
        &self.kubelet
    }

    /// A kubeconfig with a token of a ServiceAccount that exists; it reaches the API server through the [`Wire`].
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(24 * 3600), ..Default::default() };
        let wanted = TokenRequest { spec: Some(spec), ..Default::default() };
        let made = accounts.create_token_request(account, &Default::default(), &wanted).await?;
        let token = made.status.and_then(|status| status.token);
        let token = token.context("a token request without a token")?;
        let name = format!("{namespace}-{account}");
        self.plane.kubeconfig(&name, self.wire.port(), &Identity::Token(token))
    }

    /// The kubeconfig that Fairway gets: a token of the ServiceAccount and the rights of `deploy/rbac.yaml`.
    pub async fn fairway_kubeconfig(&self) -> Result<PathBuf> {
        let path = program::workspace().join("deploy/rbac.yaml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        self.apply(&text).await?;
        self.kubeconfig_of("fairway", "fairway").await
    }

    /// Ends the API server and starts it again on the same port; everything else keeps running.
    pub async fn restart_apiserver(&mut self) -> Result<()> {
        self.plane.restart_apiserver(async |_| Ok(())).await
    }

    /// Stops etcd in its tracks: the API server answers what it has cached, and nothing can be written.
    pub fn pause_etcd(&self) -> Result<()> {
        self.plane.etcd().pause()
    }

    /// Lets etcd go on.
    pub fn resume_etcd(&self) -> Result<()> {
        self.plane.etcd().resume()
    }

    /// Makes old resource versions unknown, as after a long absence: who asks for them is told 410 Gone.
    ///
    /// etcd forgets its history, and the API server, which remembers some of it by itself, is restarted.
    pub async fn forget_history(&mut self) -> Result<()> {
        self.plane.restart_apiserver(Plane::compact).await
    }

    /// Keeps a copy of all that etcd holds at this moment.
    pub fn back_up_etcd(&self) -> Result<()> {
        self.plane.back_up()
    }

    /// Ends etcd and the API server, and starts them with what [`Cluster::back_up_etcd`] kept: versions of objects that
    /// were written since are given out a second time.
    pub async fn restore_etcd(&mut self) -> Result<()> {
        self.plane.restore().await
    }

    /// Lets the API server stand still, or go on: connections stay, and nobody answers.
    pub fn freeze_apiserver(&self, still: bool) -> Result<()> {
        self.plane.apiserver().stand_still(still)
    }

    /// Lets etcd stand still, or go on: the API server answers, but knows nothing new and takes nothing.
    pub fn freeze_etcd(&self, still: bool) -> Result<()> {
        self.plane.etcd().stand_still(still)
    }

    /// Stops everything and waits for it.
    pub async fn stop(self) -> Result<()> {
        self.kubelet.stop().await;
        self.plane.stop().await
    }
}

/// This very program again, inside a private network; the caller adds arguments. For starting a cluster by hand.
pub fn private_again() -> Result<Command> {
    private::command(&std::env::current_exe().context("find this program")?)
}

/// Whether this process is inside a private network already; if so, its loopback interface is up afterwards.
pub async fn is_private() -> Result<bool> {
    if private::folder().is_none() {
        return Ok(false);
    }
    private::prepare().await?;
    Ok(true)
}

/// Asks again and again until the answer is good; the error is the last one, and names what was waited for.
pub async fn eventually<T, E: Display>(
    what: impl Display,
    patience: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T> {
    let end = Instant::now() + patience;
    let mut latest = String::from("no answer came");
    loop {
        match tokio::time::timeout_at(end, ask()).await {
            Ok(Ok(good)) => return Ok(good),
            Ok(Err(error)) => latest = format!("{error:#}"),
            Err(_) => {}
        }
        if Instant::now() >= end {
            return Err(anyhow!("waited {patience:?} for {what}: {latest}"));
        }
        #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
