//! HTTP/1 on the wire, our own: raw heads are judged before anything else sees them, framing fields are never copied
//! but always written anew (RFC 9112; docs/limits.md).

mod chunked;
mod framing;
mod head;
mod lines;
mod response_head;
mod transport;
mod tunnel;
mod websocket;
pub mod write;

pub use framing::{BadRequest, Decoder, Framing};
pub use head::{Limits, Received, RequestHead, parse_request, read_refused};
pub use lines::{Bounds, Names, has_empty_line, head_end, parse_fields};
pub use response_head::{
    BadResponse, ResponseHead, content_length_of, cut_response, mended_head, parse_response,
};
pub use transport::{Client, NoHead};
pub use tunnel::{Tunnel, tunnel};
