//! The test bed: builders, upstreams, a client, certificates, the runner of recorded exchanges, a real control plane
//! and a small kubelet that runs its Pods.

pub mod builders;
pub mod case;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod duration;
pub mod eventually;
pub mod exchange;
pub mod fairway;
pub mod fixtures;
pub mod hostile;
pub mod http2;
pub mod journal;
pub mod kubelet;
pub mod latin1;
pub mod manifests;
pub mod name_server;
pub mod namespace;
pub mod ports;
pub mod runner;
pub mod upstreams;
pub mod websocket;
pub mod wire;
pub mod yaml;

pub use eventually::eventually;
