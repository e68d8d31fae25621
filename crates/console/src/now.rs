//! What an answer is made of.

use crate::explained::Explain;
use crate::history::History;
use crate::replicas::Beside;
use crate::sample::Sample;
use crate::served::{Kept, Served};
use controller::{Known, Progress};
use exposition::{Copies, Sampled};
use parking_lot::Mutex;
use std::sync::Arc;

/// Who this process is.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Its version and the commit that it was built from.
    pub version: String,
    /// The controller class that it serves.
    pub class: String,
    /// Its Pod, where it has one.
    pub pod: String,
}

/// What an answer is made of.
pub(crate) struct Now {
    pub(crate) known: Arc<Known>,
    /// Where an answer says how much traffic there is.
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) history: Arc<Mutex<History>>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) progress: Progress,
    /// None where there is no election.
    pub(crate) leads: Option<bool>,
    pub(crate) explain: Option<Arc<dyn Explain>>,
    /// The replicas, where somebody asks for them.
    pub(crate) replicas: Mutex<Beside>,
    /// When and why a request of the route failed last that is asked for.
    pub(crate) failure: Option<(f64, String)>,
    /// Requests to the API that were refused.
    pub(crate) turned_away: u64,
    /// What became of the request that somebody waits for.
    pub(crate) sampled: Option<Sampled>,
    /// What was decided about copies, where they are all that comes.
    pub(crate) copies: Option<Copies>,
}

impl Now {
    /// The routes of what is known.
    pub(crate) fn served(&self) -> Arc<Served> {
        self.kept.of(&self.known)
    }
}
