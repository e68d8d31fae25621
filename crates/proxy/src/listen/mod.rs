//! Sockets: bound before anything else, one set for each thread, and what happens to a connection until it speaks HTTP.

mod accept;
mod own_ports;
mod passthrough;
mod sockets;
mod wanted;

pub use accept::accept;
pub use own_ports::OwnPorts;
pub use sockets::{BindError, Listen, Listening, Sockets, bind};
pub use wanted::Wanted;
