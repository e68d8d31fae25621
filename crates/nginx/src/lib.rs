//! The nginx engine: HTTP traffic in a supervised nginx, for raw snippets and nginx modules.
//!
//! `conf` writes nginx.conf, `plan` says whether a change needs a reload, `push` tells Lua what does not, `engine`
//! tests, swaps and reloads, `process` starts nginx and ends it.

mod blame;
pub mod conf;
mod directory;
mod engine;
mod fallback;
mod leaving;
pub mod lookups;
pub mod measurements;
mod names;
mod passthrough;
pub mod pem;
pub mod plan;
mod process;
mod pulse;
pub mod push;
mod refusals;
mod requests;
mod socket;
mod start_error;
mod stub_status;
mod trial;

pub use crate::engine::{Nginx, Options};
pub use conf::Environment;
pub use process::Worker;
pub use pulse::Care;
pub use requests::Requests;
pub use start_error::StartError;
