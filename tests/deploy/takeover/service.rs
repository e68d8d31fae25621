//! What kube-proxy makes of the controller's Service: connections go to Pods that its EndpointSlices call ready, and
//! news take a moment to come.

use anyhow::{Context, Result};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use testkit::cluster::Cluster;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often the EndpointSlices are read.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a Pod that is no longer ready still gets connections.
const LAG: Duration = Duration::from_secs(1);

/// Pods that get connections, and since when each is no longer ready.
type Ready = Arc<Mutex<BTreeMap<IpAddr, Option<Instant>>>>;

/// The ports of the Service.
pub(super) struct Service {
    pub(super) http: SocketAddr,
    pub(super) https: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Service {
    /// Spreads connections over the Pods of a Service, from now on.
    pub(super) async fn start(cluster: &Cluster, namespace: &str, name: &str) -> Result<Self> {
        let slices = Api::namespaced(cluster.client(), namespace);
        let (ready, mut tasks): (Ready, _) = (Ready::default(), JoinSet::new());
        tasks.spawn(follow(slices, format!("kubernetes.io/service-name={name}"), ready.clone()));
        let mut ports = Vec::new();
        for port in [80, 443] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("bind")?;
            ports.push(listener.local_addr().context("ask for a port")?);
            tasks.spawn(accept(listener, port, ready.clone()));
        }
        Ok(Self { http: ports[0], https: ports[1], _tasks: tasks })
    }
}

async fn follow(slices: Api<EndpointSlice>, selector: String, ready: Ready) {
    let mut looks = tokio::time::interval(PERIOD);
    let wanted = ListParams::default().labels(&selector);
    loop {
        looks.tick().await;
        let Ok(found) = slices.list(&wanted).await else { continue };
        let endpoints =
            found.items.into_iter().flat_map(|slice| slice.endpoints.into_iter().flatten());
        let good = endpoints.filter(|endpoint| {
            endpoint.conditions.as_ref().is_some_and(|state| state.ready == Some(true))
        });
        let good: BTreeSet<IpAddr> =
            good.flat_map(|endpoint| endpoint.addresses).flat_map(|ip| ip.parse()).collect();
        let mut known = ready.lock().unwrap_or_else(PoisonError::into_inner);
        for (address, gone) in known.iter_mut() {
            if !good.contains(address) {
                gone.get_or_insert_with(Instant::now);
            }
        }
        known.extend(good.into_iter().map(|address| (address, None)));
        known.retain(|_, gone| gone.is_none_or(|since| since.elapsed() < LAG));
    }
}

async fn accept(listener: TcpListener, port: u16, ready: Ready) {
    let mut connections = JoinSet::new();
    for turn in 0.. {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let target = {
            let known = ready.lock().unwrap_or_else(PoisonError::into_inner);
            (!known.is_empty()).then(|| known.keys().nth(turn % known.len()).copied()).flatten()
        };
        connections.spawn(async move {
            // The connection just ends then, and the client counts it.
            let Some(target) = target else { return eprintln!("no Pod is ready") };
            let mut server = match TcpStream::connect((target, port)).await {
                Ok(server) => server,
                Err(error) => return eprintln!("{target}:{port} takes no connection: {error}"),
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
