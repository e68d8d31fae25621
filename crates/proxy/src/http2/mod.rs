//! HTTP/2 towards clients: the streams of a connection, and the answer of each.

mod answer;
mod connection;

pub(crate) use connection::serve;
