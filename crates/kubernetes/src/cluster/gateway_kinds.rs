//! Whether the API server has the kinds of the Gateway API: their definitions may be absent, come later, or go.

use crate::client::reason;
use crate::watch::backoff;
use kube::Client;
use objects::gateway::GROUP;
use std::collections::{BTreeMap, BTreeSet};
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
    pub(super) sets: watch::Receiver<Option<bool>>,
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
        "listenersets",
        "httproutes",
        "grpcroutes",
        "tcproutes",
        "udproutes",
        "tlsroutes",
        "backendtlspolicies",
        "referencegrants",
    ];
    let senders = kinds.map(|kind| (kind, watch::Sender::new(None)));
    let [classes, gateways, sets, routes, grpc, tcp, udp, tls, policies, grants] =
        senders.each_ref().map(|(_, sender)| sender.subscribe());
    tasks.spawn(async move {
        let (mut pauses, mut unserved) = (backoff(), Unserved::default());
        loop {
            match served(&client).await {
                Ok(served) => {
                    pauses = backoff();
                    for (kind, sender) in &senders {
                        let (version, kind) = version_of(kind);
                        let is_there = served.contains(&(version, kind.to_owned()));
                        sender.send_if_modified(|known| known.replace(is_there) != Some(is_there));
                    }
                    unserved.follow(&client, &kinds.map(version_of)).await;
                    #[expect(clippy::disallowed_methods, reason = "asked again now and then")]
                    sleep(PERIOD).await;
                }
                // What is there stays; whether the API server can be reached is told by the watches.
                Err(error) => {
                    tracing::debug!(
                        reason = reason(&error),
                        "cannot ask for the kinds of the Gateway API"
                    );
                    #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
                    sleep(pauses.next().unwrap_or(PERIOD)).await;
                }
            }
        }
    });
    Present { classes, gateways, sets, routes, grpc, streams: [tcp, udp, tls], policies, grants }
}

/// In which version a kind is watched: ReferenceGrants in the one that all bundles have.
fn version_of(kind: &'static str) -> (&'static str, &'static str) {
    (VERSIONS[usize::from(kind == "referencegrants")], kind)
}

/// Kinds of the Gateway API that are defined in the cluster, and whose objects nobody here looks at.
#[derive(Default)]
struct Unserved {
    told: BTreeSet<String>,
}

impl Unserved {
    /// Says which they are, as often as there are others. That it cannot be asked is no reason for a word.
    async fn follow(&mut self, client: &Client, served: &[(&str, &str)]) {
        let Ok(groups) = client.list_api_groups().await else { return };
        let mut groups = groups.groups.into_iter();
        let group = groups.find(|group| group.name == GROUP);
        let versions = group.into_iter().flat_map(|group| group.versions);
        let versions: Vec<String> = versions.map(|version| version.group_version).collect();
        let mut kinds = BTreeMap::new();
        for version in &versions {
            let Ok(list) = client.list_api_group_resources(version).await else { return };
            for found in list.resources.into_iter().filter(|found| !found.name.contains('/')) {
                let is_served = served.contains(&(version.as_str(), found.name.as_str()));
                *kinds.entry(found.kind).or_insert(false) |= is_served;
            }
        }
        let unserved = kinds.into_iter().filter(|(_, is_served)| !is_served);
        let unserved: BTreeSet<String> = unserved.map(|(kind, _)| kind).collect();
        if !unserved.is_subset(&self.told) {
            let kinds: Vec<&str> = unserved.iter().map(String::as_str).collect();
            tracing::info!(
                kinds = kinds.join(", "),
                "kinds of the Gateway API are defined in the cluster whose objects, at least in the versions that \
                 are there, are not served: see docs/gateway-api.md"
            );
        }
        self.told = unserved;
    }
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
