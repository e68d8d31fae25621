//! Layer 4 in this process, for both engines: TCP and UDP services, the PROXY protocol in front of connections, and
//! what TLS passthrough needs to look at a connection and to carry it on.

pub mod client_hello;
mod pipe;
pub mod proxy_protocol;
mod reach;
mod sockets;
mod streams;
mod tcp;
mod traffic;
mod udp;

pub use pipe::{Patience, pipe};
pub use reach::connect;
pub use streams::Streams;
pub use traffic::Traffic;
