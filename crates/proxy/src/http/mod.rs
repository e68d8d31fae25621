//! What HTTP/1 and HTTP/2 have in common: messages, header fields, bodies.

mod accept_encoding;
mod body;
mod compress;
mod date;
mod error_page;
mod followed;
mod frame;
mod headers;
mod interim;
mod message;
mod pace;
pub mod percent;
mod scratch;
mod search;
mod spool;
mod substitute;
pub mod trailers;
mod upgraded;

pub use accept_encoding::{takes_brotli, takes_gzip};
pub use body::Body;
pub use compress::{Coding, Compressed, Squeezed};
pub use date::{Clock, cookie_date, http_date, iso8601, long_date, since_epoch, syslog_time};
pub use error_page::{error_page, reason};
pub use followed::Followed;
pub use frame::{BodyError, BodySource, Frame, Length};
pub use headers::{Field, Headers, is_token_byte, tokens};
pub use interim::{Interim, Interims};
pub use message::{Request, Response, Source, Version};
pub use pace::Pace;
pub use scratch::Scratch;
pub use search::Search;
pub use spool::Spool;
pub use substitute::Substituted;
pub use trailers::TrailerRule;
pub use upgraded::Upgraded;
