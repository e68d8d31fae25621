//! What the cluster says: list, watch, trim, cache, and one immutable [`Snapshot`] of it all.

mod index;
pub mod objects;
mod snapshot;
mod store;
mod trim;

pub use index::{Reference, ReverseIndex};
pub use snapshot::{Malformed, Snapshot};
