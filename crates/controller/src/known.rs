//! What is published after each round of the loop: objects, what they mean, and what the engine made of it.

use imbl::OrdSet;
use model::Configuration;
use objects::{ObjectKey, ReverseIndex, Snapshot};
use std::sync::Arc;
use translate::Problems;
use translate::gateway::Statuses;

/// What there is to know at one moment. It is published once for each round, after the engine has spoken.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The objects.
    pub snapshot: Snapshot,
    /// What they mean. What is judged against it may be asked for before the engine takes it.
    pub configuration: Configuration,
    /// Which Ingresses refer to which Service, Secret and ConfigMap.
    pub references: ReverseIndex,
    /// What users should change.
    pub problems: Problems,
    /// The Ingresses that are served.
    pub served: OrdSet<ObjectKey>,
    /// What objects of the Gateway API are told about themselves, as far as it is served.
    pub statuses: Statuses,
    /// What is in force: `configuration`, unless the engine refused it.
    pub serving: Configuration,
    /// Changes so far that touched more than endpoints and certificates: ingress-nginx would have reloaded.
    pub routes: u64,
    /// Why the engine refused `configuration`.
    pub refused: Option<Arc<str>>,
}

impl Known {
    /// Whether a Configuration is in force; each has the server for unknown hosts at least.
    pub fn is_serving(&self) -> bool {
        !self.serving.servers.is_empty()
    }
}
