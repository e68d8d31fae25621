//! Whether the API server has the kinds of the Gateway API: their definitions may be absent, come later, or go.

use crate::client::reason;
use crate::watch::backoff;
use kube::Client;
use objects::Kind;
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
        Kind::GatewayClass,
        Kind::Gateway,
        Kind::ListenerSet,
        Kind::HttpRoute,
        Kind::GrpcRoute,
        Kind::TcpRoute,
        Kind::UdpRoute,
        Kind::TlsRoute,
        Kind::BackendTlsPolicy,
        Kind::ReferenceGrant,
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
                    // Before anybody goes on: who looks once hears of it, too.
                    unserved.follow(&client, &kinds).await;
                    for (kind, sender) in &senders {
                        let called = (kind.api_version(), kind.plural().to_owned());
                        let is_there = served.contains(&called);
                        sender.send_if_modified(|known| known.replace(is_there) != Some(is_there));
                    }
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

/// Kinds of the Gateway API that are defined in the cluster, and whose objects nobody here looks at.
#[derive(Default)]
struct Unserved {
    told: BTreeSet<String>,
}

/// In which versions the API server has a kind.
struct Defined {
    kind: String,
    versions: Vec<String>,
}

impl Unserved {
    /// Says which they are, as often as there are others. That it cannot be asked is no reason for a word.
    async fn follow(&mut self, client: &Client, wanted: &[Kind]) {
        let Ok(groups) = client.list_api_groups().await else { return };
        let mut groups = groups.groups.into_iter();
        let group = groups.find(|group| group.name == GROUP);
        let versions = group.into_iter().flat_map(|group| group.versions);
        let mut defined: BTreeMap<String, Defined> = BTreeMap::new();
        for version in versions {
            let asked = client.list_api_group_resources(&version.group_version).await;
            let Ok(list) = asked else { return };
            for found in list.resources.into_iter().filter(|found| !found.name.contains('/')) {
                let new = || Defined { kind: found.kind, versions: Vec::new() };
                let versions = &mut defined.entry(found.name).or_insert_with(new).versions;
                versions.push(version.version.clone());
            }
        }
        for (is_ours, line) in self.news(&defined, wanted) {
            if is_ours { tracing::warn!("{line}") } else { tracing::info!("{line}") }
        }
    }

    /// A line for each kind that was not told yet, and whether its objects would be served in another version.
    fn news(
        &mut self,
        defined: &BTreeMap<String, Defined>,
        wanted: &[Kind],
    ) -> Vec<(bool, String)> {
        let mut lines = Vec::new();
        let mut told = BTreeSet::new();
        for (name, Defined { kind, versions }) in defined {
            let needed = wanted.iter().find(|wanted| wanted.plural() == name);
            let needed = needed.map(|wanted| wanted.version());
            let there = versions.join(", ");
            let line = match needed {
                Some(needed) if versions.iter().any(|version| version == needed) => continue,
                Some(needed) => format!(
                    "no {kind} of the Gateway API is served: its definition has {there}, and {needed} is needed; install \
                     version 1.6 of the definitions or a later one (docs/gateway-api.md)"
                ),
                None => format!(
                    "{kind} of the Gateway API ({there}) is defined in the cluster and not served: see \
                     docs/gateway-api.md"
                ),
            };
            if !self.told.contains(&line) {
                lines.push((needed.is_some(), line.clone()));
            }
            told.insert(line);
        }
        self.told = told;
        lines
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

#[cfg(test)]
mod tests {
    use super::{Defined, Unserved};
    use objects::Kind;
    use std::collections::BTreeMap;

    #[test]
    fn kinds_in_versions_that_are_too_old_are_warned_of_once() {
        let defined = |tcp: &[&str]| {
            let kinds: [(&str, &str, &[&str]); 4] = [
                ("gateways", "Gateway", &["v1", "v1beta1"]),
                ("referencegrants", "ReferenceGrant", &["v1beta1"]),
                ("tcproutes", "TCPRoute", tcp),
                ("xmeshes", "XMesh", &["v1alpha1"]),
            ];
            let defined = kinds.map(|(name, kind, versions)| {
                let versions = versions.iter().map(|it| (*it).to_owned()).collect();
                (name.to_owned(), Defined { kind: kind.to_owned(), versions })
            });
            BTreeMap::from(defined)
        };
        let wanted = [Kind::Gateway, Kind::ReferenceGrant, Kind::TcpRoute];
        let mut unserved = Unserved::default();
        let lines = unserved.news(&defined(&["v1alpha2"]), &wanted);
        let [(true, tcp), (false, mesh)] = &lines[..] else { panic!("{lines:?}") };
        let said = "no TCPRoute of the Gateway API is served: its definition has v1alpha2, and v1 is needed;";
        assert!(tcp.starts_with(said), "{tcp}");
        assert!(mesh.starts_with("XMesh of the Gateway API (v1alpha1)"), "{mesh}");
        assert!(unserved.news(&defined(&["v1alpha2"]), &wanted).is_empty(), "it was said");
        assert!(unserved.news(&defined(&["v1", "v1alpha2"]), &wanted).is_empty());
        assert_eq!(unserved.news(&defined(&["v1alpha2"]), &wanted).len(), 1, "it is so again");
    }
}
