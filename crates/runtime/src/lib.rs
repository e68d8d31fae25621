//! How the process behaves towards its surroundings: logs, signals, readiness, the admin server, limits.

pub mod admin;
pub mod limits;
pub mod log;
pub mod overload;
mod ready;
mod shutdown;
pub mod signal;
mod stderr;

pub use ready::{Block, Ready};
pub use shutdown::{Shutdown, Stage};
