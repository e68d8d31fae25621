//! Objects of the Gateway API for Ingresses: what [`translate`] understands of them, said in the other language, and a
//! list of what cannot be said there. Pure: no I/O, no clock.

mod backends;
mod filters;
mod gateway;
mod grpc;
mod keys;
mod lost;
mod made;
mod names;
mod paths;
mod proof;
mod redirects;
mod rewrites;
mod routes;
mod rules;
#[cfg(test)]
mod tests;
mod tls;
mod yaml;

pub use gateway::Target;
pub use lost::{Loss, Weight};
pub use made::Object;

use lost::Ledger;
use objects::Snapshot;
use std::collections::BTreeSet;
use translate::Options;

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

/// Converts the Ingresses of a Snapshot that are ours.
pub fn convert(snapshot: &Snapshot, options: &Options, target: &Target) -> Converted {
    let translation = translate::translate(snapshot, options);
    let configuration = &translation.configuration;
    let mut ledger = Ledger::new(snapshot, options);
    ledger.refused(&translation.problems);
    let listeners = gateway::listeners(configuration, options, target, &mut ledger);
    let mut all = gateway::objects(&listeners, target, snapshot);
    let served = (configuration, &translation.served);
    let said = routes::routes(served, snapshot, &listeners, &mut ledger);
    all.extend(said.tls);
    all.extend(said.routes);
    if !translation.served.is_empty() {
        ledger.for_all();
    }
    names::settle(&mut all, snapshot, &mut ledger);
    proof::check(&all, snapshot, options, &mut ledger);
    let losses = ledger.all();
    let mut placed = BTreeSet::new();
    let mut objects: Vec<Object> =
        all.into_iter().map(|made| made.object(&losses, &mut placed)).collect();
    let homeless = losses.iter().enumerate().filter(|(index, _)| !placed.contains(index));
    let homeless: Vec<Loss> = homeless.map(|(_, loss)| loss.clone()).collect();
    // What has no object of its own stands beside the first one: a Gateway is always there.
    if let Some(first) = objects.first_mut() {
        first.losses.extend(homeless);
    }
    Converted { objects, losses, ingresses: translation.served.len() }
}

impl Converted {
    /// Whether something is lost, rather than only said a little otherwise.
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|loss| loss.weight < Weight::Otherwise)
    }
}
