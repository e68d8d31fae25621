//! The Snapshot from a cluster: which watches there are, and what their news make of it.

mod contents;
mod follow;
mod gateway_kinds;
mod outage;
mod watches;

use crate::{Error, Feed, Following};
use follow::Follower;
use objects::{ConfigMap, Gateway, Ingress, ListenerSet, ObjectKey, Reference};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a person waits for a first answer.
const GREETING: Duration = Duration::from_secs(10);

/// What to follow in a cluster.
#[derive(Clone)]
pub struct ClusterOptions {
    /// The way to the API server.
    pub client: kube::Client,
    /// Its URL, for messages.
    pub server: String,
    /// The only namespace to watch; all if there is none.
    pub namespace: Option<String>,
    /// A label selector: objects in namespaces that do not match are left out.
    pub namespace_selector: Option<String>,
    /// Objects that are followed in whatever namespace they are: the default certificate, the main ConfigMap, the
    /// default backend and so on.
    pub pinned: Vec<Reference>,
    /// The one of them that may hold guards: who may not read it does not know that there are none, and does not start.
    /// Others that may not be read count as absent, which is told.
    pub guards: Option<ObjectKey>,
    /// Which Secrets an object refers to; only these keep their data.
    pub secrets_of: SecretsOf,
    /// How long to wait for the first complete Snapshot, and for an API server that does not answer at start.
    pub patience: Duration,
    /// Whether a person waits for one look: then what is forbidden, and a server that does not answer for 10 s, end it.
    pub once: bool,
    /// How long a watch lasts: the API server ends it then, and it is asked for anew. One whose connection is dead
    /// without a word is given up 5 s later.
    pub watch: Duration,
    /// How often everything is listed anew, should a watch have left something out.
    pub relist: Duration,
    /// Learns how the watches are.
    pub following: Following,
}

/// Something that may refer to Secrets.
#[derive(Clone, Copy, Debug)]
pub enum Referrer<'a> {
    /// An Ingress.
    Ingress(&'a Ingress),
    /// A ConfigMap.
    ConfigMap(&'a ConfigMap),
    /// A Gateway.
    Gateway(&'a Gateway),
    /// A ListenerSet.
    ListenerSet(&'a ListenerSet),
}

/// Which Secrets an object refers to.
pub type SecretsOf = Arc<dyn Fn(Referrer<'_>) -> Vec<ObjectKey> + Send + Sync>;

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterOptions")
            .field("namespace", &self.namespace)
            .field("namespace_selector", &self.namespace_selector)
            .field("pinned", &self.pinned)
            .field("guards", &self.guards)
            .field("patience", &self.patience)
            .field("relist", &self.relist)
            .finish_non_exhaustive()
    }
}

/// The Snapshot from a cluster; returns when every kind was listed once, and follows every change from then on. An
/// API server that goes away later leaves the last Snapshot as it is.
pub async fn cluster(options: ClusterOptions) -> Result<Feed, Error> {
    let patience = tokio::time::Instant::now() + options.patience;
    let greeting =
        if options.once { patience.min(tokio::time::Instant::now() + GREETING) } else { patience };
    let streaming = watches::greet(&options, greeting).await?;
    let mut tasks = JoinSet::new();
    let mut follower = Follower::start(&options, streaming, &mut tasks);
    let first = follower.first(patience).await?;
    let (feed, publisher) = Feed::new(first);
    tasks.spawn(follower.run(publisher));
    Ok(feed.with(tasks))
}
