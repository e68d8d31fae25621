//! A real nginx under the engine, with backends that say who they are.

use engine::Engine;
use model::policy::{Policy, Raw};
use model::{
    Backend, Changes, Configuration, Endpoints, Global, Kind, Location, Origin, PathKind, Server,
    ServerName, Upstream, UpstreamId,
};
use nginx::{Care, Environment, Nginx, Options};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A backend that answers every request with its name.
pub(crate) fn backend(name: &'static str) -> SocketAddr {
    backend_at(name, (Ipv4Addr::LOCALHOST, 0).into())
}

/// The same at an address.
pub(crate) fn backend_at(name: &'static str, address: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(address).expect("it is free");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 8192];
                while matches!(stream.read(&mut buffer), Ok(length) if length > 0) {
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
                    if stream.write_all(head.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound").port()
}

pub(crate) fn environment(folder: &Folder, http_port: u16) -> Environment {
    Environment {
        directory: folder.path().join("nginx"),
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        http_port,
        https_port: free_port(),
        workers: 2,
        root: rustix::process::geteuid().is_root(),
        ipv6: false,
        ..Environment::default()
    }
}

pub(crate) fn program() -> PathBuf {
    let usual = ["/usr/sbin/nginx", "/usr/bin/nginx"].map(PathBuf::from);
    usual.into_iter().find(|path| path.exists()).expect("scripts/need nginx")
}

/// A folder for an nginx, which does not outlive it even if the test fails.
pub(crate) struct Folder(TempDir);

pub(crate) fn folder() -> Folder {
    Folder(tempfile::tempdir().expect("a folder"))
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let left = pid(self).filter(|pid| is_alive(*pid));
        if let Some(master) = left.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(master, rustix::process::Signal::KILL);
        }
    }
}

/// What an engine at a place is given where nothing special is asked.
pub(crate) fn options(environment: Environment) -> Options {
    Options {
        program: program(),
        environment,
        resolver: Arc::default(),
        requests: None,
        pace: Duration::ZERO,
        patience: PATIENCE,
        care: Care::default(),
    }
}

/// An engine in a folder of its own.
pub(crate) fn start(folder: &Folder, http_port: u16) -> Arc<Nginx> {
    Arc::new(Nginx::start(options(environment(folder, http_port))).expect("the engine starts"))
}

/// The Configuration of hosts, each with one path that leads to one address and may say something in nginx's words.
pub(crate) fn configuration(hosts: &[(&str, SocketAddr, Option<&str>)]) -> Configuration {
    let global = Global { access_log: false, ..Global::default() };
    let mut configuration = Configuration { global: Arc::new(global), ..Configuration::default() };
    for (host, address, snippet) in hosts {
        let id = UpstreamId::new(format!("demo-{host}-80"));
        let raw = snippet.map(|text| {
            Box::new(Raw { configuration: Some(text.to_owned().into()), ..Raw::default() })
        });
        let location = Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::Upstream(id.clone()),
            canary: None,
            service: None,
            origin: Some(Origin::new(Kind::Ingress, "demo", *host).into()),
            policy: Arc::new(Policy { raw, ..Policy::default() }),
        };
        let name = ServerName::new(*host);
        let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
        configuration.servers.insert(name, Arc::new(server));
        let endpoints = Arc::new(Endpoints { ready: vec![*address], draining: Vec::new() });
        configuration.upstreams.insert(
            id.clone(),
            Arc::new(Upstream { id, endpoints, external: None, namespace: "".into() }),
        );
    }
    configuration
}

/// Applies a Configuration; what was left out of it.
pub(crate) async fn apply(engine: &Nginx, next: &Configuration) -> Vec<String> {
    let changes = Changes::default();
    let applied = tokio::time::timeout(PATIENCE, engine.apply(next, &changes)).await;
    let applied = applied.expect("in time").expect("nginx takes it");
    applied.left_out.iter().map(|problem| problem.origin.name.to_string()).collect()
}

/// Status and body for a host; nothing if nobody listens.
pub(crate) fn get(port: u16, host: &str) -> Option<(u16, String)> {
    get_path(port, host, "/")
}

/// The same for a path.
pub(crate) fn get_path(port: u16, host: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    Some((status, body.unwrap_or_default()))
}

/// The process id of nginx; none while it does not run.
pub(crate) fn pid(folder: &Folder) -> Option<i32> {
    let text = std::fs::read_to_string(folder.path().join("nginx/nginx.pid")).ok()?;
    text.trim().parse().ok()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    // A zombie of this process is none that runs.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    Path::new(&format!("/proc/{pid}")).exists() && !stat.contains(") Z ")
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let look = || std::future::ready(condition().then_some(()));
    assert!(testkit::eventually(PATIENCE, look).await.is_some(), "not in time: {what}");
}
