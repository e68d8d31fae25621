//! `make run`: Fairway serving the folder `manifests` of this example (or another one, given as argument), with
//! upstreams behind it, and no cluster.

mod upstreams;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use upstreams::Upstream;

/// The manifests that are served unless others are named, and that are there to be edited.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests");
/// How long Fairway may take until it serves.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let manifests = std::env::args().nth(1).unwrap_or_else(|| MANIFESTS.to_owned());
    let ports = Ports::choose().await?;
    let upstreams = upstreams::start().await.context("start the demo's upstreams")?;
    let folder = write_endpoints(&upstreams)?;
    let endpoints = &folder.0;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut fairway = start_fairway(&manifests, endpoints, &ports)?;
    tokio::select! {
        done = serve(&mut fairway, &manifests, endpoints, &ports) => done,
        _ = interrupt.recv() => stop(&mut fairway).await,
        _ = terminate.recv() => stop(&mut fairway).await,
    }
}

/// A folder that goes with the demo, however that ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Where Fairway listens.
struct Ports {
    http: u16,
    https: u16,
    health: u16,
}

impl Ports {
    /// `PORT` and `TLS_PORT` of the environment; where they are not given, the same ones at each start, so that a
    /// shell's history is of use, or others where these are taken. One that is given and taken is told at once: else
    /// whoever has it would answer in place of Fairway.
    async fn choose() -> Result<Self> {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        // Held together, so that they differ; released right before Fairway takes them.
        let mut held = Vec::new();
        for (usual, name) in [(8080, "PORT"), (8443, "TLS_PORT"), (10254, "")] {
            let listener = match given(name)? {
                Some(port) => bind(port).await.with_context(|| {
                    format!("{name}={port} cannot be had; give another port by {name}=, or none")
                })?,
                None => match bind(usual).await {
                    Ok(listener) => listener,
                    Err(_) => bind(0).await?,
                },
            };
            held.push((listener.local_addr()?.port(), listener));
        }
        Ok(Self { http: held[0].0, https: held[1].0, health: held[2].0 })
    }
}

fn given(name: &str) -> Result<Option<u16>> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => {
            let port = value.parse().ok().filter(|port| *port > 0);
            port.map(Some).with_context(|| {
                format!("{name}={value} is no port; give a number from 1 to 65535")
            })
        }
        _ => Ok(None),
    }
}

/// The folder `debug` or `release` of this build, where Fairway is, too.
fn build_folder() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    Ok(here.parent().context("the demo is not in a folder")?.to_path_buf())
}

/// Writes the EndpointSlices, whose ports are known only now, and returns their folder.
fn write_endpoints(upstreams: &[Upstream]) -> Result<Folder> {
    let build = build_folder()?;
    let folder = build.parent().context("the build folder has no parent")?.join("demo");
    let folder = folder.join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let folder = Folder(folder);
    let mut yaml =
        String::from("# Written by `make run` at each start: where the demo's upstreams listen.\n");
    for Upstream { service, port_name, port } in upstreams {
        write!(
            yaml,
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: {service}\n  \
             namespace: demo\n  labels:\n    kubernetes.io/service-name: {service}\naddressType: IPv4\n\
             endpoints:\n  - addresses: [127.0.0.1]\n    conditions:\n      ready: true\n\
             ports:\n  - name: {port_name}\n    port: {port}\n    protocol: TCP\n"
        )?;
    }
    let file = folder.0.join("endpoints.yaml");
    std::fs::write(&file, yaml).with_context(|| format!("write {}", file.display()))?;
    Ok(folder)
}

