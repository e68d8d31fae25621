//! A Fairway on a folder of objects, upstreams that say what they saw, and a client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use testkit::client::Client;
use testkit::exchange::{Grpc, Request};
use testkit::fairway::Started;
use testkit::{certificates::Certificates, eventually, ports};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long anything may take: generous, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The class, and the Services `a`, `b` and `c` of namespace `demo`.
const GROUND: &str = include_str!("ground.yaml");

/// A running Fairway.
pub(crate) struct Bed {
    process: Started,
    folder: TempDir,
    http: u16,
    https: u16,
}

/// An answer, and what the upstream saw.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The name of the upstream; empty if none answered.
    pub(crate) pod: String,
    /// The head of the request there.
    pub(crate) seen: String,
}

impl Bed {
    /// Serves objects, whose parts are divided by lines of `# file: NAME`, and waits until all of it is served.
    pub(crate) async fn start(objects: &str) -> Self {
        Self::start_with(objects, &[]).await
    }

    /// The same with further flags.
    pub(crate) async fn start_with(objects: &str, more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut ground = GROUND.to_owned();
        for name in ["a", "b", "c"] {
            ground = ground.replace(&format!("PORT-{name}"), &upstream(name).await.to_string());
        }
        let certificates = Certificates::shared();
        for name in ["tls-demo", "tls-other"] {
            let pair = certificates.get(name).expect("a fixture");
            for (field, text) in [("crt", &pair.certificate), ("key", &pair.key)] {
                let text = text.replace('\n', "\\n");
                ground = ground.replace(&format!("{name}.{field}"), &format!("\"{text}\""));
            }
        }
        let manifests = folder.path().join("manifests");
        std::fs::create_dir(&manifests).expect("a folder");
        std::fs::write(manifests.join("ground.yaml"), ground).expect("a file");
        for part in objects.split("# file: ").skip(1) {
            let (name, text) = part.split_once('\n').expect("a name");
            std::fs::write(manifests.join(format!("{name}.yaml")), text).expect("a file");
        }
        let [http, https, admin] = std::array::from_fn(|_| ports::free());
        let mut flags = vec![
            "--worker-threads=1".to_owned(),
            "--configmap=ingress-nginx/ingress-nginx-controller".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--healthz-host=127.0.0.1".to_owned(),
            "--allow-target-networks=127.0.0.0/8".to_owned(),
            format!("--http-port={http}"),
            format!("--https-port={https}"),
            format!("--healthz-port={admin}"),
        ];
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        let binary = Path::new(env!("CARGO_BIN_EXE_fairway"));
        let process = Started::on_folder(binary, &manifests, &flags, &folder.path().join("log"));
        let bed = Self { process: process.expect("the program starts"), folder, http, https };
        let ready = eventually(PATIENCE, async || {
            let answer =
                talk(admin, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            answer.await.filter(|answer| answer.status == 200)
        });
        assert!(ready.await.is_some(), "{}", bed.process.logs());
        bed
    }

    /// Asks on a connection of its own.
    pub(crate) async fn send(
        &self,
        method: &str,
        host: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.send_with(method, host, path, headers, "").await
    }

    /// The same with a body, whose length the headers say.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        host: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n{body}"
        );
        talk(self.http, &request).await.expect("an answer")
    }

    /// Asks as clients of HTTP/1.0 do, without a host.
    pub(crate) async fn get_of_nobody(&self, path: &str) -> Answer {
        talk(self.http, &format!("GET {path} HTTP/1.0\r\n\r\n")).await.expect("an answer")
    }

    pub(crate) async fn get(&self, host: &str, path: &str) -> Answer {
        self.send("GET", host, path, &[]).await
    }

    /// Sends a body; the status.
    pub(crate) async fn post(&self, host: &str, path: &str, body: &str) -> u16 {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        talk(self.http, &request).await.expect("an answer").status
    }

    /// Asks over TLS; the status, and whether the answer says that TLS is to be used from now on.
    pub(crate) async fn get_tls(&self, host: &str, path: &str) -> (u16, bool) {
        let client = Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.http, self.https);
        let request = Request { url: format!("https://{host}{path}"), ..Request::default() };
        let answer = client.send(&request).await;
        let headers = serde_json::to_string(&answer.headers).expect("plain data");
        let hsts = headers.to_ascii_lowercase().contains("strict-transport-security");
        (answer.status.expect("an answer"), hsts)
    }

    /// Calls a method of gRPC, by HTTP/2 in clear.
    pub(crate) async fn call(
        &self,
        host: &str,
        method: &str,
        metadata: &[(&str, &str)],
    ) -> testkit::exchange::Answer {
        self.call_with(host, method, metadata, None).await
    }

    /// The same with a message.
    pub(crate) async fn call_with(
        &self,
        host: &str,
        method: &str,
        metadata: &[(&str, &str)],
        message: Option<String>,
    ) -> testkit::exchange::Answer {
        let client = Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.http, self.https);
        let metadata = metadata.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let grpc = Grpc { method: method.to_owned(), metadata: metadata.collect(), message };
        let url = format!("http://{host}/");
        client.send(&Request { url, grpc: Some(grpc), ..Request::default() }).await
    }

    /// The ports for HTTP and HTTPS.
    pub(crate) fn ports(&self) -> [u16; 2] {
        [self.http, self.https]
    }

    /// What would become of a request, and why.
    pub(crate) fn explain(&self, url: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command.args(["explain", "--manifests"]).arg(self.folder.path().join("manifests"));
        let output = command.arg(url).output().expect("the program runs");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Puts another text into a file of objects.
    pub(crate) async fn replace(&self, name: &str, text: &str) {
        let path = self.folder.path().join("manifests").join(format!("{name}.yaml"));
        let beside = self.folder.path().join(name);
        std::fs::write(&beside, text).expect("a file");
        std::fs::rename(beside, path).expect("it stands in its place");
    }

    /// Takes a file of objects away.
    pub(crate) async fn remove(&self, name: &str) {
        let path = self.folder.path().join("manifests").join(format!("{name}.yaml"));
        std::fs::remove_file(path).expect("it was there");
    }

    /// Asks until the status is this one; the last one.
    pub(crate) async fn status_until(&self, host: &str, path: &str, wanted: u16) -> u16 {
        let found = eventually(PATIENCE, async || {
            Some(self.get(host, path).await.status).filter(|status| *status == wanted)
        });
        match found.await {
            Some(status) => status,
            None => self.get(host, path).await.status,
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let found = eventually(PATIENCE, async || is_so().await.then_some(())).await;
        assert!(found.is_some(), "{}", self.process.logs());
    }

    pub(crate) async fn stop(self) {
        self.process.stop().await.expect("it is waited for");
    }
}

/// The values of a field in a head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

/// Asks at an address, on a connection of its own.
pub(crate) async fn at(address: SocketAddr, host: &str, path: &str) -> Option<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    talk_to(address, &request).await
}

