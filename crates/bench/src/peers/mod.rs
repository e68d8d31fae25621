//! The proxies that are measured: how each is configured for the same work, started, and ended.

mod fairway;
mod floor;
mod haproxy;
mod nginx;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::machine::Cores;
use crate::process::{Family, pause};
use crate::tls::Certificate;

pub(crate) use fairway::{gateway, ingress, route, run as fairway_command, surroundings};
pub(crate) use floor::run as floor;

/// Time enough to read ten thousand hosts.
const START: Duration = Duration::from_secs(120);
const STOP: Duration = Duration::from_secs(10);

/// A proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// The subject.
    Fairway,
    /// The same with `--engine=nginx`: its own process and Debian's nginx under it.
    FairwayNginx,
    /// Debian's nginx, configured as ingress-nginx configures its own.
    Nginx,
    /// Debian's HAProxy.
    Haproxy,
    /// No proxy: the system calls that none can do without.
    Floor,
}

/// What every proxy of a measurement serves.
pub(crate) struct Site<'a> {
    /// For configuration and logs.
    pub(crate) folder: &'a Path,
    /// The upstream for HTTP/1.1 and WebSocket.
    pub(crate) http: SocketAddr,
    /// The upstream for gRPC.
    pub(crate) grpc: SocketAddr,
    /// For the hosts with TLS.
    pub(crate) certificate: &'a Certificate,
    /// Hosts without TLS.
    pub(crate) hosts: Vec<String>,
    /// The paths that each of them has with Fairway; the others know hosts alone.
    pub(crate) paths: &'a [&'a str],
    /// The program `fairway`.
    pub(crate) binary: &'a Path,
    /// Further flags for it.
    pub(crate) flags: &'a [String],
}

/// The host with TLS.
pub(crate) const SECURE: &str = "secure.bench.test";
/// The host with TLS whose upstream speaks gRPC.
pub(crate) const GRPC: &str = "grpc.bench.test";

/// A host without TLS whose location has a `configuration-snippet`.
#[derive(Debug)]
pub(crate) struct Snippet {
    /// Its name.
    pub(crate) host: &'static str,
    /// What nginx and Fairway have there; HAProxy does not understand it, and has no part in it.
    pub(crate) text: &'static str,
}

/// Headers that security guides ask for.
pub(crate) const HEADERS: Snippet = Snippet {
    host: "headers.bench.test",
    text: "more_set_headers \"X-Frame-Options: DENY\";\n\
           more_set_headers \"X-Content-Type-Options: nosniff\";\n\
           more_set_headers \"Referrer-Policy: strict-origin-when-cross-origin\";\n\
           more_set_headers \"Permissions-Policy: geolocation=(), camera=()\";\n\
           more_set_headers \"Content-Security-Policy: default-src 'self'\";\n",
};
/// Who is kept out by what it calls itself, and a path that moved.
pub(crate) const REWRITE: Snippet = Snippet {
    host: "rewrite.bench.test",
    text: "if ($http_user_agent ~* \"(crawler|spider|scraper)\") { return 403; }\n\
           rewrite ^/old/path/(.*)$ /$1 break;\n",
};
/// A path of the host of [`HEADERS`] that has no snippet.
pub(crate) const PLAIN: &str = "/bin";
/// A host with the same paths and no snippet at all; its name is as long.
pub(crate) const TWO_PATHS: &str = "twoways.bench.test";
/// A host that clients of loopback alone may have.
pub(crate) const GUARDED: &str = "guarded.bench.test";
/// All hosts with snippets.
pub(crate) const SNIPPETS: [&Snippet; 2] = [&HEADERS, &REWRITE];

/// A proxy that runs.
pub(crate) struct Running {
    /// Which one.
    pub(crate) peer: Peer,
    /// Its plain listener.
    pub(crate) http: SocketAddr,
    /// Its TLS listener.
    pub(crate) https: SocketAddr,
    /// Its port for health checks, where it has one.
    pub(crate) health: SocketAddr,
    child: Child,
    log: PathBuf,
}

/// The listeners of a proxy about to be started.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    /// Without TLS.
    pub(crate) http: u16,
    /// With TLS.
    pub(crate) https: u16,
    /// Health checks, where the proxy has them.
    pub(crate) health: u16,
}

impl Ports {
    /// Ports of loopback that nobody listens on, each another one: these proxies cannot be told to choose them.
    pub(crate) fn free() -> Result<Self> {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port");
        let port = |held: &TcpListener| anyhow::Ok(held.local_addr().context("its port")?.port());
        // All of them at once: the system would give one that is free again a second time.
        let [http, https, health] = [listen()?, listen()?, listen()?];
        Ok(Self { http: port(&http)?, https: port(&https)?, health: port(&health)? })
    }
}

impl Peer {
    /// All of them, in the order in which they take turns.
    pub(crate) const ALL: [Self; 5] =
        [Self::Fairway, Self::FairwayNginx, Self::Nginx, Self::Haproxy, Self::Floor];
    /// Those that are proxies.
    pub(crate) const PROXIES: [Self; 4] =
        [Self::Fairway, Self::FairwayNginx, Self::Nginx, Self::Haproxy];

