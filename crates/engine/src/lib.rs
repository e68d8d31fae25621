//! The seam between what should be served and what serves it.

use model::{Changes, Configuration, Problem};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Makes traffic follow a Configuration. There are two: the native one (crate `proxy`) and nginx (crate `nginx`).
pub trait Engine: Send + Sync + 'static {
    /// Makes traffic follow `next`, of which `changes` differ from the one before. When it returns, every new request
    /// is served accordingly. On error the previous Configuration stays in force.
    fn apply(
        &self,
        next: &Configuration,
        changes: &Changes,
    ) -> impl Future<Output = Result<Applied, Rejected>> + Send;

    /// Whether what changes at once may come in several rounds, since each costs little: nginx may reload for each.
    fn takes_portions(&self) -> bool {
        false
    }

    /// Returns when what was applied last is to be applied again although nothing changes: something was left out for
    /// want of time alone, or what was served is no more.
    fn due(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Stops accepting, lets requests finish for at most `deadline`, returns.
    fn drain(self: Arc<Self>, deadline: Duration) -> impl Future<Output = ()> + Send;
}

/// What an engine did to make traffic follow a Configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The number of the generation in force.
    pub generation: u64,
    /// What the engine could not take and left out, so that the rest is served.
    pub left_out: Vec<Problem>,
}

/// Why an engine refused a Configuration; the one before stays in force.
#[derive(Debug, thiserror::Error)]
#[error("generation {generation} refused: {reason}")]
pub struct Rejected {
    /// The number that the generation would have had.
    pub generation: u64,
    /// What the engine said.
    pub reason: String,
}
