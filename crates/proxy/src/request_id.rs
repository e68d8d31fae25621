//! The id of a request.

use bytes::Bytes;
use std::ops::Deref;

/// `X-Request-ID` as passed on; empty where there is none.
#[derive(Clone, Debug)]
pub(crate) enum RequestId {
    /// Somebody's.
    Given(Bytes),
    /// 32 hexadecimal digits of our own, which take no memory and no look at what they are.
    Own([u8; 32]),
}

impl Default for RequestId {
    fn default() -> Self {
        Self::Given(Bytes::new())
    }
}

impl From<Bytes> for RequestId {
    fn from(given: Bytes) -> Self {
        Self::Given(given)
    }
}

impl Deref for RequestId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Given(given) => given,
            Self::Own(digits) => digits,
        }
    }
}
