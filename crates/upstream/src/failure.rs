//! Why a try failed, and what follows from it.

use crate::retry::is_safe_to_repeat;
use http::Method;
use model::policy::{Condition, Retries};
use rustix::io::Errno;
use std::fmt;
use wire::BodyError;

/// Why a try ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    /// No connection.
    #[error("connecting: {0}")]
    Connect(std::io::Error),
    /// No connection, and no further endpoint is asked: so many have shown certificates that are not believed.
    #[error(
        "connecting: {0}; no further endpoint is asked, so many have shown certificates that are not believed (docs/limits.md)"
    )]
    Certificates(std::io::Error),
    /// There are as many connections to upstreams as may be.
    #[error(
        "no more connections to upstreams: all have 45 % of the open files, and a namespace three times what is left of that; raise the limit of open files (ulimit -n; docs/limits.md)"
    )]
    Places,
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
    /// Heads and handshakes that are not whole hold as much memory as they may, with what guards and upstreams leave.
    #[error(
        "heads of answers and handshakes of TLS that are not whole, and what X-Accel-Redirect and authenticators have left, \
         hold as much memory as they may (docs/limits.md)"
    )]
    Heads,
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

/// Kept connections that may turn out to be closed, or sessions in which others have the last place, before it counts
/// as a failed try.
const STALE: u32 = 2;

impl Failed {
    /// Whether the request may be sent again: the upstream did nothing with it, or may do it twice.
    pub fn is_repeatable(&self, idempotent: bool) -> bool {
        !self.sent || self.refused || idempotent
    }

    /// Whether a kept connection had ended, as it may at any time: no failed try (nginx: peer.cached), unless it
    /// happened often already. Nor is what an upstream refuses for others with whom the request shares its session.
    /// What may not be sent twice by itself is sent again for that only where an `error` is to be followed by another
    /// try, as by nginx; the rest is whatever is asked for.
    pub fn is_no_try(&self, before: u32, method: &Method, retries: &Retries) -> bool {
        let is_free = !self.sent || self.refused || is_safe_to_repeat(method);
        let is_stale = self.refused || (self.reused && self.error.is_stale());
        is_stale && before < STALE && (is_free || self.error.retry(retries))
    }
}

impl TryError {
    /// Whether another endpoint may be tried after this.
    pub fn retry(&self, retries: &Retries) -> bool {
        let wanted = |condition| retries.conditions.contains(&condition);
        match self {
            // What speaks no HTTP/2 at all is like an invalid head.
            Self::Http2(error) if !(error.is_io() || error.is_remote()) => {
                wanted(Condition::InvalidHeader)
            }
            Self::Connect(_) | Self::Closed | Self::Http2(_) => wanted(Condition::Error),
            Self::Timeout(_) => wanted(Condition::Timeout),
            Self::InvalidHeader | Self::HeadTooLarge(_) => wanted(Condition::InvalidHeader),
            Self::RequestBody(_)
            | Self::Loop
            | Self::Places
            | Self::Heads
            | Self::Certificates(_) => false,
        }
    }

    /// Whether the endpoint's certificate is not believed.
    pub fn is_of_certificate(&self) -> bool {
        matches!(self, Self::Connect(error) if tls::is_not_believed(error))
    }

    /// Whether nobody was there to be asked for a certificate.
    pub fn is_unreached(&self) -> bool {
        use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
        let kinds = [ConnectionRefused, HostUnreachable, NetworkUnreachable];
        matches!(self, Self::Connect(error) if kinds.contains(&error.kind()))
    }

    /// It is the last one of its request, where the endpoint's certificate is not believed.
    pub fn ends_tries(&mut self) {
        if let Self::Connect(error) = self {
            let error = std::mem::replace(error, std::io::ErrorKind::Other.into());
            *self = Self::Certificates(error);
        }
    }

    /// Whether this machine has run out of something: descriptors, ports, memory for sockets, places.
    pub fn is_shortage(&self) -> bool {
        const SHORTAGES: [Errno; 5] =
            [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM];
        match self {
            Self::Places => true,
            Self::Connect(error) => {
                Errno::from_io_error(error).is_some_and(|errno| SHORTAGES.contains(&errno))
            }
            _ => false,
        }
    }

    /// Whether it is how a kept connection looks that the upstream had closed meanwhile.
    pub fn is_stale(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Http2(error) => error.is_io() || error.is_go_away(),
            _ => false,
        }
    }

    /// The status that stands for it in `$upstream_status`.
    pub fn status(&self) -> u16 {
        match self {
            Self::Timeout(_) => 504,
            Self::Loop => 508,
            _ if self.is_shortage() => 503,
            _ => 502,
        }
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
    use super::{Failed, TryError};
    use http::Method;
    use model::policy::{Condition, Retries};

    #[test]
    fn what_may_not_be_sent_twice_is_sent_again_over_a_new_connection_where_errors_are_followed() {
        let again = |method, sent, conditions: &[Condition]| {
            let conditions = conditions.iter().copied().collect();
            let retries = Retries { conditions, ..Retries::default() };
            let failed = Failed { error: TryError::Closed, sent, refused: false, reused: true };
            failed.is_no_try(0, &method, &retries)
        };
        let others = [Condition::Status(500), Condition::NonIdempotent];
        assert!(!again(Method::POST, true, &others));
        assert!(again(Method::POST, true, &[Condition::Error, Condition::NonIdempotent]));
        assert!(again(Method::POST, false, &others), "nothing of it was sent");
        assert!(again(Method::GET, true, &others));
    }

    #[test]
    fn what_is_refused_for_those_who_share_a_session_is_no_try_twice() {
        let retries = Retries { conditions: [].into(), ..Retries::default() };
        let error = TryError::Http2(h2::Reason::REFUSED_STREAM.into());
        let failed = Failed { error, sent: true, refused: true, reused: false };
        let again = [0, 1, 2].map(|before| failed.is_no_try(before, &Method::POST, &retries));
        assert_eq!(again, [true, true, false]);
    }

    #[test]
    fn a_head_that_is_too_large_is_said_with_the_key_that_bounds_it() {
        let said = |limit| TryError::HeadTooLarge(limit).to_string();
        assert!(said(4096).ends_with("its head is larger than proxy-buffer-size (4k)"));
        assert!(said(1000).ends_with("(1000)"));
    }
}
