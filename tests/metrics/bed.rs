//! A Fairway that counts, an upstream that answers as the path says, and a client.

use crate::metrics::page::Page;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use testkit::client::Client;
use testkit::exchange::Request;
use testkit::fairway::Started;
use testkit::{certificates::Certificates, eventually, ports};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long anything may take: generous, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running Fairway with its folder of objects.
pub(crate) struct Fairway {
    process: Started,
    folder: TempDir,
    http: u16,
    https: u16,
    admin: u16,
    /// Where the webhook listens.
    pub(crate) webhook: u16,
    /// Where the TCP service listens.
    pub(crate) tcp: u16,
}

impl Fairway {
    /// Serves `tests/metrics/objects.yaml` in front of a new upstream, with these flags besides `--enable-metrics`.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let [http, https, admin, webhook, tcp] = std::array::from_fn(|_| ports::free());
        let objects = include_str!("objects.yaml")
            .replace("UPSTREAM", &upstream().await.port().to_string())
            .replace("LISTEN", &tcp.to_string());
        let manifests = folder.path().join("manifests");
        std::fs::create_dir(&manifests).expect("a folder");
        std::fs::write(manifests.join("objects.yaml"), objects).expect("a file");
        let pair = Certificates::shared().get("tls-demo").expect("a fixture").clone();
        let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, pair.certificate).expect("a file");
        std::fs::write(&key, pair.key).expect("a file");
        let own = [
            "--worker-threads=2".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--healthz-host=127.0.0.1".to_owned(),
            "--tcp-services-configmap=demo/tcp".to_owned(),
            format!("--http-port={http}"),
            format!("--https-port={https}"),
            format!("--healthz-port={admin}"),
            format!("--validating-webhook=127.0.0.1:{webhook}"),
            format!("--validating-webhook-certificate={}", certificate.display()),
            format!("--validating-webhook-key={}", key.display()),
        ];
        let nginx = folder.path().join("nginx");
        let own = own.into_iter().chain([
            format!("--nginx-directory={}", nginx.display()),
            "--sync-rate-limit=0".to_owned(),
        ]);
        let off = "--enable-metrics=false";
        let enable = Some("--enable-metrics").filter(|_| !flags.contains(&off));
        let flags = enable.into_iter().chain(flags.iter().copied()).map(str::to_owned);
        let flags: Vec<_> = own.chain(flags).collect();
        let binary = Path::new(env!("CARGO_BIN_EXE_fairway"));
        let process = Started::on_folder(binary, &manifests, &flags, &folder.path().join("log"));
        let process = process.expect("the program starts");
        let fairway = Self { process, folder, http, https, admin, webhook, tcp };
        let ready = eventually(PATIENCE, async || {
            fairway.admin("/healthz").await.filter(|(status, _)| *status == 200)
        });
        assert!(ready.await.is_some(), "{}", fairway.process.logs());
        fairway
    }

    /// Writes another file of objects.
    pub(crate) fn put(&self, name: &str, objects: &str) {
        std::fs::write(self.folder.path().join("manifests").join(name), objects).expect("a file");
    }

    /// What it says now.
    pub(crate) async fn scrape(&self) -> Page {
        let (status, text) = self.admin("/metrics").await.expect("the admin server answers");
        assert_eq!(status, 200);
        Page::read(&text)
    }

    /// What it says once that is as it shall be.
    pub(crate) async fn scrape_until(&self, what: impl Fn(&Page) -> bool) -> Page {
        let found =
            eventually(PATIENCE, async || Some(self.scrape().await).filter(|page| what(page)));
        match found.await {
            Some(page) => page,
            None => panic!("not in time: {}\n{:#?}", self.process.logs(), self.scrape().await),
        }
    }

    /// Sends a request over a connection of its own; the status.
    pub(crate) async fn get(&self, host: &str, path: &str) -> u16 {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .await
    }

    /// Sends bytes that ask for the end of the connection; the status.
    pub(crate) async fn send(&self, request: &str) -> u16 {
        talk(self.http, request).await.expect("an answer").0
    }

    /// A connection to its port for HTTP.
    pub(crate) async fn open(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.http)).await.expect("it listens")
    }

    /// Asks over TLS for a path of `demo.test`, on the port for HTTPS or another one; the status.
    pub(crate) async fn send_tls(&self, port: Option<u16>, request: Request) -> Option<u16> {
        let port = port.unwrap_or(self.https);
        let client = Client::new(Ipv4Addr::LOCALHOST.into(), self.http, port);
        client.send(&request).await.status
    }

    async fn admin(&self, path: &str) -> Option<(u16, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
        talk(self.admin, &request).await
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        self.process.stop().await.expect("it is waited for");
    }
}

/// Sends a request; status and body of the answer, which ends with the connection.
async fn talk(port: u16, request: &str) -> Option<(u16, String)> {
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    tcp.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut answer)).await.ok()?.ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Some((status, if chunked { unchunked(body)? } else { body.to_owned() }))
}

fn unchunked(mut body: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// Answers `/status/404` with 404 and so on, everything else with 200; keeps connections.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(answer(tcp));
        }
    });
    address
}

async fn answer(mut tcp: TcpStream) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if !matches!(tcp.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let whole = end + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
        while read.len() < whole {
            if !matches!(tcp.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
        }
        read.drain(..whole);
        let status = head.split_once("/status/").map_or("200", |(_, rest)| &rest[..3]);
        let body = if head.starts_with("HEAD ") { "" } else { "hello" };
        let answer = format!("HTTP/1.1 {status} Said\r\nContent-Length: 5\r\n\r\n{body}");
        if tcp.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
