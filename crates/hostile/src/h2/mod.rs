//! HTTP/2 by hand: frames and header blocks that no library would let through.

pub mod block;
pub mod connection;
pub mod frame;
pub mod script;

pub use connection::{Connection, Ending, State};
