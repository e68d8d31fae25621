//! Interim answers (1xx) on their way to the client, ahead of the answer (RFC 9110 section 15.2).

use super::Headers;
use http::StatusCode;
use std::cell::RefCell;

/// An interim answer of the upstream, as the client gets it.
#[derive(Debug)]
pub struct Interim {
    /// 102, 103 or another one that says nothing about the connection.
    pub status: StatusCode,
    /// The header section, without what belongs to the upstream's connection.
    pub headers: Headers,
}

/// Where interim answers wait for whoever speaks with the client. That is the task that drives the request: it takes
/// them each time it has driven it, so nobody need be woken.
#[derive(Debug, Default)]
pub struct Interims(RefCell<Vec<Interim>>);

impl Interims {
    /// Adds one at the end. There is a bound on how many an upstream may send (docs/limits.md).
    pub fn push(&self, interim: Interim) {
        self.0.borrow_mut().push(interim);
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Takes all that wait, in their order.
    pub fn take(&self) -> Vec<Interim> {
        self.0.take()
    }
}
