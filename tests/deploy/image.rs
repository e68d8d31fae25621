//! The root file system of the image: what is in it, and how the program starts there.

use crate::helm::render;
use crate::{read, root};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use testkit::cluster::{self, Connection, Process, eventually};
use testkit::yaml;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bit 10: NET_BIND_SERVICE and nothing else.
const LOW_PORTS: &str = "0000000000000400";

async fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {said}");
    Ok(())
}

/// A root file system in a folder of its own, with the mounts that every container has.
struct Rootfs {
    folder: TempDir,
    place: PathBuf,
}

impl Rootfs {
    /// Assembles it and takes away the right to write.
    async fn assemble() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let place = folder.path().join("root");
        let script = root().join("scripts/rootfs");
        let script = script.to_str().context("a path that is text")?;
        let at = place.to_str().context("a path that is text")?;
        run(script, &[env!("CARGO_BIN_EXE_fairway"), at]).await?;
        // Mount points, as a runtime makes them: /empty is what the chart mounts for a default backend.
        for name in ["proc", "empty"] {
            fs::create_dir(place.join(name))?;
        }
        run("mount", &["--bind", at, at]).await?;
        run("mount", &["-t", "proc", "proc", &format!("{at}/proc")]).await?;
        run("mount", &["-o", "remount,bind,ro", at]).await?;
        let refusal = fs::write(place.join("tmp/probe"), "").err().context("it can be written")?;
        ensure!(refusal.kind() == std::io::ErrorKind::ReadOnlyFilesystem, "{refusal}");
        Ok(Self { folder, place })
    }

    /// Like that of the image with nginx: this machine's Debian, the program, and a volume at /tmp.
    async fn with_nginx() -> Result<Self> {
        let rootfs = Self::assemble().await?;
        let at = rootfs.place.to_str().context("a path that is text")?;
        run("mount", &["-o", "remount,bind,rw", at]).await?;
        for name in ["usr", "etc", "lib", "lib64", "dev", "var"] {
            let mount = rootfs.place.join(name);
            fs::create_dir_all(&mount)?;
            let mount = mount.to_str().context("text")?;
            run("mount", &["--rbind", &format!("/{name}"), mount]).await?;
            run("mount", &["-o", "remount,bind,ro", mount]).await?;
        }
        run("mount", &["-o", "remount,bind,ro", at]).await?;
        rootfs.empty_folder("/tmp").await?;
        Ok(rootfs)
    }

    /// Mounts what a Pod has as an `emptyDir`.
    async fn empty_folder(&self, path: &str) -> Result<()> {
        let at = format!("{}{path}", self.place.display());
        run("mount", &["-t", "tmpfs", "-o", "mode=1777,size=4m", "tmpfs", &at]).await
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("fairway.log")
    }
}

impl Drop for Rootfs {
    /// The folder cannot be deleted while it is mounted, and must not be: parts of it are this machine's own folders.
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        unmount.args(["--recursive", "--lazy"]).arg(&self.place);
        let is_free = unmount.status().is_ok_and(|status| status.success());
        self.folder.disable_cleanup(!is_free);
    }
}

/// Starts the program in it as the user of the image, with at most the capabilities in `bounds`.
fn start(place: &Path, bounds: &str, program: &str, flags: &[&str], log: &Path) -> Result<Process> {
    // chroot itself needs three, and gives them up with its user.
    let bounds = format!("-all,+sys_chroot,+setuid,+setgid{bounds}");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", &bounds, "--inh-caps", "-all", "chroot"]);
    command.args(["--userspec=101:82", "--groups=82"]).arg(place).arg(program).args(flags);
    Process::start(&mut command, log)
}

async fn answer(port: u16, path: &str) -> Result<u16> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(Connection::open(address).await?.get("a.test", path).await?.status)
}

/// The value of a line in /proc/PID/status of the only process that runs in `place`.
fn status(place: &Path, name: &str) -> Result<String> {
    for process in fs::read_dir("/proc")?.flatten() {
        let is_ours = fs::read_link(process.path().join("root")).is_ok_and(|root| root == place);
        let Ok(text) = fs::read_to_string(process.path().join("status")) else { continue };
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if let Some(line) = line.filter(|_| is_ours) {
            return Ok(line.trim().to_owned());
        }
    }
    anyhow::bail!("no process has {} as its root", place.display())
}

