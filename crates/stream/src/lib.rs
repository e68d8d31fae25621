//! Layer 4 in this process, for both engines: TCP and UDP services, the PROXY protocol in front of connections, what
//! TLS passthrough needs to look at a connection and to carry it on, and the addresses of names.

pub mod client_hello;
mod door;
mod followed;
mod holders;
mod names;
pub mod onward;
mod order;
pub mod own;
mod pipe;
mod places;
mod ports;
pub mod proxy_protocol;
mod questions;
mod reach;
mod room;
mod streams;
mod system;
mod tcp;
mod traffic;
mod turns;
mod udp;
mod waiting;

pub use door::{addresses, open};
pub use names::{Following, Resolver};
pub use order::{Order, Whose};
pub use pipe::pipe_until_over;
pub use places::{Held, Patience, Places};
pub use reach::connect;
pub use room::Memory;
pub use streams::Streams;
pub use traffic::Traffic;
