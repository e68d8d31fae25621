//! What identifies a span: its trace, itself, and whether it is recorded.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

/// The number of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(NonZeroU128);

/// The number of a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(NonZeroU64);

/// A span as others are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its trace.
    pub trace: TraceId,
    /// Itself.
    pub span: SpanId,
    /// Whether it is recorded.
    pub sampled: bool,
}

impl TraceId {
    /// A trace with this number; zero is none.
    pub fn new(number: u128) -> Option<Self> {
        NonZeroU128::new(number).map(Self)
    }

    /// A trace with a number drawn by chance; the one in 2^128 that is none counts as the next.
    pub fn drawn(number: u128) -> Self {
        Self(NonZeroU128::new(number).unwrap_or(NonZeroU128::MIN))
    }

    /// Its number.
    pub fn number(self) -> u128 {
        self.0.get()
    }

    /// The half that formats of 64 bits know.
    pub fn low(self) -> u64 {
        self.number() as u64
    }

    /// The other half.
    pub fn high(self) -> u64 {
        (self.number() >> 64) as u64
    }
}

impl SpanId {
    /// A span with this number; zero is none.
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// A span with a number drawn by chance; the one in 2^64 that is none counts as the next.
    pub fn drawn(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0.get()
    }
}

impl From<NonZeroU64> for SpanId {
    fn from(number: NonZeroU64) -> Self {
        Self(number)
    }
}

impl From<SpanId> for NonZeroU64 {
    fn from(SpanId(number): SpanId) -> Self {
        number
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.number())
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.number())
    }
}
