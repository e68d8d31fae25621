//! What HTTP/1 and HTTP/2 have in common: messages, header fields, bodies.

mod body;
mod date;
mod error_page;
mod headers;
mod message;
mod pace;
mod spool;

pub use body::{Body, BodyError, Frame, Length};
pub use date::{Clock, iso8601, since_epoch};
pub use error_page::{error_page, reason};
pub use headers::{Field, Headers, is_token_byte, tokens};
pub use message::{Request, Response, Source, Version};
pub use pace::Pace;
pub use spool::Spool;
