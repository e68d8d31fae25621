//! Names that say what is in something.

use aws_lc_rs::digest::{SHA256, digest};
use std::fmt::Write;

/// A short name for some bytes: 24 hexadecimal digits that nobody finds a second time.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref()[..12].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
