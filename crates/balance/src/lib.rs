//! Which endpoint is next: pure, one file per algorithm, without I/O and without Kubernetes.

mod canary;
mod consistent_hash;
mod ewma;
mod roster;
mod round_robin;
mod sticky;
mod subset;

pub use canary::{Asked, Side, side};
pub use consistent_hash::Ring;
pub use ewma::Score;
pub use roster::{Needs, Roster};
pub use round_robin::RoundRobin;
pub use sticky::{Claim, Cookie, Kept, Sessions, takes_same_site_none, upstream_key};
