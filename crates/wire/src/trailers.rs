//! Trailer sections: what may stand in one at all, and what of a request's travels on (RFC 9110 section 6.5).

use super::{Field, Headers, NameSet};
use std::fmt;
use std::sync::Arc;

/// Framing, routing, content: whoever merged such a field into the head would be misled (RFC 9110 section 6.5.1).
const FORBIDDEN: NameSet = NameSet::new(&[
    "content-length",
    "transfer-encoding",
    "host",
    "connection",
    "trailer",
    "te",
    "upgrade",
    "content-encoding",
    "content-type",
    "content-range",
]);

/// Leaves out what no trailer section may carry, of requests and answers alike.
pub fn strip(trailers: &mut Headers) {
    trailers.remove_all(&FORBIDDEN);
}

/// Which trailer fields of a request travel on. Where there is no such rule none does, as with nginx: servers merge
/// trailers into the head, where they would be believed. Only gRPC gives them a meaning.
#[derive(Clone)]
pub struct TrailerRule(Arc<dyn Fn(&Field<'_>) -> bool + Send + Sync>);

impl TrailerRule {
    /// Those that `travels` says yes to.
    pub fn new(travels: impl Fn(&Field<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(travels))
    }

    /// Leaves out what stays here.
    pub fn apply(&self, trailers: &mut Headers) {
        trailers.retain(|field| (self.0)(field));
    }
}

impl fmt::Debug for TrailerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrailerRule")
    }
}
