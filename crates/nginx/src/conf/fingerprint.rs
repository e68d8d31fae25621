//! Names that say what is in something.

use aws_lc_rs::digest::{SHA256, digest};

/// A short name for some bytes: 24 hexadecimal digits that nobody finds a second time.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    hex::encode(&digest(&SHA256, bytes).as_ref()[..12])
}
