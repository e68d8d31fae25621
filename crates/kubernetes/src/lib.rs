//! What the cluster says: list, watch, trim, cache, and one immutable [`Snapshot`] of it all.

mod client;
mod cluster;
mod error;
mod feed;
mod following;
mod index;
mod manifests;
pub mod objects;
mod snapshot;
mod store;
mod trim;
mod watch;
mod zone;

pub use client::{ClientOptions, client, server};
pub use cluster::{ClusterOptions, Referrer, SecretsOf, cluster};
pub use error::Error;
pub use feed::Feed;
pub use following::Following;
pub use index::{Reference, ReverseIndex};
pub use kube::Client;
pub use manifests::{manifests, snapshot_of};
pub use snapshot::{Malformed, Snapshot};
pub use trim::{parse_ingress, parse_secret, parse_service};
pub use zone::zone;
