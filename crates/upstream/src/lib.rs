//! Towards the upstreams: connections, their pools, and one try of a request over them.

mod addresses;
mod call;
mod connect;
mod failure;
mod fastcgi;
mod group;
mod http1;
mod http2;
mod incoming;
mod journal;
mod link;
mod names;
mod pool;
mod request;
mod retry;
mod rule;
mod send;
mod sent;
mod talk;
mod unfinished;

pub use addresses::Addresses;
pub use call::{Call, CallError, Destination, Way, call, host_of};
pub use connect::{Connection, Target, secure};
pub use failure::{Failed, TryError};
pub use fastcgi::Params;
pub use fastcgi::{Records, Said, head_end as cgi_head_end, parse as parse_cgi_head};
pub use group::{Group, Reuse};
pub use journal::{AddressText, Try};
pub use names::Names;
pub use pool::Pool;
use request::Whom;
pub use request::{Cause, Head, Outgoing};
pub use retry::{is_idempotent, tries_left};
pub use rule::{Alternative, Rule, Session};
pub use send::send;
pub use unfinished::Unfinished;
