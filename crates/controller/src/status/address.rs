//! Which addresses Ingresses tell: those given by a flag, those of a Service, or those of our Pods' nodes.

use crate::call::{Called, ask};
use crate::clock::Moment;
use crate::pod::{OwnPod, is_ready};
use futures_util::{StreamExt, TryStreamExt};
use kube::{Api, Client};
use kubernetes::{Node, Pod};
use objects::{ObjectKey, Service, Snapshot};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// How long the API server may take to tell about a node.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nodes that are asked for at a time.
const AT_A_TIME: usize = 10;

/// An item of `status.loadBalancer.ingress`: host name and IP address.
pub(super) type Address = (Option<String>, Option<String>);

/// Where the addresses come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// `--publish-status-address`.
    Fixed(Vec<String>),
    /// `--publish-service`.
    Service(ObjectKey),
    /// The nodes of all replicas that are ready: their external addresses, or the internal ones where there are none.
    Nodes {
        /// `--report-node-internal-ip-address`: the internal ones in any case.
        internal: bool,
    },
}

/// What is known without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AtHand {
    /// These.
    Known(Vec<Address>),
    /// The load balancer of the Service has none yet, or none at the moment.
    Pending,
    /// Nobody knows, so nothing should be written.
    Unknown,
}

pub(super) fn at_hand(source: &AddressSource, snapshot: &Snapshot) -> AtHand {
    match source {
        AddressSource::Fixed(texts) => {
            AtHand::Known(sorted(texts.iter().map(|text| from_text(text)).collect()))
        }
        AddressSource::Service(key) => match snapshot.services.get(key) {
            None => AtHand::Unknown,
            Some(service) => match of_service(service) {
                none if none.is_empty() && service.kind == "LoadBalancer" => AtHand::Pending,
                addresses => AtHand::Known(addresses),
            },
        },
        AddressSource::Nodes { .. } => AtHand::Unknown,
    }
}

/// How long a load balancer may be without an address before Ingresses tell none: one that was just made, or made anew,
/// gets it within minutes; and whoever makes DNS records of the status would remove all of them meanwhile.
pub(super) const PENDING: Duration = Duration::from_secs(300);

/// Since when the load balancer has had no address.
#[derive(Debug, Default)]
pub(super) struct Patience(Option<Moment>);

impl Patience {
    /// What Ingresses should tell; none: what they told before.
    pub(super) fn wanted(&mut self, at_hand: AtHand, now: Moment) -> Option<Vec<Address>> {
        match at_hand {
            AtHand::Known(addresses) => {
                self.0 = None;
                Some(addresses)
            }
            AtHand::Pending => {
                let since = *self.0.get_or_insert(now);
                (since + PENDING <= now).then(Vec::new)
            }
            AtHand::Unknown => {
                self.0 = None;
                None
            }
        }
    }
}

/// The addresses of the nodes that replicas are on.
pub(super) async fn of_nodes(
    client: &Client,
    own: &OwnPod,
    internal: bool,
) -> Result<Vec<Address>, String> {
    let replicas = own.replicas(client).await?;
    // This replica serves: it would not be here otherwise, though its probe may not have said so yet.
    let is_own = |pod: &Pod| pod.metadata.name.as_deref() == Some(&own.name);
    let ready = replicas.into_iter().filter(|pod| is_own(pod) || is_ready(pod));
    let names: BTreeSet<String> = ready.filter_map(|pod| pod.spec.node_name).collect();
    let nodes: Api<Node> = Api::all(client.clone());
    let asked =
        names.into_iter().map(async |name| match ask(PATIENCE, nodes.get_opt(&name)).await {
            Called::Good(node) => Ok(node.and_then(|node| of_node(&node, internal))),
            Called::Bad { reason, .. } => Err(format!("node {name}: {reason}")),
        });
    let found: Vec<Option<String>> =
        futures_util::stream::iter(asked).buffer_unordered(AT_A_TIME).try_collect().await?;
    Ok(sorted(found.into_iter().flatten().map(|address| from_text(&address)).collect()))
}

fn of_node(node: &Node, internal: bool) -> Option<String> {
    let addresses = &node.status.addresses;
    let of_kind = |kind: &str| {
        let mut found = addresses.iter().filter(|found| found.kind == kind);
        found.find(|found| !found.address.is_empty()).map(|found| found.address.clone())
    };
    let external = (!internal).then(|| of_kind("ExternalIP")).flatten();
    external.or_else(|| of_kind("InternalIP"))
}

fn of_service(service: &Service) -> Vec<Address> {
    let external = || service.external_ips.iter().map(|ip| from_text(ip));
    let own = || service.cluster_ip.iter().map(|ip| from_text(ip));
    sorted(match service.kind.as_str() {
        "ExternalName" => service.external_name.iter().map(|name| from_text(name)).collect(),
        "NodePort" if !service.external_ips.is_empty() => external().collect(),
        "LoadBalancer" => service.addresses.iter().cloned().chain(external()).collect(),
        _ => own().collect(),
    })
}