async fn talk(port: u16, request: &str) -> Option<Answer> {
    talk_to((Ipv4Addr::LOCALHOST, port).into(), request).await
}

/// Sends a request and reads to the end of the connection.
async fn talk_to(address: SocketAddr, request: &str) -> Option<Answer> {
    let mut tcp = TcpStream::connect(address).await.ok()?;
    tcp.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut answer)).await.ok()?.ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let said = body.split_once("pod ").and_then(|(_, said)| said.split_once('\n'));
    let (pod, seen) = said.unwrap_or_default();
    Some(Answer { status, head: head.to_owned(), pod: pod.to_owned(), seen: seen.to_owned() })
}

/// How often each value of `X-Id` was seen, and the last request with it.
type Seen = Arc<Mutex<HashMap<String, (u32, String)>>>;

/// An upstream that answers each request with its name and the head that it saw; its port. Of the requests with an
/// `X-Id` the first ones, as many as `X-Silent` says, get no answer, all of them where `X-Silent-At` is its name, and
/// those that `X-Fails` counts get `X-Code`. `X-Of` asks for what was seen under an id, and `X-Say` for a field.
async fn upstream(name: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let seen = Seen::default();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(answer(tcp, name, seen.clone()));
        }
    });
    port
}

async fn answer(mut tcp: TcpStream, name: &str, seen: Seen) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            tcp.read_buf(&mut read).await.ok().filter(|count| *count > 0)?;
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let number = |name: &str| -> Option<usize> { header(&head, name).first()?.parse().ok() };
        let whole = end + number("content-length").unwrap_or(0);
        while read.len() < whole {
            tcp.read_buf(&mut read).await.ok().filter(|count| *count > 0)?;
        }
        let message: Vec<u8> = read.drain(..whole).collect();
        let times = match header(&head, "x-id").first() {
            Some(id) => {
                let mut seen = seen.lock().expect("nobody panics");
                let (times, last) = seen.entry((*id).to_owned()).or_default();
                *times += 1;
                *last = String::from_utf8_lossy(&message).into_owned();
                *times as usize
            }
            None => 0,
        };
        let of = header(&head, "x-of").first().copied().unwrap_or_default();
        let (times, head_seen) = match seen.lock().expect("nobody panics").get(of) {
            Some((times, last)) => (*times as usize, last.clone()),
            None => (times, head.clone()),
        };
        let is_silent = header(&head, "x-silent-at") == [name];
        if is_silent || times > 0 && times <= number("x-silent").unwrap_or(0) {
            // Until the other side has had enough.
            tcp.read_buf(&mut read).await.ok().filter(|count| *count > 0)?;
        }
        let fails = times > 0 && times <= number("x-fails").unwrap_or(0);
        let status = number("x-code").filter(|_| fails).unwrap_or(200);
        let body = format!("pod {name}\n{head_seen}");
        let said = header(&head, "x-say").concat();
        let said = if said.is_empty() { said } else { format!("{said}\r\n") };
        let answer = format!(
            "HTTP/1.1 {status} Said\r\nContent-Length: {}\r\nX-Times: {times}\r\n{said}\r\n{body}",
            body.len()
        );
        tcp.write_all(answer.as_bytes()).await.ok()?;
    }
}
