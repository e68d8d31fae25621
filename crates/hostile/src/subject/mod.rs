//! The proxy under test: started here in front of our upstream, or running already.

mod manifests;
mod nginx;

use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Which proxy.
#[derive(Clone, Debug)]
pub enum Program {
    /// A `fairway` binary.
    Fairway(PathBuf),
    /// An `nginx` binary, to compare.
    Nginx(PathBuf),
    /// Something that runs already, with our upstream behind it.
    Running {
        /// Where it speaks HTTP/1.
        http: SocketAddr,
        /// Where it speaks HTTP/2 over TLS.
        https: SocketAddr,
    },
}

/// How it is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Bodies are passed on as they come, not collected first.
    pub streaming: bool,
    /// Keys of the controller's ConfigMap.
    pub configuration: Vec<(&'static str, String)>,
    /// Further flags of Fairway.
    pub flags: Vec<&'static str>,
}

/// The running proxy; it ends when this is dropped.
pub struct Subject {
    /// Where it speaks HTTP/1.
    pub http: SocketAddr,
    /// Where it speaks HTTP/2 over TLS.
    pub https: SocketAddr,
    child: Option<Child>,
    folder: TempDir,
}

impl Subject {
    /// Starts the proxy in front of an upstream; it may need a moment until it answers.
    pub fn start(program: &Program, setup: &Setup, upstream: SocketAddr) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [http, https, health] = free_ports()?;
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut subject = Self { http: local(http), https: local(https), child: None, folder };
        let path = subject.folder.path();
        let mut command = match program {
            Program::Running { http, https } => {
                (subject.http, subject.https) = (*http, *https);
                return Ok(subject);
            }
            Program::Fairway(binary) => {
                let objects = path.join("manifests");
                manifests::write(&objects, setup, upstream)?;
                let mut command = Command::new(binary);
                command.arg("run").arg("--manifests").arg(objects);
                command.arg(format!("--configmap={}", manifests::CONFIGURATION));
                command.args(&setup.flags);
                for (flag, port) in [("http", http), ("https", https), ("healthz", health)] {
                    command.arg(format!("--{flag}-port={port}"));
                }
                command
            }
            Program::Nginx(binary) => {
                let file = nginx::write(path, setup, upstream, (http, https))?;
                let mut command = Command::new(binary);
                command.arg("-p").arg(path).arg("-c").arg(file);
                command
            }
        };
        let log = std::fs::File::create(path.join("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let program = command.as_std().get_program().to_owned();
        let child =
            command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        subject.child = Some(child);
        Ok(subject)
    }

    /// An error with what it wrote, if it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
            bail!("the proxy ended with {status}:\n{}", self.log());
        }
        Ok(())
    }

    /// The most memory of its own that it had at a time, in MiB, without the pages of its files, which can be had back:
    /// those are counted as they are now. Only of a child, on Linux.
    pub fn peak(&self) -> Option<u64> {
        let id = self.child.as_ref()?.id()?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let kib = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(kib("VmHWM:")?.saturating_sub(kib("RssFile:")?) >> 10)
    }

    /// How many bytes it wrote.
    pub fn log_size(&self) -> u64 {
        std::fs::metadata(self.folder.path().join("log")).map_or(0, |log| log.len())
    }

    /// The last lines it wrote.
    pub fn log(&self) -> String {
        let text = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// Ports that are free now. Another process may take one before the proxy does; then its start says so.
fn free_ports() -> Result<[u16; 3]> {
    let listeners: Vec<TcpListener> =
        (0..3).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
