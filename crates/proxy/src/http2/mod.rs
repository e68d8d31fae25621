//! HTTP/2 on the wire: the h2 crate, with bounds of our own around it (docs/limits.md).

mod answer;
mod body;
mod connection;
mod fields;
mod flood;
mod held;
mod request;
mod stream;

pub(crate) use body::poll_send_data;
pub use body::{BodyStream, StreamBody};
pub use connection::{serve, starts_http2};
pub(crate) use fields::{from_map, to_map};