fn from_text(text: &str) -> Address {
    match text.parse::<IpAddr>() {
        Ok(_) => (None, Some(text.to_owned())),
        Err(_) => (Some(text.to_owned()), None),
    }
}

/// In the order in which ingress-nginx writes them, each once: by host name, then by address.
pub(super) fn sorted(mut addresses: Vec<Address>) -> Vec<Address> {
    addresses.sort();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn found(kind: &str, rest: &str) -> AtHand {
        let text = format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: s, namespace: demo}}, \
             spec: {{type: {kind}, clusterIP: 10.0.0.9, ports: [{{port: 80}}]{rest}}}"
        );
        let snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        at_hand(&AddressSource::Service(ObjectKey::new("demo", "s")), &snapshot)
    }

    fn of(kind: &str, rest: &str) -> Vec<String> {
        match found(kind, &format!(", externalIPs: [192.0.2.7]{rest}")) {
            AtHand::Known(addresses) => shown(&addresses),
            other => panic!("{other:?}"),
        }
    }

    fn shown(addresses: &[Address]) -> Vec<String> {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        addresses.iter().map(|(host, ip)| format!("{}/{}", text(host), text(ip))).collect()
    }

    #[test]
    fn each_type_of_service_has_its_addresses() {
        assert_eq!(of("ClusterIP", "}"), ["/10.0.0.9"]);
        assert_eq!(of("NodePort", "}"), ["/192.0.2.7"]);
        assert_eq!(of("ExternalName", ", externalName: lb.example.com}"), ["lb.example.com/"]);
        let status = "}, status: {loadBalancer: {ingress: [{ip: 203.0.113.5}, {hostname: b.example.com}, \
                      {ip: 192.0.2.7}]}}";
        assert_eq!(of("LoadBalancer", status), ["/192.0.2.7", "/203.0.113.5", "b.example.com/"]);
        assert_eq!(of("LoadBalancer", "}"), ["/192.0.2.7"]);
    }

    #[test]
    fn a_service_that_is_gone_says_nothing_and_texts_are_names_or_addresses() {
        let gone = AddressSource::Service(ObjectKey::new("demo", "gone"));
        assert_eq!(at_hand(&gone, &Snapshot::default()), AtHand::Unknown);
        let texts = ["b.example.com", "::1", "192.0.2.1", "192.0.2.1"].map(str::to_owned);
        let fixed = at_hand(&AddressSource::Fixed(texts.into()), &Snapshot::default());
        let AtHand::Known(fixed) = fixed else { panic!("{fixed:?}") };
        assert_eq!(shown(&fixed), ["/192.0.2.1", "/::1", "b.example.com/"]);
    }

    #[test]
    fn a_load_balancer_without_an_address_empties_nothing_for_some_minutes() {
        let (mut patience, start) = (Patience::default(), Moment::now());
        let pending = || found("LoadBalancer", "}");
        assert_eq!(pending(), AtHand::Pending);
        assert_eq!(found("ClusterIP", "}"), AtHand::Known(vec![from_text("10.0.0.9")]));
        let known = AtHand::Known(vec![from_text("192.0.2.1")]);
        assert_eq!(patience.wanted(known.clone(), start).map(|all| all.len()), Some(1));
        assert_eq!(patience.wanted(pending(), start), None);
        assert_eq!(patience.wanted(pending(), start + PENDING / 2), None);
        // Its address comes and goes; or it is deleted and made anew: the time begins anew.
        for between in [known, AtHand::Unknown] {
            patience.wanted(between, start + PENDING / 2);
            assert_eq!(patience.wanted(pending(), start + PENDING), None);
        }
        assert_eq!(patience.wanted(pending(), start + PENDING * 2), Some(Vec::new()));
    }

    #[test]
    fn a_node_without_external_address_has_its_internal_one() {
        let node = |addresses: serde_json::Value| -> Node {
            serde_json::from_value(serde_json::json!({"status": {"addresses": addresses}}))
                .expect("a node")
        };
        let both = node(serde_json::json!([
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "ExternalIP", "address": "198.51.100.1"},
        ]));
        assert_eq!(of_node(&both, false).as_deref(), Some("198.51.100.1"));
        assert_eq!(of_node(&both, true).as_deref(), Some("10.0.0.1"));
        let inner = node(serde_json::json!([{"type": "InternalIP", "address": "10.0.0.1"}]));
        assert_eq!(of_node(&inner, false).as_deref(), Some("10.0.0.1"));
        assert_eq!(of_node(&node(serde_json::json!([])), false), None);
    }
}
