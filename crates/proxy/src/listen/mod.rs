//! Sockets: bound before anything else, one set for each thread, and what happens to a connection until it speaks HTTP.

mod accept;
mod proxy_protocol;
mod sockets;

pub use accept::accept;
pub(crate) use accept::session;
pub use proxy_protocol::parse as parse_proxy_header;
pub use sockets::{BindError, Listen, Listening, Sockets, bind};
