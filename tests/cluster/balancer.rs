//! What a Service and kube-proxy are to several replicas: new connections go to those that are ready, a moment late.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::cluster::{Connection, eventually};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often readiness is looked at.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a replica that is no longer ready still gets connections: news take their time to every node.
const LAG: Duration = Duration::from_secs(1);

/// Spreads connections over replicas.
pub(crate) struct Balancer {
    /// Where clients connect.
    pub(crate) address: SocketAddr,
    replicas: Arc<Replicas>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Replicas {
    all: Mutex<Vec<Replica>>,
}

#[derive(Clone)]
struct Replica {
    http: SocketAddr,
    health: SocketAddr,
    /// Whether it was ever ready, and since when it says that it no longer is.
    ready: bool,
    unready: Option<Instant>,
}

impl Replica {
    fn gets_connections(&self) -> bool {
        self.ready && self.unready.is_none_or(|since| since.elapsed() < LAG)
    }
}

impl Balancer {
    /// Starts without replicas.
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("bind")?;
        let address = listener.local_addr().context("ask for a port")?;
        let replicas = Arc::new(Replicas::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(probe(replicas.clone()));
        tasks.spawn(accept(listener, replicas.clone()));
        Ok(Self { address, replicas, _tasks: tasks })
    }

    /// Adds a replica, and waits until it gets connections.
    pub(crate) async fn add(&self, http: SocketAddr, health: SocketAddr) -> Result<()> {
        self.replicas.lock().push(Replica { http, health, ready: false, unready: None });
        eventually("the new replica to get connections", LAG * 10, async || {
            let all = self.replicas.lock();
            let found = all.iter().find(|replica| replica.http == http);
            found.filter(|replica| replica.gets_connections()).map(drop).context("not ready")
        })
        .await
    }

    /// Forgets a replica.
    pub(crate) fn remove(&self, http: SocketAddr) {
        self.replicas.lock().retain(|replica| replica.http != http);
    }
}

impl Replicas {
    fn lock(&self) -> MutexGuard<'_, Vec<Replica>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose turn it is.
    fn next(&self, turn: usize) -> Option<SocketAddr> {
        let all = self.lock();
        let ready: Vec<_> = all.iter().filter(|replica| replica.gets_connections()).collect();
        (!ready.is_empty()).then(|| ready[turn % ready.len()].http)
    }
}

async fn probe(replicas: Arc<Replicas>) {
    let mut looks = tokio::time::interval(PERIOD);
    loop {
        looks.tick().await;
        let all = replicas.lock().clone();
        for replica in all {
            // A probe that comes late on a busy machine says nothing, as with a threshold of several failures.
            let Some(ready) = is_ready(replica.health).await else { continue };
            let mut all = replicas.lock();
            let Some(known) = all.iter_mut().find(|known| known.http == replica.http) else {
                continue;
            };
            if ready {
                (known.ready, known.unready) = (true, None);
            } else {
                known.unready = known.unready.or(Some(Instant::now()));
            }
        }
    }
}

/// What a replica says about itself; none if it does not say in time.
async fn is_ready(health: SocketAddr) -> Option<bool> {
    let ask = async { Connection::open(health).await?.get("localhost", "/healthz").await };
    let answer = tokio::time::timeout(Duration::from_secs(1), ask).await.ok()?;
    Some(answer.is_ok_and(|answer| answer.status == 200))
}

async fn accept(listener: TcpListener, replicas: Arc<Replicas>) {
    let mut connections = JoinSet::new();
    for turn in 0.. {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let target = replicas.next(turn);
        connections.spawn(async move {
            // The connection just ends then, and the client counts it.
            let Some(target) = target else {
                return eprintln!("no replica is ready");
            };
            let mut server = match TcpStream::connect(target).await {
                Ok(server) => server,
                Err(error) => {
                    return eprintln!("the replica at {target} takes no connection: {error}");
                }
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
