//! HTTP/2 on the wire: the h2 crate, with bounds of our own around it (docs/limits.md).

mod body;
mod budget;
mod fields;
mod flood;
mod held;
mod incoming;
mod loose;
mod request;
mod seen;
mod stream;
mod unfinished;

pub use body::{BodyStream, StreamBody, poll_send_data};
pub use budget::Budget;
pub use fields::{append, from_map, to_map};
pub use flood::{ClientFrames, Guarded, UpstreamFrames};
pub use held::{Held, LIVELY, Lead, Piece};
pub use incoming::{AllIncoming, Incoming};
pub use request::{Refused, Rules, judge};
pub use stream::{ClientStream, starts_http2};

/// Bytes of the head of an answer at most: upstreams are told so, and many clients end the whole connection for a
/// longer one.
pub const LONGEST_HEAD: u32 = 64 << 10;
