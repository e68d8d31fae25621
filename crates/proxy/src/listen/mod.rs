//! Sockets: bound before anything else, one set for each thread, and what happens to a connection until it speaks HTTP.

mod accept;
mod carried;
mod openings;
mod own_ports;
mod passthrough;
mod sockets;
mod wanted;

pub(crate) use accept::{Entrance, accept};
pub(crate) use openings::Openings;
pub(crate) use own_ports::OwnPorts;
pub(crate) use sockets::Followed;
pub use sockets::{BindError, Listen, Listening};
pub(crate) use sockets::{Sockets, bind};
pub(crate) use wanted::{Wanted, addresses};
