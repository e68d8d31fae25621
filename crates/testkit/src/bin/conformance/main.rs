//! The Gateway API's conformance suite against Fairway on the project's own control plane: `make conformance`.
//!
//!     conformance FAIRWAY SUITE ECHO DEFINITIONS OUT [NAMES]
//!
//! Writes `table.md`, the suite's report and all logs into the folder OUT. With names (separated by commas) only those
//! tests run; otherwise exactly what `tests/conformance/expected-failures.txt` names must fail.

mod results;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use testkit::cluster::{self, Cluster, Process};
use testkit::kubelet::{GATEWAY, Image, Images};
use tokio::process::Command;

use self::results::Results;

const ECHO_IMAGE: &str = "registry.k8s.io/gateway-api/conformance/echo-basic";

/// What the suite is to ask for.
const FEATURES: &str = include_str!("../../../../../tests/conformance/features.txt");
const PROFILES: &str = "GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP,GATEWAY-UDP";

/// Seconds that the suite waits for what should be there at once. Its own are up to 180, and a run with failures would
/// take hours; none may be longer than its own.
const WAITS: &str = "GatewayMustHaveAddress:20;GatewayMustHaveCondition:20;GatewayStatusMustHaveListeners:20;\
    GatewayListenersMustHaveConditions:20;ListenerSetMustHaveCondition:20;ListenerSetListenersMustHaveConditions:20;\
    HTTPRouteMustHaveCondition:20;TLSRouteMustHaveCondition:20;TCPRouteMustHaveCondition:20;\
    UDPRouteMustHaveCondition:20;RouteMustHaveParents:20;HTTPRouteMustNotHaveParents:20;\
    LatestObservedGenerationSet:20;DefaultTestTimeout:30;MaxTimeToConsistency:15;NamespacesMustBeReady:90";

const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway}
spec: {controllerName: fairway/gateway-controller}
";

/// The addresses that Gateways get, of the bridge that Pods are on.
const POOL: &str = "10.244.0.64/26";

/// What `--gateway-services` takes.
const RIGHTS: &str = include_str!("../../../../../deploy/gateway-services.yaml");

/// The Pod that this replica is said to be.
const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: fairway-0, namespace: fairway, labels: {app.kubernetes.io/name: fairway}}
spec:
  automountServiceAccountToken: false
  containers: [{name: fairway, image: fairway.test/pod}]
";

struct Order {
    fairway: PathBuf,
    suite: PathBuf,
    echo: PathBuf,
    definitions: PathBuf,
    out: PathBuf,
    only: Vec<String>,
}

