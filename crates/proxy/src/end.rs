//! Where a request ended that was only thought through, in words that outlive the list of phases.

use crate::trace::Phase;

/// Where a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// It is no request that can be read.
    Unread,
    /// A block list.
    Blocks,
    /// Before or at the choice of the location: a path that is none, a closed location, a redirect of the host.
    Location,
    /// An answer to a preflight request.
    Preflight,
    /// A redirect that is configured.
    Redirect,
    /// A snippet.
    Snippet,
    /// The redirect to HTTPS, or a certificate that was asked for.
    HttpsRedirect,
    /// Nobody is there.
    Endpoints,
    /// Rates and connections.
    Limits,
    /// Addresses, passwords, authenticators; or nothing is behind the location.
    Access,
    /// The request's body.
    Body,
    /// An upstream.
    Upstream,
}

impl From<Phase> for End {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Client | Phase::Blocks => Self::Blocks,
            Phase::Location | Phase::AppRoot => Self::Location,
            Phase::Preflight => Self::Preflight,
            Phase::Redirect => Self::Redirect,
            Phase::Rewrite => Self::Snippet,
            Phase::HttpsRedirect => Self::HttpsRedirect,
            Phase::Endpoints => Self::Endpoints,
            Phase::Limits => Self::Limits,
            Phase::Access => Self::Access,
            Phase::Body => Self::Body,
            Phase::Upstream => Self::Upstream,
        }
    }
}
