//! What the cluster says: list, watch, trim, cache, and one immutable [`Snapshot`] of it all.

mod error;
mod feed;
mod index;
mod manifests;
pub mod objects;
mod snapshot;
mod store;
mod trim;

pub use error::Error;
pub use feed::Feed;
pub use index::{Reference, ReverseIndex};
pub use manifests::manifests;
pub use snapshot::{Malformed, Snapshot};