fn start_fairway(manifests: &str, endpoints: &Path, ports: &Ports) -> Result<Child> {
    let program = build_folder()?.join("fairway");
    let mut command = Command::new(&program);
    command.arg("run").args(["--manifests", manifests, "--manifests"]).arg(endpoints);
    let flags = [
        ("--http-port", ports.http),
        ("--https-port", ports.https),
        ("--healthz-port", ports.health),
    ];
    for (flag, port) in flags {
        command.arg(flag).arg(port.to_string());
    }
    command.arg("--enable-metrics");
    // A demo is for this machine alone.
    command.args(["--bind-address", "127.0.0.1", "--healthz-host", "127.0.0.1"]);
    // In a process group of its own, Ctrl-C reaches it once: from here, as the signal of an orderly end.
    command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    command.spawn().with_context(|| {
        format!("start {}; `cargo build --bin fairway` makes it", program.display())
    })
}

/// Waits until requests are answered, says how to send some, and waits for Fairway to end.
async fn serve(
    fairway: &mut Child,
    manifests: &str,
    endpoints: &Path,
    ports: &Ports,
) -> Result<()> {
    let started = Instant::now();
    while !answers(ports.http).await {
        if let Some(status) = fairway.try_wait()? {
            bail!(
                "Fairway ended before it served anything ({status}); what it wrote above says why"
            );
        }
        ensure!(
            started.elapsed() < PATIENCE,
            "Fairway did not serve demo.localhost within {PATIENCE:?}"
        );
        #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Who has read enough, as `| head` has, is served all the same.
    if writeln!(std::io::stdout(), "{}", instructions(manifests, endpoints, ports)).is_err() {
        eprintln!("demo: nobody reads what there is to try; it is served, and Ctrl-C ends it");
    }
    let status = fairway.wait().await?;
    bail!("Fairway ended: {status}")
}

/// Whether the host of the demo's first line answers 200.
async fn answers(port: u16) -> bool {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: demo.localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    matches!(tokio::time::timeout(Duration::from_secs(1), exchange).await, Ok(Ok(true)))
}

fn instructions(
    manifests: &str,
    endpoints: &Path,
    Ports { http, https, health }: &Ports,
) -> String {
    let upgrade = "-H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' \
                   -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='";
    let call = "-H 'content-type: application/grpc' -H 'te: trailers' --data-binary @-";
    let curl = if found("curl") {
        ""
    } else {
        "\ncurl is not installed here; `apt-get install curl` brings it.\n"
    };
    let fairway = build_folder().unwrap_or_default().join("fairway");
    let fairway = fairway.display();
    let endpoints = endpoints.display();
    format!(
        "
Fairway serves {manifests}
{curl}
HTTP
  curl http://demo.localhost:{http}/
  curl http://demo.localhost:{http}/green

HTTPS, with the self-signed default certificate
  curl -k --http1.1 https://secure.demo.localhost:{https}/

HTTP/2
  curl -k --http2 -w 'spoken: HTTP/%{{http_version}}\\n' https://secure.demo.localhost:{https}/

WebSocket: greets, then curl waits two seconds for more
  curl -siN --max-time 2 --http1.1 {upgrade} http://chat.demo.localhost:{http}/ \
    | cat -v; echo

gRPC: the message comes back, then the status as trailers
  printf '\\0\\0\\0\\0\\7\\12\\5hello' | curl -si --http2-prior-knowledge {call} \\
    http://grpc.demo.localhost:{http}/demo.Echo/Say | cat -v

What it makes of the objects, why a request goes where it goes, and what it counts
  {fairway} check {manifests}
  {fairway} explain --manifests {manifests} --manifests {endpoints} \\
    http://demo.localhost:{http}/green
  curl http://127.0.0.1:{health}/configuration
  curl http://127.0.0.1:{health}/metrics

A page about it, and its routes in a terminal
  http://127.0.0.1:{health}/ui
  {fairway} top --healthz-port {health}

Edit {manifests}/site.yaml
(say, `name: blue` of the first Ingress into `name: green`), save, and send a request again. Ctrl-C ends it.
"
    )
}

fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Asks Fairway to finish, and waits for it.
async fn stop(fairway: &mut Child) -> Result<()> {
    let id = fairway.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(id) = id {
        kill_process(id, Signal::TERM)?;
    }
    let status = fairway.wait().await?;
    ensure!(status.success(), "Fairway ended: {status}");
    Ok(())
}
