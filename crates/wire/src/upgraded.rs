//! Connections that stopped being HTTP.

use crate::Loan;
use crate::io::Io;
use bytes::BytesMut;
use std::time::Duration;

/// A connection that stopped being HTTP.
#[derive(Debug)]
pub struct Upgraded {
    /// The bytes' way.
    pub io: Io,
    /// What came after the head.
    pub buffer: BytesMut,
    /// How long it may be silent in both directions (`proxy-read-timeout`).
    pub idle: Duration,
    /// Its place among the connections towards upstreams, which it keeps.
    pub place: Loan,
}
