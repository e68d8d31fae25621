//! The engine that carries HTTP: this is the only place that knows how many there are.

use crate::flags::Listeners;
use crate::room::Room;
use anyhow::{Context, Result};
use engine::{Applied, Engine, Rejected};
use model::{Certificate, Changes, Configuration, Server, Steps};
use nginx::{Environment, Nginx, Requests};
use proxy::Native;
use std::net::{IpAddr, Ipv6Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stream::Resolver;
use tracing::level_filters::LevelFilter;
use translate::Options;

/// How long nginx may take to read its configuration before somebody is to blame for that.
const PATIENCE: Duration = Duration::from_secs(60);

/// The engine that carries HTTP.
#[derive(Clone, Debug)]
pub(crate) enum HttpEngine {
    /// In this process.
    Native(Arc<Native>),
    /// In a supervised nginx.
    Nginx(Arc<Nginx>),
}

impl HttpEngine {
    /// The engine of this process, if it is that one.
    pub(crate) fn native(&self) -> Option<&Arc<Native>> {
        match self {
            Self::Native(native) => Some(native),
            Self::Nginx(_) => None,
        }
    }

    /// The ports of HTTP and HTTPS.
    pub(crate) fn ports(&self) -> (u16, u16) {
        match self {
            Self::Native(native) => (native.listening().http_port, native.listening().https_port),
            Self::Nginx(nginx) => (nginx.environment().http_port, nginx.environment().https_port),
        }
    }

    /// Who looks names up.
    pub(crate) fn resolver(&self) -> &Arc<Resolver> {
        match self {
            Self::Native(native) => native.resolver(),
            Self::Nginx(nginx) => nginx.resolver(),
        }
    }

    /// Lets clients know that they should move elsewhere; nginx tells them when it is asked to end.
    pub(crate) fn leave(&self) {
        if let Self::Native(native) = self {
            native.leave();
        }
    }

    /// Why nobody is served.
    pub(crate) fn ailment(&self) -> Option<&'static str> {
        match self {
            Self::Native(native) => native.ailment(),
            Self::Nginx(nginx) => nginx.ailment(),
        }
    }

    /// What is being served.
    pub(crate) fn configuration(&self) -> Configuration {
        match self {
            Self::Native(native) => native.current().configuration.clone(),
            Self::Nginx(nginx) => nginx.serving().borrow().clone(),
        }
    }

    /// The certificate that handshakes with this name get, at the addresses of the process; none: the self-signed one
    /// that it made for itself.
    pub(crate) fn certificate(&self, host: &str) -> Option<Arc<Certificate>> {
        match self {
            Self::Native(native) => {
                let generation = native.current();
                let id = generation.certificates.chosen(Some(host))?;
                generation.configuration.certificates.get(&id).cloned()
            }
            Self::Nginx(nginx) => nginx.certificate(host),
        }
    }

    /// Whether requests with this host are somebody's.
    pub(crate) fn has_host(&self, host: &str) -> bool {
        let is_own = |server: &Server| server.name.as_str() != "_";
        match self {
            Self::Native(native) => {
                let generation = native.current();
                let mut routes = generation.configuration.routes.keys();
                let found = generation.sites.find(host, &Steps::default()).ok().flatten();
                found.is_some_and(|site| is_own(&site.server))
                    || routes.any(|key| key.host.as_str() == host)
            }
            Self::Nginx(nginx) => {
                let serving = nginx.serving().borrow().clone();
                let is_called = |server: &Arc<Server>| {
                    is_own(server)
                        && (server.name.as_str() == host
                            || server.certified_names().any(|name| name.as_str() == host))
                };
                serving.servers.values().any(is_called)
            }
        }
    }
}

impl Engine for HttpEngine {
    async fn due(&self) {
        match self {
            Self::Native(native) => native.due().await,
            Self::Nginx(nginx) => nginx.due().await,
        }
    }

