//! The binary as a process on a folder of objects, upstreams that follow a script, and a plain client.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use testkit::builders::{Ingress, config_map, endpoint_slice, ingress, ingress_class, service};
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be served, and how Fairway is started.
#[derive(Default)]
pub(crate) struct Setup {
    /// Endpoints of the Service behind host a.test.
    pub(crate) endpoints: Vec<SocketAddr>,
    /// Annotations of the Ingress, without their prefix.
    pub(crate) annotations: Vec<(&'static str, &'static str)>,
    /// The ConfigMap.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// More flags.
    pub(crate) flags: Vec<String>,
    /// A program with arguments that starts Fairway, such as `prlimit --nofile=100`.
    pub(crate) through: Vec<String>,
    /// Nobody reads what it says.
    pub(crate) unread: bool,
    /// More environment.
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// A running Fairway; it is killed when this is dropped.
pub(crate) struct Fairway {
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) process: Child,
    folder: TempDir,
}

impl Setup {
    /// One endpoint, and nothing else that is special.
    pub(crate) fn of(endpoint: SocketAddr) -> Self {
        Self { endpoints: vec![endpoint], ..Self::default() }
    }

    /// Starts Fairway and waits until it is ready.
    pub(crate) async fn start(&self) -> Result<Fairway> {
        let folder = TempDir::new()?;
        let objects = folder.path().join("objects");
        fs::create_dir(&objects)?;
        fs::write(objects.join("all.yaml"), self.objects().to_string())?;
        let [http, https, admin] = [(); 3].map(|()| testkit::ports::free());
        let binary = env!("CARGO_BIN_EXE_fairway").to_owned();
        let mut words = self.through.iter().cloned().chain([binary]);
        let mut command = Command::new(words.next().context("a program")?);
        command.args(words).args(["run", "--configmap=demo/fairway"]);
        command
            .args(["--healthz-host=127.0.0.1", "--bind-address=127.0.0.1", "--manifests"])
            .arg(&objects);
        command.arg(format!("--http-port={http}")).arg(format!("--https-port={https}"));
        command.arg(format!("--healthz-port={admin}"));
        command.args(&self.flags).envs(self.environment.iter().cloned());
        let out = |name: &str| fs::File::create(folder.path().join(name));
        command.stdin(Stdio::null()).kill_on_drop(true);
        if self.unread {
            command.stdout(Stdio::piped()).stderr(Stdio::piped())
        } else {
            command.stdout(out("out")?).stderr(out("err")?)
        };
        let process = command.spawn().context("start Fairway")?;
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let fairway = Fairway {
            http: local(http),
            https: local(https),
            admin: local(admin),
            process,
            folder,
        };
        let ready = || async { (fairway.health().await.ok()? == 200).then_some(()) };
        let ready = eventually(PATIENCE, ready).await;
        ready.with_context(|| format!("Fairway is not ready:\n{}", fairway.said()))?;
        Ok(fairway)
    }

    fn objects(&self) -> Value {
        let settings = self.settings.iter().map(|(key, value)| (*key, value.as_str()));
        let settings: Vec<_> = settings.chain([("use-http2", "true")]).collect();
        let web = ingress("web").host("a.test").path("/", "web:80");
        let annotate = |web: Ingress, (key, value): &(&str, &str)| web.annotate(key, value);
        let web = self.annotations.iter().fold(web, annotate);
        let mut objects = vec![
            ingress_class("nginx", "k8s.io/ingress-nginx"),
            service("web").port("http", 80, 8080).build(),
            web.build(),
            config_map("fairway", &settings),
        ];
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            let slice = endpoint_slice("web").port("http", endpoint.port());
            let mut slice = slice.ready(&endpoint.ip().to_string()).build();
            slice["metadata"]["name"] = json!(format!("web-{number}"));
            objects.push(slice);
        }
        json!({"apiVersion": "v1", "kind": "List", "items": objects})
    }
}

impl Fairway {
    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("err")).unwrap_or_default()
    }

    /// The lines of the access log so far.
    pub(crate) fn logged(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }

    /// The status of /healthz at this moment.
    pub(crate) async fn health(&self) -> Result<u16> {
        let answer =
            ask(self.admin, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                .await?;
        status(&answer).with_context(|| format!("no answer: {answer:?}"))
    }

    /// A GET for a.test on a connection of its own: the whole answer.
    pub(crate) async fn get(&self, path: &str) -> Result<String> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")).await
    }

    /// A POST of two bytes.
    pub(crate) async fn post(&self) -> Result<String> {
        let head =
            "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
        self.ask(head).await
    }

    /// Sends a request and reads to the end of the connection.
    pub(crate) async fn ask(&self, request: &str) -> Result<String> {
        ask(self.http, request).await
    }

    /// An error unless a GET is answered with this status.
    pub(crate) async fn expect(&self, wanted: u16) -> Result<String> {
        let answer = self.get("/").await?;
        ensure!(status(&answer) == Some(wanted), "wanted {wanted}: {answer}\n{}", self.said());
        Ok(answer)
    }

    /// Open files of the process.
    pub(crate) fn descriptors(&self) -> Result<usize> {
        let id = self.process.id().context("it has ended")?;
        Ok(fs::read_dir(format!("/proc/{id}/fd"))?.count())
    }

    /// Processor time that it has used.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let id = self.process.id().context("it has ended")?;
        let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
        let fields = text.rsplit(')').next().context("a name in brackets")?;
        let ticks: Vec<u64> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|text| text.parse().ok())
            .collect();
        // The kernel counts in hundredths of a second for everybody.
        Ok(Duration::from_millis(10 * ticks.iter().sum::<u64>()))
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let id = self.process.id().context("it has ended")?.to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &id]).status()?;
        ensure!(sent.success(), "kill says {sent}");
        Ok(())
    }
}

/// Sends text and reads to the end, which may be a reset.
pub(crate) async fn ask(address: SocketAddr, request: &str) -> Result<String> {
    let exchange = async {
        let mut tcp = TcpStream::connect(address).await.context("connect")?;
        tcp.write_all(request.as_bytes()).await.context("send")?;
        let mut answer = Vec::new();
        // What came before a reset counts.
        let _ = tcp.read_to_end(&mut answer).await;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::time::timeout(PATIENCE, exchange).await.context("no end of the answer")?
}

/// The status of an answer.
pub(crate) fn status(answer: &str) -> Option<u16> {
    answer.split(' ').nth(1)?.parse().ok()
}

/// An answer of three bytes.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes";

/// An upstream; `serve` gets each connection with its number.
pub(crate) async fn upstream<S, F>(serve: S) -> Result<SocketAddr>
where
    S: Fn(TcpStream, usize) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((tcp, _)) = listener.accept().await else { return };
            let _ = tcp.set_nodelay(true);
            tokio::spawn(serve(tcp, number));
        }
    });
    Ok(address)
}

/// An upstream that answers every request with [`OK`].
pub(crate) async fn good() -> Result<SocketAddr> {
    upstream(|mut tcp, _| async move {
        while request(&mut tcp).await.is_some() && tcp.write_all(OK).await.is_ok() {}
    })
    .await
}

/// Reads a request with its body of two bytes, if it has one; none at the end of the connection.
pub(crate) async fn request(tcp: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let wanted = if head.contains("Content-Length: 2") { 2 } else { 0 };
            if body.len() >= wanted {
                return Some(text);
            }
        }
        if !matches!(tcp.read_buf(&mut read).await, Ok(1..)) {
            return None;
        }
    }
}

/// Ends a connection with a reset.
pub(crate) fn reset(tcp: TcpStream) {
    let _ = tcp.set_zero_linger();
}