    /// Its name in reports and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fairway => "fairway",
            Self::FairwayNginx => "fairway-nginx",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Floor => "floor",
        }
    }

    /// The version that it says it has; an error when it cannot be started.
    pub(crate) fn version(self, binary: &Path) -> Result<String> {
        let (program, flag) = match self {
            Self::Fairway | Self::FairwayNginx => (binary, "--version"),
            Self::Nginx => (Path::new("nginx"), "-v"),
            Self::Haproxy => (Path::new("haproxy"), "-v"),
            Self::Floor => return Ok("two reads, two writes, and the wait for both".to_owned()),
        };
        let output = Command::new(program)
            .arg(flag)
            .output()
            .with_context(|| format!("start {}: {}", program.display(), self.remedy()))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        // Fairway says several things about itself.
        let release = text.lines().find_map(|line| line.trim().strip_prefix("Release:"));
        let line = release.or(text.lines().next()).unwrap_or_default();
        let line = line.trim_start_matches("nginx version: ");
        Ok(line.split(" - ").next().unwrap_or_default().trim().to_owned())
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Fairway | Self::FairwayNginx => {
                "build it with `cargo build --release`, or name it with --binary"
            }
            Self::Nginx => "install Debian's package nginx, or leave it out with --peer",
            Self::Haproxy => "install Debian's package haproxy, or leave it out with --peer",
            Self::Floor => "it is this program itself",
        }
    }

    /// Starts it on its core, by way of `wrapper`; it may take a moment until it answers.
    pub(crate) fn start(self, site: &Site<'_>, cores: &Cores, wrapper: &[&str]) -> Result<Running> {
        let folder = site.folder.join(self.name());
        if folder.exists() {
            fs::remove_dir_all(&folder).context("clear a folder")?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let ports = Ports::free()?;
        let command = match self {
            Self::Fairway => fairway::command(site, &folder, ports)?,
            Self::FairwayNginx => fairway::on_nginx(site, &folder, ports)?,
            Self::Nginx => nginx::command(site, &folder, ports)?,
            Self::Haproxy => haproxy::command(site, &folder, ports)?,
            Self::Floor => floor::command(site, ports)?,
        };
        let wrapped = wrapper.iter().map(ToString::to_string).chain(command);
        Running::start(self, &wrapped.collect::<Vec<_>>(), ports, &folder, cores)
    }
}

impl Running {
    /// Starts a proxy with its output in `folder`.
    pub(crate) fn start(
        peer: Peer,
        command: &[String],
        ports: Ports,
        folder: &Path,
        cores: &Cores,
    ) -> Result<Self> {
        let log = folder.join("output.log");
        // Appending keeps a log that is cut between measurements free of holes.
        let output = File::options().create(true).append(true).open(&log).context("open a log")?;
        let errors = File::create(folder.join("errors.log")).context("open a log")?;
        let mut whole = cores.proxy_prefix();
        whole.extend_from_slice(command);
        let child = Command::new(&whole[0])
            .args(&whole[1..])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("start {}: {}", peer.name(), peer.remedy()))?;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (http, https) = (address(ports.http), address(ports.https));
        let health = address(ports.health);
        Ok(Self { peer, http, https, health, child, log })
    }

    /// The number of its first process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its processes, as they are now.
    pub(crate) fn family(&self) -> Family {
        Family::of(self.child.id())
    }

    /// Waits until `answers` says that it serves.
    pub(crate) fn wait(&mut self, mut answers: impl FnMut() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        loop {
            let Err(error) = answers() else { return Ok(()) };
            if let Some(status) = self.child.try_wait().context("look after a proxy")? {
                bail!("{} ended with {status}:\n{}", self.peer.name(), self.last_words());
            }
            ensure!(
                start.elapsed() < START,
                "{} does not answer after {START:?}: {error:#}\n{}",
                self.peer.name(),
                self.last_words()
            );
            pause(Duration::from_millis(10));
        }
    }

    /// The end of what it wrote to its standard error output.
    fn last_words(&self) -> String {
        let text = self.errors();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    /// All of that.
    fn errors(&self) -> String {
        let text = fs::read(self.log.with_file_name("errors.log")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Asks it to end, waits as long as it takes, and returns what it wrote to its standard error output.
    pub(crate) fn finish(mut self) -> Result<String> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process number")?;
        kill_process(pid, Signal::TERM).context("end a proxy")?;
        self.child.wait().context("wait for a proxy")?;
        Ok(self.errors())
    }

    /// Empties its access log, which would otherwise fill the disk.
    pub(crate) fn cut_log(&self) -> Result<()> {
        let log = File::options().write(true).open(&self.log).context("open a log")?;
        log.set_len(0).context("empty a log")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // nginx ends at once with SIGTERM; Fairway may wait for open connections, so its time is bounded.
            let _ = kill_process(pid, Signal::TERM);
        }
        let family = self.family();
        let start = Instant::now();
        while start.elapsed() < STOP {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            pause(Duration::from_millis(10));
        }
        // What it started would outlive it.
        family.kill();
        drop(self.child.wait());
    }
}
