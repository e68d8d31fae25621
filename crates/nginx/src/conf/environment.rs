//! Where nginx runs, and what it has there: what does not come from objects.

use model::{Listeners, RESERVED_PATHS};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Where nginx runs, and what it has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The private folder: configuration, sockets, keys.
    pub directory: PathBuf,
    /// The folder of nginx's modules.
    pub modules: PathBuf,
    /// `--bind-address`.
    pub addresses: Vec<IpAddr>,
    /// `--http-port`.
    pub http_port: u16,
    /// `--https-port`.
    pub https_port: u16,
    /// Whether TLS comes in by a socket, each connection with a PROXY header, since passthrough stands in front.
    pub passthrough: bool,
    /// `--health-check-path`.
    pub health_path: String,
    /// Worker processes, unless `worker-processes` says otherwise.
    pub workers: usize,
    /// Files that a process may have open at once (RLIMIT_NOFILE).
    pub open_files: u64,
    /// Connections that may wait to be accepted (net.core.somaxconn).
    pub backlog: u32,
    /// Name servers (/etc/resolv.conf).
    pub resolvers: Vec<IpAddr>,
    /// `--geoip-directory`.
    pub geoip: Option<PathBuf>,
    /// Whether this process is root's; nginx's workers stay so, or they could not read the private folder.
    pub root: bool,
    /// Whether nginx logs everything unless `error-log-level` says otherwise (`-v` from 5 on).
    pub verbose: bool,
    /// Whether the host speaks IPv6.
    pub ipv6: bool,
    /// Part of the names of locations that are not for clients; another one in each process. No client knows it, but
    /// whom a location asks may: there its name is what `$uri` says.
    pub secret: String,
    /// What the control socket hears us by; another one in each process, which nobody knows.
    pub password: String,
    /// Whether requests are measured (`--enable-metrics`).
    pub measures: bool,
    /// A certificate (PEM) that no other one descends from: for who wants to verify by no authority at all.
    pub nobody: String,
}

impl Default for Environment {
    /// Debian's nginx on all addresses, in no folder yet.
    fn default() -> Self {
        Self {
            directory: PathBuf::new(),
            modules: PathBuf::from("/usr/lib/nginx/modules"),
            addresses: Vec::new(),
            http_port: 80,
            https_port: 443,
            passthrough: false,
            health_path: "/healthz".to_owned(),
            workers: 1,
            open_files: 1 << 16,
            backlog: 511,
            resolvers: Vec::new(),
            geoip: None,
            root: false,
            verbose: false,
            ipv6: true,
            secret: String::new(),
            password: String::new(),
            measures: false,
            nobody: String::new(),
        }
    }
}

impl Environment {
    /// nginx.conf as it runs.
    pub fn conf(&self) -> PathBuf {
        self.directory.join("nginx.conf")
    }

    /// Where nginx notes its process id.
    pub fn pid(&self) -> PathBuf {
        self.directory.join("nginx.pid")
    }

    /// Where nginx notes why it does not take what it was asked to read.
    pub fn refusals(&self) -> PathBuf {
        self.directory.join("refusals.log")
    }

    /// The socket for what changes without a reload.
    pub fn control(&self) -> PathBuf {
        self.directory.join("control.sock")
    }

    /// The socket where TLS comes in behind passthrough.
    pub fn inner(&self) -> PathBuf {
        self.directory.join("tls.sock")
    }

    /// The socket that takes what workers measured.
    pub fn measurements(&self) -> PathBuf {
        self.directory.join("measurements.sock")
    }

    /// The socket where workers ask where hosts lead.
    pub fn names(&self) -> PathBuf {
        self.directory.join("names.sock")
    }

    /// Certificates, keys and passwords, by what is in them.
    pub fn files(&self) -> PathBuf {
        self.directory.join("files")
    }

    /// The path of a location that only subrequests come to.
    pub fn internal(&self, what: &str, index: usize) -> String {
        format!("{RESERVED_PATHS}{}{what}-{index}", self.secret)
    }

    /// The name of a location that only answers lead to.
    pub fn named(&self, what: &str) -> String {
        format!("@{}{what}", self.secret)
    }

    /// The Lua modules.
    pub fn lua(&self) -> PathBuf {
        self.directory.join("lua")
    }

    /// A module of nginx.
    pub fn module(&self, name: &str) -> PathBuf {
        self.modules.join(name)
    }

    /// Where nginx keeps bodies that do not fit into memory.
    pub fn temporary(&self, what: &str) -> PathBuf {
        self.directory.join("temporary").join(what)
    }

    /// Every address to listen on.
    pub fn listens_on(&self, listeners: &Listeners) -> Vec<IpAddr> {
        let addresses =
            if self.addresses.is_empty() { listeners.everywhere() } else { self.addresses.clone() };
        if !addresses.is_empty() {
            return addresses;
        }
        let six = self.ipv6.then_some(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        std::iter::once(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).chain(six).collect()
    }

    /// What /etc/resolv.conf and the like say about this machine.
    pub fn name_servers(text: &str) -> Vec<IpAddr> {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
        lines.filter_map(|rest| rest.trim().split('%').next()?.parse().ok()).collect()
    }

    /// The number in net.core.somaxconn; nginx's own where it cannot be read.
    pub fn somaxconn() -> u32 {
        let read = std::fs::read_to_string(Path::new("/proc/sys/net/core/somaxconn"));
        read.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(511)
    }
}
