//! Whether the API server has the kinds of the Gateway API: their definitions may be absent, come later, or go.

use crate::client::reason;
use crate::watch::backoff;
use kube::Client;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How often it is asked: one small answer, which takes no rights.
const PERIOD: Duration = Duration::from_secs(10);

const VERSIONS: [&str; 2] = ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"];

/// Whether each kind is there.
pub(super) struct Present {
    pub(super) classes: watch::Receiver<Option<bool>>,
    pub(super) gateways: watch::Receiver<Option<bool>>,
    pub(super) routes: watch::Receiver<Option<bool>>,
    pub(super) grpc: watch::Receiver<Option<bool>>,
    /// TCPRoutes, UDPRoutes and TLSRoutes.
    pub(super) streams: [watch::Receiver<Option<bool>>; 3],
    pub(super) policies: watch::Receiver<Option<bool>>,
    pub(super) grants: watch::Receiver<Option<bool>>,
}

/// Asks from now on. Until the first answer nobody knows, and a first Snapshot waits for it.
pub(super) fn follow(client: Client, tasks: &mut JoinSet<()>) -> Present {
    let kinds = [
        "gatewayclasses",
        "gateways",
        "httproutes",
        "grpcroutes",
        "tcproutes",
        "udproutes",
        "tlsroutes",
        "backendtlspolicies",
        "referencegrants",
    ];
    let senders = kinds.map(|kind| (kind, watch::Sender::new(None)));
    let [classes, gateways, routes, grpc, tcp, udp, tls, policies, grants] =
        senders.each_ref().map(|(_, sender)| sender.subscribe());
    tasks.spawn(async move {
        let mut pauses = backoff();
        loop {
            match served(&client).await {
                Ok(served) => {
                    pauses = backoff();
                    for (kind, sender) in &senders {
                        // ReferenceGrants are watched in the version that all bundles have.
                        let version = VERSIONS[usize::from(*kind == "referencegrants")];
                        let is_there = served.contains(&(version, (*kind).to_owned()));
                        sender.send_if_modified(|known| known.replace(is_there) != Some(is_there));
                    }
                    sleep(PERIOD).await;
                }
                // What is there stays; whether the API server can be reached is told by the watches.
                Err(error) => {
                    tracing::debug!(
                        reason = reason(&error),
                        "cannot ask for the kinds of the Gateway API"
                    );
                    sleep(pauses.next().unwrap_or(PERIOD)).await;
                }
            }
        }
    });
    Present { classes, gateways, routes, grpc, streams: [tcp, udp, tls], policies, grants }
}

/// The resources that the API server has, by version.
async fn served(client: &Client) -> kube::Result<BTreeSet<(&'static str, String)>> {
    let mut served = BTreeSet::new();
    for version in VERSIONS {
        match client.list_api_group_resources(version).await {
            Ok(list) => {
                served.extend(list.resources.into_iter().map(|found| (version, found.name)))
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(served)
}