impl Order {
    fn read() -> Result<Self> {
        let mut words = std::env::args().skip(1);
        let mut path = || {
            let word = words.next();
            word.map(PathBuf::from).context("FAIRWAY SUITE ECHO DEFINITIONS OUT are needed")
        };
        let (fairway, suite, echo) = (path()?, path()?, path()?);
        let (definitions, out) = (path()?, path()?);
        let names = words.next().unwrap_or_default();
        let only = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(Self { fairway, suite, echo, definitions, out, only })
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    if !cluster::is_private().await? {
        let error = cluster::private_again()?.args(std::env::args_os().skip(1)).exec();
        return Err(error).context("start again in a private network");
    }
    let order = Order::read()?;
    std::fs::create_dir_all(&order.out).context("make the folder for results")?;
    let images = Images::default().with(ECHO_IMAGE, Image::new(&order.echo));
    let cluster = Cluster::start(images).await?;
    let code = run(&cluster, &order).await;
    cluster.stop().await?;
    code
}

async fn run(cluster: &Cluster, order: &Order) -> Result<ExitCode> {
    cluster.define(&cluster::definitions(&order.definitions)?).await?;
    cluster.apply(CLASS).await?;
    let fairway = start_fairway(cluster, order).await?;
    let mut results = Results::default();
    if order.only.is_empty() {
        results.read(&ask(cluster, order, None).await?);
    }
    for name in &order.only {
        results.read(&ask(cluster, order, Some(name)).await?);
    }
    keep_logs_of_pods(cluster, &order.out)?;
    ensure!(fairway.id().is_some(), "Fairway has ended: see {}", order.out.display());
    ensure!(
        !results.is_empty(),
        "the suite did not get as far as its tests: see {}",
        order.out.display()
    );
    let table = results.table();
    std::fs::write(order.out.join("table.md"), &table).context("write the table")?;
    print!("{table}");
    let good = if order.only.is_empty() { results.are_as_expected() } else { results.all_pass() };
    Ok(ExitCode::from(u8::from(!good)))
}

async fn start_fairway(cluster: &Cluster, order: &Order) -> Result<Process> {
    let mut route = Command::new("ip");
    let status = route.args(["route", "add", "local", POOL, "dev", "lo"]).status().await?;
    ensure!(status.success(), "`ip route add local {POOL}` ended with {status}");
    let kubeconfig = cluster.fairway_kubeconfig().await?;
    cluster.apply(POD).await?;
    cluster.apply(RIGHTS).await?;
    let mut command = Command::new(&order.fairway);
    command.arg("run").arg("--kubeconfig").arg(&kubeconfig);
    command.args(["--http-port=80", "--https-port=443", "--healthz-port=10254"]);
    command.arg(format!("--publish-status-address={GATEWAY}"));
    command.arg(format!("--gateway-addresses={POOL}"));
    command.arg("--gateway-services=true");
    command.envs([("POD_NAMESPACE", "fairway"), ("POD_NAME", "fairway-0")]);
    Process::start_apart(
        &mut command,
        &fresh(&order.out, "fairway.log")?,
        &fresh(&order.out, "access.log")?,
    )
}

/// What Pods wrote is gone with the private network otherwise.
fn keep_logs_of_pods(cluster: &Cluster, out: &Path) -> Result<()> {
    let kept = out.join("pods");
    std::fs::create_dir_all(&kept).context("make the folder for logs of Pods")?;
    for entry in std::fs::read_dir(cluster.folder().join("pods")).context("read logs of Pods")? {
        let entry = entry.context("read logs of Pods")?;
        if entry.path().is_file() {
            std::fs::copy(entry.path(), kept.join(entry.file_name()))
                .context("keep a log of a Pod")?;
        }
    }
    Ok(())
}

/// A log of this run alone.
fn fresh(out: &Path, name: &str) -> Result<PathBuf> {
    let path = out.join(name);
    std::fs::write(&path, "").with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// What the suite says: of one test, or of all.
async fn ask(cluster: &Cluster, order: &Order, only: Option<&str>) -> Result<String> {
    let mut suite = Command::new(&order.suite);
    suite.args([
        "-test.v",
        "-test.run=^TestConformance$",
        "-test.timeout=3h",
        "-gateway-class=fairway",
    ]);
    suite.arg(format!("-conformance-profiles={PROFILES}"));
    let features = FEATURES.lines().filter(|line| !line.starts_with('#'));
    suite.arg(format!("-supported-features={}", features.collect::<Vec<_>>().join(",")));
    suite.args(["-organization=fairway", "-project=fairway", "-contact=@fairway"]);
    suite.args(["-url=https://fairway.invalid", concat!("-version=v", env!("CARGO_PKG_VERSION"))]);
    suite.args(["-usable-address=10.244.0.127", "-unusable-address=192.0.2.1"]);
    suite.arg(format!("-timeout-config-overrides={WAITS}"));
    match only {
        Some(name) => suite.arg(format!("-run-test={name}")).arg("-cleanup-base-resources=false"),
        None => suite.arg(format!("-report-output={}", order.out.join("report.yaml").display())),
    };
    // The suite's program is a test, and a test reads its manifests from where it is.
    suite.env("KUBECONFIG", cluster.admin_kubeconfig()?).current_dir(&order.out);
    let log = fresh(&order.out, &format!("{}.log", only.unwrap_or("suite")))?;
    let mut process = Process::start(&mut suite, &log)?;
    process.ended().await?;
    Ok(process.log())
}
