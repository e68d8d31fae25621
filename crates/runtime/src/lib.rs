//! How the process behaves towards its surroundings: logs, signals, readiness, the admin server, limits.

pub mod admin;
mod content;
pub mod exposition;
pub mod farewell;
mod guard;
pub mod limits;
pub mod log;
pub mod overload;
pub mod places;
pub mod ports;
pub mod profile;
mod ready;
mod shutdown;
pub mod signal;
mod stderr;
pub mod turns;
mod usage;

pub use content::Content;
pub use guard::{TOKEN, Token, TokenError};
pub use ready::{Block, Ready};
pub use shutdown::{Shutdown, Stage};
pub use stderr::lost_messages;
pub use usage::Usage;
