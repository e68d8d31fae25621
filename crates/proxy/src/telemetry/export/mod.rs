//! Spans on their way to the collector: a thread of its own sends them in batches, and waits longer and longer while
//! the collector is away.

mod encode;
mod transport;

use super::environment::{Endpoint, OtlpEnvironment};
use super::queue::{Counts, Queue};
use super::record::Record;
use super::waiting::Owner;
use bytes::Bytes;
use model::{Batches, OtlpProtocol, Telemetry};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::task::LocalSet;
use transport::Transport;

/// How long the first pause is after something went wrong; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How long a pause is at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where spans go, and what is said of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    /// Who takes them.
    pub endpoint: Endpoint,
    /// How they are sent.
    pub protocol: OtlpProtocol,
    /// Fields of every request to the collector.
    pub headers: Vec<(String, String)>,
    /// Attributes of all spans.
    pub resource: Vec<(String, String)>,
    /// A file with the authorities that the collector's certificate descends from.
    pub certificate: Option<PathBuf>,
}

/// What hands spans to the thread that sends them; the thread starts with the first one, and ends with this.
#[derive(Debug)]
pub(super) struct Exporter {
    queue: Arc<Queue>,
    destination: Destination,
    started: Once,
    /// Both ends of what the thread holds while it lives.
    alive: Mutex<Option<SyncSender<()>>>,
    ended: Mutex<Receiver<()>>,
}

/// What became of a request to the collector.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It took all of it but so many spans.
    Taken { rejected: u64 },
    /// It will not take this batch, ever.
    Refused(String),
    /// It may take it later.
    Failed(String),
}

impl Destination {
    /// Where spans go by these settings; nowhere if neither the environment nor the ConfigMap says so.
    pub(crate) fn of(settings: &Telemetry, environment: &OtlpEnvironment) -> Option<Self> {
        let environment = environment.clone();
        let configured = settings.collector.clone().map(|collector| Endpoint {
            host: collector.host,
            port: collector.port,
            secure: collector.secure,
            path: String::new(),
        });
        let own = [
            ("service.name", Some(settings.service_name.clone())),
            ("deployment.environment", settings.environment.clone()),
        ];
        let own: Vec<_> =
            own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let given = environment.resource.into_iter();
        let given = given.filter(|(name, _)| !own.iter().any(|(known, _)| known == name));
        let resource = own.iter().cloned().chain(given).collect();
        Some(Self {
            endpoint: environment.endpoint.or(configured)?,
            protocol: settings.protocol,
            headers: environment.headers,
            resource,
            certificate: environment.certificate,
        })
    }

    /// The port.
    fn port(&self) -> u16 {
        self.endpoint.port.unwrap_or(match self.protocol {
            OtlpProtocol::Grpc => 4317,
            OtlpProtocol::Http => 4318,
        })
    }

    /// As it is named in messages.
    pub(crate) fn name(&self) -> String {
        let scheme = if self.endpoint.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.endpoint.path)
    }

    /// Host and port.
    fn authority(&self) -> String {
        let Endpoint { host, .. } = &self.endpoint;
        if host.contains(':') {
            format!("[{host}]:{}", self.port())
        } else {
            format!("{host}:{}", self.port())
        }
    }
}

impl Exporter {
    /// An exporter whose thread has not started.
    pub(super) fn new(destination: Destination, limits: Batches, counts: Arc<Counts>) -> Self {
        let (alive, ended) = sync_channel(1);
        Self {
            queue: Arc::new(Queue::new(limits, counts)),
            destination,
            started: Once::new(),
            alive: Mutex::new(Some(alive)),
            ended: Mutex::new(ended),
        }
    }

    /// Hands over a span. Never waits.
    pub(super) fn push(&self, owner: Owner, record: Record) {
        self.started.call_once(|| self.start());
        self.queue.push(owner, record);
    }

    /// Waits until the spans that wait are sent, but not for ever. There will be no others.
    pub(super) fn settle(&self, patience: Duration) {
        self.queue.close();
        // Where no thread has started, nobody else holds it.
        drop(self.alive.lock().take());
        let ended = self.ended.lock();
        if ended.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!(
                collector = self.destination.name(),
                "the last spans could not be sent in time"
            );
        }
    }

    fn start(&self) {
        let (queue, destination) = (self.queue.clone(), self.destination.clone());
        let alive = self.alive.lock().take();
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            let _alive = alive;
            run(&queue, destination);
        });
        if let Err(error) = thread {
            tracing::error!(%error, "the thread that sends spans cannot start: none are sent");
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn run(queue: &Queue, destination: Destination) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        tracing::error!(
            "the thread that sends spans could not start its event loop: none are sent"
        );
        return;
    };
    LocalSet::new().block_on(&runtime, async {
        let mut sender = Sending::new(destination, queue);
        while let Some(batch) = queue.batch().await {
            sender.deliver(&batch).await;
        }
    });
}

/// Sends batches, one after the other.
struct Sending<'a> {
    destination: Destination,
    transport: Transport,
    queue: &'a Queue,
    /// Spans that had been dropped when it began to fail; none while all is well.
    failing: Option<u64>,
}

impl<'a> Sending<'a> {
    fn new(destination: Destination, queue: &'a Queue) -> Self {
        let transport = Transport::default();
        Self { destination, transport, queue, failing: None }
    }

    /// Sends a batch, as often as it takes; at the end of the process once.
    async fn deliver(&mut self, batch: &[Record]) {
        let body = Bytes::from(encode::request(batch, &self.destination.resource));
        let spans = batch.len() as u64;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.transport.send(&self.destination, body.clone()).await {
                Outcome::Taken { rejected } => {
                    let rejected = rejected.min(spans);
                    self.queue.counts().exported(spans - rejected);
                    self.queue.counts().failed(rejected);
                    return self.works();
                }
                Outcome::Refused(reason) => {
                    self.fails(&reason);
                    self.queue.counts().failed(spans);
                    return self.queue.pause(pause).await;
                }
                Outcome::Failed(reason) => self.fails(&reason),
            }
            if self.queue.is_closed() {
                return self.queue.counts().failed(spans);
            }
            self.queue.pause(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn works(&mut self) {
        if let Some(before) = self.failing.take() {
            let dropped = self.queue.counts().now().dropped - before;
            let collector = self.destination.name();
            tracing::info!(collector, dropped, "spans are sent again");
        }
    }

    /// Says so once, whatever else goes wrong until it works again.
    fn fails(&mut self, reason: &str) {
        if self.failing.is_none() {
            self.failing = Some(self.queue.counts().now().dropped);
            let collector = self.destination.name();
            tracing::warn!(
                collector,
                reason,
                "spans cannot be sent: otel-max-queuesize of them wait, more are dropped"
            );
        }
    }
}
