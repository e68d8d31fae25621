//! Objects of the Gateway API for Ingresses: what [`translate`] understands of them, said in the other language, and a
//! list of what cannot be said there. Pure: no I/O, no clock.

mod backends;
mod earlier;
mod filters;
mod folders;
mod gateway;
mod grpc;
mod keys;
mod lost;
mod made;
mod names;
mod order;
mod paths;
mod process;
mod proof;
mod redirects;
mod rewrites;
mod routes;
mod rules;
#[cfg(test)]
mod tests;
mod tls;
mod yaml;

pub use gateway::{CLASS, Target};
pub use lost::{Loss, Weight};
pub use made::{Object, is_file_name};

use lost::Ledger;
use objects::Snapshot;
use std::collections::BTreeSet;
use translate::{Options, Other};

/// What becomes of Ingresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    /// The objects, in the order in which they are to be applied.
    pub objects: Vec<Object>,
    /// Everything that cannot be said, or is said a little otherwise.
    pub losses: Vec<Loss>,
    /// How many Ingresses are ours, refused ones among them.
    pub ingresses: usize,
    /// Those that are not ours and were not converted.
    pub others: Vec<Other>,
}

/// Converts the Ingresses of a Snapshot that are ours.
pub fn convert(snapshot: &Snapshot, options: &Options, target: &Target) -> Converted {
    let translation = translate::translate_telling_all(snapshot, options);
    let configuration = &translation.configuration;
    let mut ledger = Ledger::new(snapshot, options);
    ledger.refused(&translation.problems, configuration);
    process::note(snapshot, options, target, &mut ledger);
    let listeners = gateway::listeners(configuration, options, target, &mut ledger);
    let mut all = gateway::objects(&listeners, target, snapshot);
    let served = (configuration, &translation.served);
    let said = routes::routes(served, (snapshot, target), &listeners, &mut ledger);
    all.extend(said.tls);
    all.extend(said.routes);
    if !translation.served.is_empty() {
        ledger.for_all();
    }
    names::settle(&mut all, snapshot, &mut ledger);
    earlier::note(&all, snapshot, &mut ledger);
    proof::check(&all, (snapshot, &target.class), options, &mut ledger);
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
    let others = translate::others(snapshot, options);
    let ingresses = snapshot.ingresses.len() - others.len();
    Converted { objects, losses, ingresses, others }
}

impl Converted {
    /// Whether something is lost, rather than only said a little otherwise.
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|loss| loss.weight < Weight::Otherwise)
    }
}
