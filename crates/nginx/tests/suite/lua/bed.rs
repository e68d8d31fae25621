//! A real nginx with the configuration written by hand that crates/nginx/lua/README.md asks for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use nginx::push::Control;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use testkit::{eventually, ports};

/// How long nginx may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// As nginx.conf has it.
const WORKERS: usize = 3;
/// What the control socket hears us by, as nginx.conf has it.
const SECRET: &str = "nobody knows";

/// A running nginx; it ends when this is dropped.
pub(crate) struct Nginx {
    child: Child,
    folder: TempDir,
    pub http: u16,
    pub https: u16,
    /// Where everybody behind the upstreams listens, on every address.
    pub backend: u16,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.all("X-Generation")[0].parse().expect("a number")
    }
}

impl Nginx {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts nginx with some texts of its configuration replaced.
    pub(crate) async fn start_with(changes: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = [ports::free(), ports::free(), ports::free()];
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut text = include_str!("nginx.conf").to_owned();
        for (name, value) in [
            ("@folder@", folder.path().display().to_string()),
            ("@lua@", here.join("lua").display().to_string()),
            ("@tests@", here.join("tests/suite/lua").display().to_string()),
            ("@http@", ports[0].to_string()),
            ("@https@", ports[1].to_string()),
            ("@backend@", ports[2].to_string()),
        ]
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(changes.iter().copied())
        {
            assert!(text.contains(name), "{name} is in the configuration");
            text = text.replace(name, value);
        }
        std::fs::write(folder.path().join("nginx.conf"), text).expect("the file is written");
        let child = launch(folder.path());
        let nginx = Self { child, folder, http: ports[0], https: ports[1], backend: ports[2] };
        nginx.wait().await;
        nginx
    }

    async fn wait(&self) {
        let socket = self.socket();
        // The master listens before it has started all workers.
        let is_up = || UnixStream::connect(&socket).is_ok() && self.workers().len() == WORKERS;
        let up = eventually(PATIENCE, || async { is_up().then_some(()) }).await;
        assert!(up.is_some(), "nginx does not start: {}", self.log());
    }

    /// Ends nginx and starts it anew with the same configuration.
    pub(crate) async fn restart(&mut self) {
        self.stop();
        let _gone = std::fs::remove_file(self.socket());
        self.child = launch(self.folder.path());
        self.wait().await;
    }

    /// Reloads, and waits until only new workers take requests.
    pub(crate) async fn reload(&self) {
        let before = self.workers();
        self.signal(Signal::HUP);
        self.until_replaced(&before).await;
    }

    /// Kills all workers, and waits until nginx has replaced them.
    pub(crate) async fn kill_workers(&self) {
        let before = self.workers();
        for id in &before {
            let id = i32::try_from(*id).ok().and_then(Pid::from_raw);
            kill_process(id.expect("a process id"), Signal::KILL).expect("a worker of ours");
        }
        self.until_replaced(&before).await;
    }

    async fn until_replaced(&self, before: &[u32]) {
        let fresh = eventually(PATIENCE, || async {
            let now = self.workers();
            let new = now.iter().filter(|id| !before.contains(id)).count();
            (new >= before.len() && !now.iter().any(|id| before.contains(id))).then_some(())
        });
        assert!(fresh.await.is_some(), "no new workers: {}", self.log());
    }

