//! Objects of the Gateway API for Ingresses: what [`translate`] understands of them, said in the other language, and a
//! list of what cannot be said there. Pure: no I/O, no clock.

mod backends;
mod filters;
mod gateway;
mod grpc;
mod keys;
mod lost;
mod paths;
mod redirects;
mod rewrites;
mod routes;
mod rules;
mod tls;
mod yaml;

pub use lost::{Loss, Weight};

use lost::Ledger;
use objects::{ObjectKey, Snapshot};
use serde_json::Value;
use std::collections::BTreeSet;
use translate::Options;

/// How the new objects are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GatewayClass; written, too, where there is none of that name.
    pub class: String,
    /// Namespace and name of the Gateway; a second one has `-2` behind its name.
    pub gateway: ObjectKey,
}

/// What becomes of Ingresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    /// The objects, in the order in which they are to be applied.
    pub objects: Vec<Object>,
    /// Everything that cannot be said, or is said a little otherwise.
    pub losses: Vec<Loss>,
    /// How many Ingresses there were to convert.
    pub ingresses: usize,
}

/// An object, and what it leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The object as the API server takes it.
    pub value: Value,
    /// What it leaves out.
    pub losses: Vec<Loss>,
}

/// Converts the Ingresses of a Snapshot that are ours.
pub fn convert(snapshot: &Snapshot, options: &Options, target: &Target) -> Converted {
    let translation = translate::translate(snapshot, options);
    let configuration = &translation.configuration;
    let mut ledger = Ledger::new(snapshot, options);
    ledger.refused(&translation.problems);
    let listeners = gateway::listeners(configuration, options, target, &mut ledger);
    let mut all = gateway::objects(&listeners, target, snapshot);
    let said = routes::routes(configuration, snapshot, &listeners, &mut ledger);
    all.extend(said.tls);
    all.extend(said.routes);
    let losses = ledger.all();
    let mut placed = BTreeSet::new();
    let mut objects: Vec<Object> = all.into_iter().map(|made| made.object(&losses, &mut placed)).collect();
    let homeless = losses.iter().enumerate().filter(|(index, _)| !placed.contains(index));
    let homeless: Vec<Loss> = homeless.map(|(_, loss)| loss.clone()).collect();
    // What has no object of its own stands beside the first one: a Gateway is always there.
    if let Some(first) = objects.first_mut() {
        first.losses.extend(homeless);
    }
    Converted { objects, losses, ingresses: translation.served.len() }
}

impl Object {
    /// The object as YAML, below comments about what it leaves out.
    pub fn yaml(&self) -> String {
        yaml::document(self)
    }

    /// A name for a file that holds it alone.
    pub fn file_name(&self) -> String {
        let text = |field: &str| self.value["metadata"][field].as_str().unwrap_or_default();
        let kind = self.value["kind"].as_str().unwrap_or_default().to_lowercase();
        let parts = [kind.as_str(), text("namespace"), text("name")];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}.yaml", parts.join("."))
    }
}

impl Converted {
    /// Whether something is lost, rather than only said a little otherwise.
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|loss| loss.weight != Weight::Note)
    }
}

/// An object before anybody knows which comments it has.
#[derive(Debug)]
struct Made {
    value: Value,
    /// The Ingress that it is of, if it is of one.
    of: Option<ObjectKey>,
}

impl Made {
    fn object(self, losses: &[Loss], placed: &mut BTreeSet<usize>) -> Object {
        let Self { value, of } = self;
        let own = |loss: &Loss| of.is_some() && loss.ingress == of;
        let own = losses.iter().enumerate().filter(|(_, loss)| own(loss));
        let own = own.filter(|(index, _)| placed.insert(*index)).map(|(_, loss)| loss.clone());
        Object { losses: own.collect(), value }
    }
}
