//! Where a request of our own goes: the URLs of external authentication, mirrors and the like.

use crate::{UpstreamId, UrlText};
use serde::Serialize;

/// An `http` or `https` URL whose parts may hold variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Url {
    /// Whether it is `https`.
    pub secure: bool,
    /// Host, and port where one is written.
    pub authority: UrlText,
    /// Path and query, as written; empty if the URL ends with its authority.
    pub target: UrlText,
    /// Who is behind the authority; none if it holds variables and is looked up for each request.
    pub upstream: Option<UpstreamId>,
}
