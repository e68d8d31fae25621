//! What the cluster says: lists and watches objects, and hands out one immutable [`objects::Snapshot`] after the other.

mod client;
mod cluster;
mod error;
mod feed;
mod following;
mod issuers;
mod manifests;
mod newest;
mod pod_page;
mod pods;
mod watch;
mod zone;

pub use client::{ClientOptions, WATCH, client, deepest, server};
pub use cluster::{ClusterOptions, Referrer, SecretsOf, cluster};
pub use error::Error;
pub use feed::Feed;
pub use following::Following;
pub use issuers::issuers;
pub use kube::Client;
pub use manifests::manifests;
pub use pod_page::{PodPort, pod_page};
pub use pods::{Node, Pod};
pub use zone::zone;