    /// The process ids of the workers.
    pub(crate) fn workers(&self) -> Vec<u32> {
        let id = self.child.id();
        let path = format!("/proc/{id}/task/{id}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().map(|id| id.parse().expect("a process id")).collect()
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ended = kill_process(id.expect("a process id"), signal);
    }

    fn stop(&mut self) {
        self.signal(Signal::TERM);
        let _status = self.child.wait();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// The socket, for a pusher.
    pub(crate) fn control_socket(&self) -> Control {
        Control { socket: self.socket(), secret: SECRET.to_owned() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    /// Asks for a path of shop.example, with more header lines.
    pub(crate) fn get(&self, path: &str, fields: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).expect("nginx listens");
        ask(&mut stream, "GET", path, &format!("Connection: close\r\n{fields}"), "")
    }

    /// Sends a request to the control socket.
    pub(crate) fn control(&self, method: &str, path: &str, body: &str) -> Answer {
        self.control_after(method, path, "", body)
    }

    pub(crate) fn control_after(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> Answer {
        let mut stream = UnixStream::connect(self.socket()).expect("nginx listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let own = format!("Connection: close\r\nX-Fairway-Secret: {SECRET}\r\n");
        ask(&mut stream, method, path, &format!("{own}{fields}"), body)
    }

    /// Replaces the upstreams, which must work; `PORT` stands for the port of the backends. What their `routes` say is
    /// pushed apart, in parts.
    pub(crate) fn push(&self, json: &str) -> u64 {
        let json = json.replace("PORT", &self.backend.to_string());
        let mut upstreams: Vec<Value> = serde_json::from_str(&json).expect("a list");
        let mut texts = serde_json::Map::new();
        for upstream in &mut upstreams {
            let upstream = upstream.as_object_mut().expect("an upstream");
            let Some(Value::Object(routes)) = upstream.remove("routes") else { continue };
            let name = upstream["name"].as_str().expect("a name");
            for (route, said) in routes {
                let (key, text) = (format!("route {name} {route}"), in_parts(said, &mut texts));
                texts.insert(key, text.to_string().into());
            }
        }
        if !texts.is_empty() {
            let texts = Value::Object(texts).to_string();
            let answer = self.control("POST", "/configuration/routes", &texts);
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
        let body = Value::from(upstreams).to_string();
        let answer = self.control("POST", "/configuration/backends", &body);
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.generation()
    }
}

/// A route whose parts are among the texts.
fn in_parts(mut said: Value, texts: &mut serde_json::Map<String, Value>) -> Value {
    let mut part = |said: Value| {
        let text = said.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let key = format!("part {}", hasher.finish());
        texts.insert(key.clone(), text.into());
        key
    };
    let route = said.as_object_mut().expect("a route");
    let (other, stand_in) = (route.remove("alternative"), route.remove("stand-in"));
    let mut parted = json!({ "spread": part(said) });
    if let Some(Value::Object(mut other)) = other {
        let backend = other.remove("backend").expect("a backend");
        let rules = other.remove("trafficShapingPolicy").unwrap_or_else(|| json!({}));
        let (rules, spread) = (part(rules), part(other.into()));
        parted["alternative"] = json!({ "backend": backend, "rules": rules, "spread": spread });
    }
    if let Some(stand_in) = stand_in {
        parted["stand-in"] = stand_in;
    }
    parted
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

fn launch(folder: &Path) -> Child {
    let log = std::fs::File::create(folder.join("stderr")).expect("the file is written");
    Command::new("nginx")
        .arg("-c")
        .arg(folder.join("nginx.conf"))
        .arg("-p")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("nginx is installed (scripts/need)")
}

/// One exchange on a connection.
pub(crate) fn ask(
    stream: &mut (impl Read + Write),
    method: &str,
    path: &str,
    fields: &str,
    body: &str,
) -> Answer {
    try_ask(stream, method, path, fields, body).expect("an answer")
}

pub(crate) fn try_ask(
    stream: &mut (impl Read + Write),
    method: &str,
    path: &str,
    fields: &str,
    body: &str,
) -> std::io::Result<Answer> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n{fields}\r\n"
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    let mut text = Vec::new();
    let mut piece = [0; 16384];
    loop {
        if let Some(answer) = whole(&text) {
            return Ok(answer);
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => text.extend_from_slice(&piece[..count]),
        }
    }
}

/// The answer, once all of it is there.
fn whole(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head: head.to_owned(), body: String::new() };
    if let Some(length) = answer.all("Content-Length").first() {
        let length: usize = length.parse().ok()?;
        answer.body = rest.get(..length)?.to_owned();
        return Some(answer);
    }
    let mut rest = rest;
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(answer);
        }
        answer.body.push_str(after.get(..size)?);
        rest = after.get(size + 2..)?;
    }
}
