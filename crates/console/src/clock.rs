//! What time it is, as answers tell it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in seconds since 1970.
pub(crate) fn seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