#[test]
fn it_starts_as_nobody_special_on_a_read_only_root_with_low_ports_and_without_them() {
    cluster::private_network(async || {
        let rootfs = Rootfs::assemble().await?;
        rootfs.empty_folder("/tmp").await?;
        let (place, log) = (&rootfs.place, rootfs.log());
        let mut low = start(
            place,
            ",+net_bind_service",
            "/nginx-ingress-controller",
            &["--manifests=/empty"],
            &log,
        )?;
        eventually("an answer on port 80", PATIENCE, async || answer(80, "/").await)
            .await
            .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
        // Traffic is answered a moment before that is said.
        eventually("it is ready", PATIENCE, async || match answer(10254, "/healthz").await? {
            200 => Ok(()),
            other => bail!("{other}"),
        })
        .await?;
        ensure!(answer(80, "/").await? == 404);
        ensure!(answer(80, "/healthz").await? == 200, "the probes of the chart's default backend");
        ensure!(status(place, "CapEff")? == LOW_PORTS && status(place, "CapPrm")? == LOW_PORTS);
        ensure!(
            status(place, "Uid")?.starts_with("101\t") && status(place, "Gid")?.starts_with("82\t")
        );
        let ended = low.stop(Duration::from_secs(10)).await?;
        ensure!(ended.success(), "SIGTERM ended it with {ended}");
        // A Pod that drops every capability still starts; only its ports are high.
        let flags =
            ["run", "--manifests=/empty", "--http-port=8080", "--https-port=0", "--healthz-port=0"];
        let mut high = start(place, "", "/fairway", &flags, &log)?;
        eventually("an answer on port 8080", PATIENCE, async || answer(8080, "/").await).await?;
        ensure!(status(place, "CapPrm")? == "0000000000000000");
        high.stop(Duration::from_secs(10)).await?;
        fs::read_to_string(&log)?.contains("ready").then_some(()).context("it was ready")
    });
}

/// The Pod that a workload of deploy/ or of the chart makes.
fn pods() -> Result<Vec<(String, Value)>> {
    let mut pods = Vec::new();
    for file in ["deployment.yaml", "daemonset.yaml"] {
        let objects = yaml::documents(&read(&format!("deploy/{file}")))?;
        let workload = objects.into_iter().find(|object| object["spec"]["template"].is_object());
        pods.push((file.to_owned(), workload.context("a workload")?));
    }
    for options in [&[][..], &["--set", "controller.kind=DaemonSet"], &["--set", OWN_VOLUME]] {
        let objects = render(options).map_err(anyhow::Error::msg)?;
        let is_controller =
            |object: &Value| matches!(object["kind"].as_str(), Some("Deployment" | "DaemonSet"));
        let workload = objects.into_iter().find(is_controller).context("a workload")?;
        pods.push((format!("the chart with {options:?}"), workload));
    }
    Ok(pods
        .into_iter()
        .map(|(of, workload)| (of, workload["spec"]["template"]["spec"].clone()))
        .collect())
}

/// What people add to ingress-nginx's values who made its root read-only.
const OWN_VOLUME: &str = "controller.extraVolumes[0].name=own,controller.extraVolumes[0].emptyDir.medium=,\
     controller.extraVolumeMounts[0].name=own,controller.extraVolumeMounts[0].mountPath=/tmp";

/// Where the first container of a Pod has empty folders.
fn empty_folders(pod: &Value) -> Result<Vec<String>> {
    let all = |value: &Value| value.as_array().cloned().context("a list");
    let volumes = all(&pod["volumes"])?;
    let is_empty = |mount: &Value| {
        volumes
            .iter()
            .any(|volume| volume["name"] == mount["name"] && volume["emptyDir"].is_object())
    };
    let mounts = all(&pod["containers"][0]["volumeMounts"])?;
    let mounts = mounts.iter().filter(|mount| is_empty(mount));
    mounts.map(|mount| mount["mountPath"].as_str().map(str::to_owned).context("a path")).collect()
}

#[test]
fn bodies_above_their_buffer_pass_with_the_mounts_and_rights_of_every_manifest() {
    cluster::private_network(async || {
        let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = upstream.local_addr()?.port();
        tokio::spawn(swallow(upstream));
        for (of, pod) in pods()? {
            let security = &pod["containers"][0]["securityContext"];
            ensure!(
                security["readOnlyRootFilesystem"] == true && security["runAsUser"] == 101,
                "{of}"
            );
            let rootfs = Rootfs::assemble().await?;
            let (place, log) = (&rootfs.place, rootfs.log());
            for path in empty_folders(&pod)? {
                rootfs.empty_folder(&path).await?;
            }
            let objects = OBJECTS.replace("PORT", &port.to_string());
            let manifests = rootfs.folder.path().join("objects");
            fs::create_dir(&manifests)?;
            fs::write(manifests.join("objects.yaml"), objects)?;
            let empty = place.join("empty");
            let from = manifests.to_str().context("text")?;
            run("mount", &["--bind", from, empty.to_str().context("text")?]).await?;
            let flags = ["run", "--manifests=/empty", "--http-port=8080", "--https-port=0"];
            let mut fairway = start(place, ",+net_bind_service", "/fairway", &flags, &log)?;
            let answer = async || post(1 << 20).await;
            let status = eventually("an answer to 1 MiB", PATIENCE, answer).await;
            let told = || format!("{of}: {}", fs::read_to_string(&log).unwrap_or_default());
            ensure!(status.with_context(told)? == 200, told());
            fairway.stop(Duration::from_secs(10)).await?;
        }
        Ok(())
    });
}

