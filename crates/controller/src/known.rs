//! What is published after each round of the loop: objects, what they mean, and what the engine made of it.

use imbl::{OrdMap, OrdSet};
use model::{Configuration, Kind, Origin, Severity};
use objects::{Ingress, ObjectKey, ReverseIndex, Snapshot};
use std::sync::Arc;
use translate::gateway::Statuses;
use translate::{InForce, Options, Problems};

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
    /// How many Ingresses are not served since their class, which is or was ours, does not exist.
    pub without_class: usize,
    /// Of those whose current version is not taken, the version that is served.
    pub kept: OrdMap<ObjectKey, Arc<Ingress>>,
    /// What the command line says about the meaning of objects.
    pub options: Arc<Options>,
    /// What objects of the Gateway API are told about themselves, as far as it is served.
    pub statuses: Statuses,
    /// What is in force: `configuration`, unless the engine refused it.
    pub serving: Configuration,
    /// Changes so far that touched more than endpoints and certificates: ingress-nginx would have reloaded.
    pub routes: u64,
    /// Why the engine refused `configuration`.
    pub refused: Option<Arc<str>>,
    /// Why every location of `configuration` answers 503: a guard of the ConfigMap that cannot be read.
    pub closed: Option<Arc<str>>,
}

impl Known {
    /// Whether a Configuration is in force; each has the server for unknown hosts at least.
    pub fn is_serving(&self) -> bool {
        !self.serving.servers.is_empty()
    }

    /// Whether something of the ConfigMap that counts cannot be read and is not left out: a guard or a snippet.
    pub fn has_bad_config_map(&self) -> bool {
        let of = |key: &ObjectKey| {
            let (namespace, name) = (Arc::clone(&key.namespace), Arc::clone(&key.name));
            self.problems.of(&Origin::new(Kind::ConfigMap, namespace, name))
        };
        let mut problems = self.options.config_map.iter().flat_map(of);
        problems.any(|problem| problem.severity == Severity::Error)
    }

    /// Who asks for what is in force.
    pub fn in_force(&self) -> InForce<'_> {
        InForce { snapshot: &self.snapshot, options: &self.options, kept: &self.kept }
    }
}
