//! The Pod that this process is in, and its siblings: the other replicas.

use crate::call::{Called, ask};
use kube::api::ListParams;
use kube::{Api, Client};
use kubernetes::Pod;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is asked again at start where there was no answer.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Labels that tell an installation from all others, by the names that Helm charts agree on.
const OF_AN_INSTALLATION: [&str; 3] =
    ["app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component"];

/// Labels that differ between replicas of one Deployment, DaemonSet or StatefulSet while it is rolled, or upgraded.
const OF_ONE_ROLLOUT: [&str; 5] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "helm.sh/chart",
    "app.kubernetes.io/version",
];

/// The labels that all replicas have, of this version and of the ones before and after it. Whoever took siblings of
/// another version for strangers would believe to be the last replica, in the middle of an upgrade.
fn shared(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    if OF_AN_INSTALLATION.iter().all(|name| labels.contains_key(*name)) {
        labels.retain(|name, _| OF_AN_INSTALLATION.contains(&name.as_str()));
    }
    labels.retain(|name, _| !OF_ONE_ROLLOUT.contains(&name.as_str()));
    labels
}

/// The Pod that this process is in.
#[derive(Clone, Debug, Default)]
pub struct OwnPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name, which is this replica's identity.
    pub name: String,
    /// Its `metadata.uid`.
    pub uid: String,
    /// The labels that all replicas have.
    labels: BTreeMap<String, String>,
}

impl OwnPod {
    /// Reads it; the error is one line.
    pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<Self, String> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let mut tries = 0;
        let pod = loop {
            match ask(PATIENCE, pods.get(name)).await {
                Called::Good(pod) => break pod,
                Called::Bad { code: None, .. } if tries < TRIES => tries += 1,
                Called::Bad { reason, .. } => return Err(reason),
            }
            #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
            tokio::time::sleep(PAUSE).await;
        };
        let labels = shared(pod.metadata.labels.unwrap_or_default());
        let uid = pod.metadata.uid.unwrap_or_default();
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), uid, labels })
    }

    /// All replicas as the API server tells of them, by name; the error is one line.
    pub async fn siblings(&self, client: &Client) -> Result<Vec<Sibling>, String> {
        let mut all: Vec<Sibling> =
            self.replicas(client).await?.into_iter().filter_map(Sibling::of).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// This replica and those that stay: Pods with the same labels that neither have ended nor are about to.
    pub(crate) async fn replicas(&self, client: &Client) -> Result<Vec<Pod>, String> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        // Without labels of its own a Pod has no siblings; no selector at all would find everybody.
        let found = if self.labels.is_empty() {
            let wanted = ListParams::default().fields(&format!("metadata.name={}", self.name));
            ask(PATIENCE, pods.list(&wanted)).await
        } else {
            let pairs: Vec<String> =
                self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            ask(PATIENCE, pods.list(&ListParams::default().labels(&pairs.join(",")))).await
        };
        match found {
            Called::Good(list) => {
                let is_own = |pod: &Pod| pod.metadata.name.as_deref() == Some(&self.name);
                Ok(list.items.into_iter().filter(|pod| is_own(pod) || stays(pod)).collect())
            }
            Called::Bad { reason, .. } => Err(reason),
        }
    }
}

/// A replica, as its Pod says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// The name of its Pod.
    pub name: String,
    /// The node that it is on.
    pub node: Option<String>,
    /// The address of its Pod.
    pub address: Option<IpAddr>,
    /// Whether it is ready.
    pub ready: bool,
    /// When its Pod was started, in seconds since 1970.
    pub since: Option<i64>,
}

impl Sibling {
    /// The beginning of what its admin server, at this port, has at a path for everybody, head included: no more than
    /// `most` bytes of it. The error is one line.
    pub async fn page(
        &self,
        (port, path): (u16, &str),
        most: u64,
        patience: Duration,
    ) -> Result<String, String> {
        let address = self.address.ok_or("its Pod has no address yet")?;
        let at = SocketAddr::new(address, port);
        let page = tokio::time::timeout(patience, beginning(at, path, most)).await;
        let page =
            page.map_err(|_| format!("{at} does not answer within {} s", patience.as_secs()))?;
        let page = page.map_err(|error| format!("{at}: {error}"))?;
        if !page.starts_with("HTTP/1.1 200") {
            let said = page.lines().next().unwrap_or("it says nothing");
            return Err(format!("{at}: {said}"));
        }
        Ok(page)
    }

    fn of(pod: Pod) -> Option<Self> {
        let ready = is_ready(&pod);
        Some(Self {
            name: pod.metadata.name?,
            node: pod.spec.node_name,
            address: pod.status.pod_ip.and_then(|address| address.parse().ok()),
            ready,
            since: pod.status.start_time.map(|time| time.0.as_second()),
        })
    }
}

async fn beginning(at: SocketAddr, path: &str, most: u64) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(at).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = Vec::new();
    stream.take(most).read_to_end(&mut page).await?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !has_ended(pod)
}

/// Whether no container of a Pod runs any more, nor ever will.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

/// Whether a Pod runs and is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.conditions.iter();
    pod.status.phase.as_deref() == Some("Running")
        && conditions.any(|known| known.kind == "Ready" && known.status == "True")
}

#[cfg(test)]
mod tests {
    use super::shared;
    use std::collections::BTreeMap;

    fn labels(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn replicas_of_the_version_before_are_siblings() {
        let installed =
            "app.kubernetes.io/name=a app.kubernetes.io/instance=b app.kubernetes.io/component=c";
        for changing in
            ["helm.sh/chart=fairway-0.1.0", "app.kubernetes.io/version=1", "git-commit=abc", ""]
        {
            assert_eq!(
                shared(labels(&format!("{installed} {changing}"))),
                labels(installed),
                "{changing}"
            );
        }
        assert_eq!(shared(labels("app=x helm.sh/chart=1 pod-template-hash=2")), labels("app=x"));
    }
}