const OBJECTS: &str = r#"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a, annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 2m}}
spec:
  ingressClassName: nginx
  rules:
    - host: a.test
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
ports: [{port: PORT}]
"#;

/// Answers one request for each connection, once its body of 1 MiB is there.
async fn swallow(listener: TcpListener) {
    while let Ok((mut client, _)) = listener.accept().await {
        tokio::spawn(async move {
            let (mut seen, mut buffer) = (0, vec![0; 1 << 16]);
            while seen < 1 << 20 {
                match client.read(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => seen += read,
                }
            }
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        });
    }
}

/// The status of an answer to a body of so many bytes.
async fn post(bytes: usize) -> Result<u16> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, 8080)).await?;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b'x'; bytes]).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).context("a status line")?;
    // Until the objects are read, there is nothing under this host.
    ensure!(status != "404", "not yet");
    Ok(status.parse()?)
}

#[test]
fn with_nginx_it_serves_low_ports_as_nobody_special_on_a_read_only_root() {
    cluster::private_network(async || {
        let rootfs = Rootfs::with_nginx().await?;
        let (place, log) = (&rootfs.place, rootfs.log());
        // As a container runtime does with what it gives to a user: nginx opens /dev/stdout by its name.
        fs::write(&log, "")?;
        std::os::unix::fs::chown(&log, Some(101), Some(82))?;
        let flags = ["run", "--manifests=/empty", "--engine=nginx", "--worker-threads=1"];
        let mut fairway = start(place, ",+net_bind_service", "/fairway", &flags, &log)?;
        let ready = async || (answer(10254, "/healthz").await? == 200).then_some(()).context("500");
        eventually("the first configuration", PATIENCE, ready)
            .await
            .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
        ensure!(answer(80, "/").await? == 404);
        let master = fs::read_to_string(place.join("tmp/fairway-nginx/nginx.pid"))?;
        let status = fs::read_to_string(format!("/proc/{}/status", master.trim()))?;
        ensure!(status.contains(&format!("CapEff:\t{LOW_PORTS}")), "{status}");
        ensure!(status.contains("\nUid:\t101\t"), "{status}");
        let ended = fairway.stop(Duration::from_secs(20)).await?;
        ensure!(ended.success(), "SIGTERM ended it with {ended}");
        ensure!(!Path::new(&format!("/proc/{}", master.trim())).exists(), "nginx is still there");
        Ok(())
    });
}

#[test]
fn it_holds_the_program_its_libraries_and_little_else() {
    cluster::private_network(async || {
        let folder = tempfile::tempdir()?;
        let place = folder.path().join("root");
        let at = place.to_str().context("a path that is text")?;
        let script = root().join("scripts/rootfs");
        run(script.to_str().context("text")?, &[env!("CARGO_BIN_EXE_fairway"), at]).await?;
        for link in ["nginx-ingress-controller", "wait-shutdown", "dbg"] {
            ensure!(fs::read_link(place.join(link))? == Path::new("fairway"), "{link}");
        }
        let output = Command::new("find").arg(&place).args(["-type", "f"]).output().await?;
        let files = String::from_utf8(output.stdout)?;
        let is_known = |file: &&str| {
            let name = file.rsplit('/').next().unwrap_or_default();
            let known = ["fairway", "ca-certificates.crt", "passwd", "group", "nsswitch.conf"];
            known.contains(&name) || name.contains(".so.")
        };
        let strange: Vec<&str> = files.lines().filter(|file| !is_known(file)).collect();
        ensure!(strange.is_empty(), "{strange:?}");
        Ok(())
    });
}

#[test]
fn the_image_runs_as_the_user_that_manifests_name() {
    let file = read("Dockerfile");
    assert!(file.contains("\nUSER 101:82\n") && file.contains("scripts/rootfs /fairway /rootfs"));
    let nginx = file.split("\nFROM ").find(|stage| stage.contains(" AS nginx\n"));
    let nginx = nginx.expect("an image with nginx");
    assert!(nginx.contains("\nUSER 101:82\n"));
    let makefile = read("Makefile");
    let of = |name: &str| {
        let line = makefile.lines().find_map(|line| line.strip_prefix(name)).expect("a variable");
        line.split(' ').filter(|word| !word.contains('$')).collect::<Vec<_>>()
    };
    for package in of("NGINX := ") {
        assert!(nginx.contains(&format!(" {package} ")), "{package} is tested with");
    }
    for module in of("MODULES := ") {
        assert!(nginx.contains(&format!(" libnginx-mod-http-{module} ")), "{module}");
    }
    let rust = read("rust-toolchain.toml");
    let version = rust.split('"').nth(1).expect("a channel");
    assert!(
        file.contains(&format!("ARG RUST={version}")),
        "the Dockerfile builds with another Rust than {version}"
    );
}
