//! Which location answers: host and path, canonical and matched as nginx does it, without I/O and without Kubernetes.
//!
//! A request passes through here in this order: `wire::host::parse` and [`path::canonical`] turn what the client wrote
//! into one meaning, [`Routes::find`] chooses the server, [`Locations::find`] its location. What is forwarded after a
//! rewrite is written by [`path::encode`].

mod aliases;
mod gateway;
mod locations;
pub mod path;
mod routes;

pub use gateway::{CallPaths, Rank, RouteTable, RulePaths};
pub use locations::{Found, Locations, Own};
pub use routes::Routes;