    fn takes_portions(&self) -> bool {
        match self {
            Self::Native(native) => native.takes_portions(),
            Self::Nginx(nginx) => nginx.takes_portions(),
        }
    }

    async fn apply(&self, next: &Configuration, changes: &Changes) -> Result<Applied, Rejected> {
        match self {
            Self::Native(native) => native.apply(next, changes).await,
            Self::Nginx(nginx) => nginx.apply(next, changes).await,
        }
    }

    async fn drain(self: Arc<Self>, deadline: Duration) {
        match &*self {
            Self::Native(native) => native.clone().drain(deadline).await,
            Self::Nginx(nginx) => nginx.clone().drain(deadline).await,
        }
    }
}

/// Prepares the nginx engine.
pub(crate) fn nginx(
    listeners: &Listeners,
    room: Room,
    geoip: PathBuf,
    options: &Options,
    requests: Option<Requests>,
) -> Result<Nginx> {
    let resolv = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let environment = Environment {
        directory: directory(listeners),
        addresses: listeners.bind_address.clone(),
        http_port: port(listeners.http_port)?,
        https_port: port(listeners.https_port)?,
        passthrough: options.passthrough,
        health_path: listeners.health_check_path.clone(),
        workers: room.threads,
        open_files: room.files.unwrap_or(1 << 20),
        backlog: Environment::somaxconn(),
        resolvers: Environment::name_servers(&resolv),
        geoip: Some(geoip),
        root: rustix::process::geteuid().is_root(),
        verbose: LevelFilter::current() >= LevelFilter::TRACE,
        ipv6: TcpListener::bind((IpAddr::V6(Ipv6Addr::LOCALHOST), 0)).is_ok(),
        ..Environment::default()
    };
    let program = program().context(
        "--engine=nginx needs nginx: install Debian's nginx with libnginx-mod-http-lua, \
         libnginx-mod-http-headers-more-filter, lua-resty-core and lua-cjson",
    )?;
    let resolver = Arc::new(Resolver::from(options.outside.clone()));
    let pace = listeners.pace();
    let patience = PATIENCE;
    let care = nginx::Care::default();
    let options = nginx::Options { program, environment, resolver, requests, pace, patience, care };
    Ok(Nginx::start(options)?)
}

/// Says which flags have no effect in the nginx engine.
pub(crate) fn tell_without_effect(
    listeners: &Listeners,
    memory_limit: Option<u64>,
    body_files_limit: Option<u64>,
) {
    let given = [
        (
            "trace-secret-file",
            listeners.trace_secret_file.is_some(),
            "nginx does not note why a request went where it went; fairway explain does, without nginx",
        ),
        (
            "memory-limit",
            memory_limit.is_some(),
            "the memory of requests is nginx's own: bound it by max-worker-connections and the Pod's limit",
        ),
        (
            "body-files-limit",
            body_files_limit.is_some(),
            "the temporary files of requests are nginx's own: bound them by the size of their volume",
        ),
    ];
    for (name, _, why) in given.iter().filter(|(_, is_given, _)| *is_given) {
        tracing::warn!("--{name} has no effect with --engine=nginx: {why}");
    }
}

/// The private folder, wherever this process was started.
fn directory(listeners: &Listeners) -> PathBuf {
    let asked = listeners.nginx_directory.clone();
    let folder = asked.unwrap_or_else(|| std::env::temp_dir().join("fairway-nginx"));
    std::path::absolute(&folder).unwrap_or(folder)
}

/// nginx, where PATH or Debian has it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).collect::<Vec<_>>();
    let usual = Path::new("/usr/sbin").to_owned();
    folders.into_iter().chain([usual]).map(|folder| folder.join("nginx")).find(|at| at.is_file())
}

/// A port; nginx cannot let the system choose one, so that is done here.
fn port(wanted: u16) -> Result<u16> {
    if wanted != 0 {
        return Ok(wanted);
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}
