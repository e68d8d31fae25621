//! Towards the upstreams: connections, their pools, and one try of a request over them.

mod call;
mod connect;
mod fastcgi;
mod group;
mod http1;
mod http2;
mod incoming;
mod journal;
mod names;
mod pool;
mod rule;
mod talk;

pub use call::{Call, Destination, Way, call, host_of};
pub use connect::{Connection, Target};
pub use fastcgi::{FastCgiBody, Params};
pub(crate) use fastcgi::{Records, Said, head_end as cgi_head_end, parse as parse_cgi_head};
pub use group::{Group, Reuse};
pub use http1::{ResponseBody, Upgraded};
pub(crate) use http2::InFlight;
pub use journal::Try;
pub use names::Names;
pub use pool::Pool;
pub use rule::{Alternative, Rule, Session};

use crate::http::{Body, BodyError, Interim, Response};
use http::Method;
use model::policy::Policy;
use std::fmt;
use std::rc::Rc;

/// One request as it is sent to an upstream.
pub struct Outgoing<'a> {
    /// The method.
    pub method: &'a Method,
    /// The head, written for HTTP/1 or in parts for HTTP/2.
    pub head: Head,
    /// The body; read from the front at each try.
    pub body: &'a mut Body,
    /// Whether the client asked to leave HTTP (Upgrade).
    pub upgrade: bool,
    /// Takes the interim answers that come before the answer.
    pub interim: &'a dyn Fn(Interim),
    /// The location's policies.
    pub policy: &'a Policy,
    /// How often the request has come back to this process.
    pub turns: u8,
}

/// The head of a request.
#[derive(Clone, Debug)]
pub enum Head {
    /// All bytes of an HTTP/1 head.
    Http1(bytes::Bytes),
    /// The parts of an HTTP/2 one.
    Http2(Box<::http::Request<()>>),
    /// The records that begin a FastCGI request.
    FastCgi(bytes::Bytes),
}

/// Why a try ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    /// No connection.
    #[error("connecting: {0}")]
    Connect(std::io::Error),
    /// No connection, no progress or no head in time.
    #[error("timed out while {0}")]
    Timeout(&'static str),
    /// The connection ended before the head did.
    #[error("the upstream closed the connection before its answer")]
    Closed,
    /// The head is not one.
    #[error("the upstream's answer is not valid HTTP")]
    InvalidHeader,
    /// The head is larger than allowed (`proxy-buffer-size`).
    #[error("the upstream's answer is refused: its head is larger than proxy-buffer-size ({})", Size(*.0))]
    HeadTooLarge(usize),
    /// HTTP/2 went wrong.
    #[error("HTTP/2: {0}")]
    Http2(h2::Error),
    /// It leads back to this process, time and again.
    #[error("the upstream is this controller itself, and the request has come back too often")]
    Loop,
    /// The client did not deliver the body: nobody upstream is to blame.
    #[error("reading the request body: {0}")]
    RequestBody(BodyError),
}

/// What a try that failed leaves to say.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub error: TryError,
    /// Whether bytes of the request were sent.
    pub sent: bool,
    /// Whether the upstream says that it did nothing with them (REFUSED_STREAM, GOAWAY before the stream).
    pub refused: bool,
    /// Whether it was a kept connection, which the upstream may close at any time.
    pub reused: bool,
}

/// Sends a request to an endpoint and gives back the head of the answer with its body still to come.
pub async fn send(
    pool: &Rc<Pool>,
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    match request.head {
        Head::Http1(_) => http1::send(pool, target, request, journal).await,
        // Boxed: their room would be moved with every plain request.
        Head::Http2(_) => Box::pin(http2::send(pool, target, request, journal)).await,
        Head::FastCgi(_) => Box::pin(fastcgi::send(target, request, journal)).await,
    }
}

/// A size as it is written in annotations.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => write!(f, "{}k", bytes >> 10),
            bytes => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TryError;

    #[test]
    fn a_head_that_is_too_large_is_said_with_the_key_that_bounds_it() {
        let said = |limit| TryError::HeadTooLarge(limit).to_string();
        assert!(said(4096).ends_with("its head is larger than proxy-buffer-size (4k)"));
        assert!(said(1000).ends_with("(1000)"));
    }
}
