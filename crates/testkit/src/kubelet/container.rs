//! One container: its process, its restarts, and what can be observed of it.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Container as Spec, EnvVar, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::watch;

use super::Host;
use super::logs::log_file;
use super::network::Sandbox;
use super::probe::Probe;
use super::volumes::Folders;
use crate::cluster::Process;

/// First pause before a container that ended is started again; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a container does.
#[derive(Clone, Debug)]
pub(super) enum State {
    Waiting { reason: &'static str, message: String },
    Running { since: Timestamp },
    Ended(End),
}

/// How a container's process ended.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// What can be observed of a container.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) state: State,
    pub(super) last: Option<End>,
    pub(super) restarts: u32,
    pub(super) ready: bool,
}

impl Observed {
    /// Before the first start.
    pub(super) fn creating() -> Self {
        let state = State::Waiting { reason: "ContainerCreating", message: String::new() };
        Self { state, last: None, restarts: 0, ready: false }
    }
}

/// A container of a Pod, ready to be run.
pub(super) struct Container {
    index: usize,
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    probe: Option<Probe>,
    /// Whether it is started again after it ended badly, and after it ended well.
    again: (bool, bool),
    log: PathBuf,
    sandbox: Arc<Sandbox>,
}

impl Container {
    /// Reads container number `index` of a Pod.
    pub(super) fn of(
        host: &Host,
        pod: &Pod,
        index: usize,
        sandbox: &Arc<Sandbox>,
        folders: &Folders,
    ) -> Result<Self> {
        let spec = pod.spec.as_ref().context("a Pod without spec")?;
        let container = &spec.containers[index];
        let image = container.image.as_deref().unwrap_or_default();
        let found = host.images.find(image);
        let image = found.with_context(|| {
            format!("image {image}: this Node runs only what the test told it; see Images::with")
        })?;
        let (program, mut args) = match container.command.as_deref() {
            Some([program, args @ ..]) => (PathBuf::from(program), args.to_vec()),
            _ => (image.program.clone(), image.args.clone()),
        };
        args.extend(container.args.iter().flatten().cloned());
        let mut env = environment(container, pod, sandbox.address)?;
        for (_, value) in &mut env {
            *value = folders.resolved(container, value);
        }
        for arg in &mut args {
            *arg = folders.resolved(container, &expanded(arg, &env));
        }
        let again = match spec.restart_policy.as_deref() {
            Some("Never") => (false, false),
            Some("OnFailure") => (true, false),
            _ => (true, true),
        };
        let namespace = pod.namespace().unwrap_or_default();
        Ok(Self {
            index,
            program,
            args,
            env,
            probe: Probe::of(container, sandbox.address)?,
            again,
            log: log_file(&host.logs, &namespace, &pod.name_any(), &container.name),
            sandbox: Arc::clone(sandbox),
        })
    }

    /// Runs the container until it ends for good, or until `stop` gives it a grace period to end in.
    #[expect(clippy::disallowed_methods, reason = "the back-off of a container")]
    pub(super) async fn run(
        self,
        tell: watch::Sender<Vec<Observed>>,
        mut stop: watch::Receiver<Option<Duration>>,
    ) {
        let mut observed = Observed::creating();
        let mut pause = FIRST_PAUSE;
        loop {
            match self.start() {
                Ok(process) => {
                    let end = self.follow(process, &mut observed, &tell, &mut stop).await;
                    let restart = if end.code == 0 { self.again.1 } else { self.again.0 };
                    observed.ready = false;
                    observed.state = State::Ended(end.clone());
                    self.tell(&tell, &observed);
                    if !restart || stop.borrow().is_some() {
                        return;
                    }
                    observed.last = Some(end);
                }
                Err(error) => {
                    let message = format!("{error:#}");
                    observed.state = State::Waiting { reason: "RunContainerError", message };
                    self.tell(&tell, &observed);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = grace(&mut stop) => return,
            }
            pause = LONGEST_PAUSE.min(pause * 2);
            observed.restarts += 1;
        }
    }

    fn start(&self) -> Result<Process> {
        let mut command = self.sandbox.command(&self.program)?;
        command.args(&self.args).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        Process::start(&mut command, &self.log)
    }

    /// Follows one process to its end.
    async fn follow(
        &self,
        mut process: Process,
        observed: &mut Observed,
        tell: &watch::Sender<Vec<Observed>>,
        stop: &mut watch::Receiver<Option<Duration>>,
    ) -> End {
        let from = Timestamp::now();
        observed.state = State::Running { since: from };
        observed.ready = self.probe.is_none();
        self.tell(tell, observed);
        let status = tokio::select! {
            status = process.ended() => status,
            grace = grace(stop) => process.stop(grace).await,
            () = self.watch_readiness(observed, tell) => unreachable!("a probe never ends"),
        };
        let code = status.map_or(-1, exit_code);
        End { code, from, to: Timestamp::now() }
    }

    async fn watch_readiness(&self, observed: &mut Observed, tell: &watch::Sender<Vec<Observed>>) {
        if let Some(probe) = &self.probe {
            let changed = |ready| {
                observed.ready = ready;
                self.tell(tell, observed);
            };
            probe.watch(changed).await;
        }
        std::future::pending().await
    }

    fn tell(&self, tell: &watch::Sender<Vec<Observed>>, observed: &Observed) {
        tell.send_modify(|all| all[self.index] = observed.clone());
    }
}

/// Waits for the order to end; without anybody who could give one, it is given.
async fn grace(stop: &mut watch::Receiver<Option<Duration>>) -> Duration {
    let order = stop.wait_for(Option::is_some).await;
    order.ok().and_then(|grace| *grace).unwrap_or_default()
}

/// As shells have it: 128 and the signal.
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// The environment of a container.
fn environment(spec: &Spec, pod: &Pod, address: Ipv4Addr) -> Result<Vec<(String, String)>> {
    ensure!(spec.env_from.is_none(), "container {}: envFrom cannot be used here", spec.name);
    let variables = spec.env.iter().flatten();
    variables.map(|variable| Ok((variable.name.clone(), value(variable, pod, address)?))).collect()
}

/// An argument with `$(NAME)` replaced, as kubelets do it.
fn expanded(arg: &str, env: &[(String, String)]) -> String {
    env.iter().fold(arg.to_owned(), |arg, (name, value)| arg.replace(&format!("$({name})"), value))
}

fn value(variable: &EnvVar, pod: &Pod, address: Ipv4Addr) -> Result<String> {
    let Some(source) = &variable.value_from else {
        return Ok(variable.value.clone().unwrap_or_default());
    };
    let path = source.field_ref.as_ref().map(|field| field.field_path.as_str());
    match path {
        Some("metadata.name") => Ok(pod.name_any()),
        Some("metadata.namespace") => Ok(pod.namespace().unwrap_or_default()),
        Some("status.podIP") => Ok(address.to_string()),
        Some(other) => bail!("env {}: fieldRef {other} cannot be used here", variable.name),
        None => bail!("env {}: of valueFrom only fieldRef can be used here", variable.name),
    }
}
