//! HTTP/2 on the wire: the h2 crate, with bounds of our own around it (docs/limits.md).

mod body;
mod fields;
mod flood;
mod held;
mod incoming;
mod request;
mod stream;

pub use body::{BodyStream, StreamBody, poll_send_data};
pub use fields::{append, from_map, to_map};
pub use flood::{Budget, Guarded};
pub use held::{Held, LIVELY, Lead, Piece};
pub use incoming::{AllIncoming, Incoming};
pub use request::{Refused, Rules, judge};
pub use stream::{ClientStream, starts_http2};
