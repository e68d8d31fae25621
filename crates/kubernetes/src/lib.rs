//! What the cluster says: list, watch, trim, cache, and one immutable [`Snapshot`] of it all.

pub mod objects;
mod snapshot;

pub use snapshot::{Malformed, Snapshot};
