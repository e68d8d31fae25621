//! HTTP/1 on the wire, our own: raw heads are judged before anything else sees them, framing fields are never copied
//! but always written anew (RFC 9112; docs/limits.md).

mod chunked;
mod connection;
mod framing;
mod head;
mod lines;
mod response_head;
mod transport;
mod tunnel;
mod websocket;
pub(crate) mod write;

pub use connection::{refuse_plain, serve};
pub use framing::{Decoder, Framing};
pub use head::{Limits, parse_request};
pub(crate) use lines::{Bounds, Names, has_bare_newline, head_end, parse_fields};
pub(crate) use response_head::content_length_of;
pub use response_head::{BadResponse, ResponseHead, parse_response};
