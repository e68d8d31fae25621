//! What containers wrote, as the API server asks the Node for it: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::network::GATEWAY;

/// The port of kubelets.
pub(super) const PORT: u16 = 10250;

/// How exactly it is known when a line was written; `sinceTime` itself has whole seconds.
const SAMPLED: Duration = Duration::from_millis(200);

/// A size that a log had, and since when.
type Sample = (Timestamp, u64);

/// The sizes of all logs over time.
type Sizes = Arc<Mutex<HashMap<PathBuf, Vec<Sample>>>>;

/// The file that a container writes to.
pub(super) fn log_file(logs: &Path, namespace: &str, pod: &str, container: &str) -> PathBuf {
    logs.join(format!("{namespace}_{pod}_{container}.log"))
}

/// Opens the port.
pub(super) async fn listener() -> Result<TcpListener> {
    let any = Ipv4Addr::UNSPECIFIED;
    let listener = TcpListener::bind((any, PORT)).await;
    listener.with_context(|| format!("open port {PORT} of the Node, {GATEWAY}"))
}

/// Answers until it is dropped.
pub(super) async fn serve(listener: TcpListener, logs: PathBuf) {
    let acceptor = acceptor().expect("a certificate for fixed names can be made");
    let sizes = Sizes::default();
    let mut running = JoinSet::new();
    running.spawn(sample(Arc::clone(&sizes), logs.clone()));
    loop {
        while running.try_join_next().is_some() {}
        // An error is that of one connection, which has gone again.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, sizes, logs) = (acceptor.clone(), Arc::clone(&sizes), logs.clone());
        running.spawn(async move {
            let _ = answer(acceptor, stream, &sizes, &logs).await;
        });
    }
}

/// The API server takes any certificate of a Node, unless it is told better.
fn acceptor() -> Result<TlsAcceptor> {
    let made = rcgen::generate_simple_self_signed([GATEWAY.to_string()])?;
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Notes from time to time how long each log is.
async fn sample(sizes: Sizes, logs: PathBuf) {
    loop {
        #[expect(clippy::disallowed_methods, reason = "a look now and then")]
        tokio::time::sleep(SAMPLED).await;
        let Ok(entries) = std::fs::read_dir(&logs) else { continue };
        let now = Timestamp::now();
        let mut sizes = sizes.lock();
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let known = sizes.entry(entry.path()).or_default();
            if known.last().is_none_or(|(_, size)| *size != about.len()) {
                known.push((now, about.len()));
            }
        }
    }
}

async fn answer(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    sizes: &Sizes,
    logs: &Path,
) -> Result<()> {
    let mut stream = BufReader::new(acceptor.accept(stream).await.context("shake hands")?);
    let mut asked = String::new();
    stream.read_line(&mut asked).await.context("read a request")?;
    let mut line = String::new();
    while stream.read_line(&mut line).await.context("read a header")? > 2 {
        line.clear();
    }
    let target = asked.split(' ').nth(1).unwrap_or_default();
    let found = written(target, sizes, logs);
    let (status, body) = found.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.context("answer")?;
    stream.write_all(&body).await.context("answer")?;
    stream.shutdown().await.context("end an answer")
}

/// The part of a log that a path and its query ask for.
fn written(target: &str, sizes: &Sizes, logs: &Path) -> Option<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut parts = path.strip_prefix("/containerLogs/")?.split('/');
    let path = log_file(logs, parts.next()?, parts.next()?, parts.next()?);
    let text = std::fs::read(&path).ok()?;
    let since = query.split('&').find_map(|pair| pair.strip_prefix("sinceTime="));
    let since: Option<Timestamp> = since.and_then(|time| time.replace("%3A", ":").parse().ok());
    let sizes = sizes.lock();
    let samples = sizes.get(&path).map_or(&[][..], Vec::as_slice);
    let from = since.map_or(0, |since| length_at(samples, since));
    Some(text.get(usize::try_from(from).ok()?..)?.to_vec())
}

/// How long a log was at least at a time.
fn length_at(samples: &[Sample], time: Timestamp) -> u64 {
    let before = samples.partition_point(|(sampled, _)| *sampled < time);
    before.checked_sub(1).map_or(0, |last| samples[last].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_since_a_time_is_told() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let folder = std::env::temp_dir().join(format!("fairway-logs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = log_file(&folder, "demo", "web-1", "web");
        std::fs::write(&path, "old\nnew\n").expect("a log");
        let samples = vec![(at(10), 4), (at(20), 8)];
        let sizes: Sizes = Arc::new(Mutex::new(HashMap::from([(path, samples)])));
        let asked = |query: &str| {
            let target = format!("/containerLogs/demo/web-1/web{query}");
            written(&target, &sizes, &folder).map(|text| String::from_utf8(text).expect("text"))
        };
        assert_eq!(asked("").as_deref(), Some("old\nnew\n"));
        assert_eq!(asked("?sinceTime=1970-01-01T00%3A00%3A15Z").as_deref(), Some("new\n"));
        assert_eq!(asked("?sinceTime=1970-01-01T00%3A00%3A05Z").as_deref(), Some("old\nnew\n"));
        assert_eq!(written("/containerLogs/demo/none/web", &sizes, &folder), None);
        std::fs::remove_dir_all(&folder).expect("remove the folder");
    }
}
