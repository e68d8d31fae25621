//! What can go wrong with a request. Each error answers: what is the client told, who is to blame, may it be
//! tried again.

use http::StatusCode;
use model::Location;
use upstream::{CallError, TryError};
use wire::BodyError;
use wire::http2::LONGEST_HEAD;

/// Why a request has no answer of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The path is not one.
    #[error("the path is not valid: {0}")]
    BadPath(route::path::BadPath),
    /// The body is larger than the location takes (`proxy-body-size`).
    #[error("the body is larger than proxy-body-size allows")]
    BodyTooLarge,
    /// The location is closed by configuration.
    #[error("denied: {0}")]
    Denied(String),
    /// A route names a backend in vain.
    #[error("the backend of the route cannot be had: {0}")]
    Broken(String),
    /// Nobody is there to answer.
    #[error("{0}")]
    NoEndpoints(String),
    /// All endpoints that a session may have were tried.
    #[error("upstream {0} has no endpoint left that was not tried")]
    NoPeerLeft(model::UpstreamId),
    /// The client's body did not arrive.
    #[error("reading the request body: {0}")]
    RequestBody(BodyError),
    /// All tries failed; this is the last one.
    #[error("{0}")]
    Upstream(TryError),
    /// An upstream sends the request on to where it cannot go.
    #[error("the X-Accel-Redirect of the upstream {0}")]
    Onward(&'static str),
    /// What upstreams that send requests on leave has no room for more.
    #[error(
        "what upstreams leave that send requests on with X-Accel-Redirect holds as much memory as it may (docs/limits.md)"
    )]
    OnwardHolds,
    /// A head of an answer that is longer than one over HTTP/2 may be.
    #[error(
        "the head of the answer has {0} bytes, and {most}k at most go over HTTP/2: send fewer or shorter fields",
        most = LONGEST_HEAD >> 10
    )]
    LongHead(usize),
    /// The rewritten path is not one.
    #[error("the rewritten path is not valid: {0}")]
    BadRewrite(route::path::BadPath),
    /// The rewritten path has dot segments that nothing but the request has brought there.
    #[error(
        "the rewritten path has dot segments: the guards of its location were not asked about where they lead"
    )]
    LeadsOut,
    /// Nobody knows where it leads, or as what.
    #[error("the regular expressions of {0} take more steps than a request may")]
    TooHard(String),
    /// A text of an Ingress is too long with the values of its variables.
    #[error(
        "a text of {0} is longer than 64k with the values of its variables, or all of them take more than a request may"
    )]
    TextTooLong(String),
    /// A program or a text of a snippet exceeds its bounds.
    #[error("the snippets of host {0} take more steps, or make longer texts, than a request may")]
    SnippetTooHard(String),
    /// What programs of snippets hold of all requests has no room for more.
    #[error(
        "the snippets of host {0} and others hold as much memory of requests under way as they may"
    )]
    SnippetsHoldAll(String),
    /// An `error_page` leads to no location, or in circles.
    #[error("the error_page {0} leads to no location, or was one too many for this request")]
    LedNowhere(String),
    /// A snippet names an upstream that is not there.
    #[error("$proxy_upstream_name is {0:?}, which is no upstream")]
    NotItsUpstream(String),
    /// A location of a snippet names no upstream that is there: ingress-nginx then connects to nobody.
    #[error("$proxy_upstream_name of a snippet's location is {0:?}, which is no upstream")]
    NoUpstreamOfOwn(String),
    /// Too many passwords are waiting to be verified.
    #[error("too many passwords are waiting to be verified")]
    PasswordsBusy,
    /// The authenticator said neither yes nor no.
    #[error("asking the authenticator: {0}")]
    Authenticator(String),
}

/// Who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The client.
    Client,
    /// The upstream.
    Upstream,
    /// Fairway, or who configured it.
    Proxy,
}

fn owner(location: &Location) -> String {
    location.origin.as_deref().map(|origin| format!(" of {origin}")).unwrap_or_default()
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NoEndpoints(what) => Self::NoEndpoints(what),
            CallError::Failed(error) => Self::Upstream(error),
        }
    }
}

impl Error {
    /// The patterns that a request met, up to those of this location, are too hard.
    pub(crate) fn too_hard(host: &str, location: &Location) -> Self {
        let owner = owner(location);
        Self::TooHard(format!("host {host} up to path {:?}{owner}", location.path))
    }

    /// A text that this location asks for.
    pub(crate) fn text_too_long(host: &str, location: &Location) -> Self {
        Self::TextTooLong(format!("host {host}, path {:?}{}", location.path, owner(location)))
    }

    /// What the client is told.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::BadPath(_) | Self::LeadsOut => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Denied(_)
            | Self::NoEndpoints(_)
            | Self::NotItsUpstream(_)
            | Self::SnippetsHoldAll(_)
            | Self::PasswordsBusy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Upstream(error) if error.is_shortage() => StatusCode::SERVICE_UNAVAILABLE,
            Self::RequestBody(error) | Self::Upstream(TryError::RequestBody(error)) => {
                match error {
                    BodyError::Malformed | BodyError::Aborted => StatusCode::BAD_REQUEST,
                    BodyError::Timeout => StatusCode::REQUEST_TIMEOUT,
                    BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                    BodyError::Storage => StatusCode::INTERNAL_SERVER_ERROR,
                    BodyError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
                }
            }
            Self::Upstream(TryError::Timeout(_)) => StatusCode::GATEWAY_TIMEOUT,
            Self::Upstream(TryError::Loop) => StatusCode::LOOP_DETECTED,
            Self::Upstream(_)
            | Self::NoPeerLeft(_)
            | Self::NoUpstreamOfOwn(_)
            | Self::OnwardHolds
            | Self::LongHead(_) => StatusCode::BAD_GATEWAY,
            Self::BadRewrite(_)
            | Self::TooHard(_)
            | Self::TextTooLong(_)
            | Self::SnippetTooHard(_)
            | Self::LedNowhere(_)
            | Self::Authenticator(_)
            | Self::Broken(_)
            | Self::Onward(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Who is to blame.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::RequestBody(BodyError::Storage | BodyError::NoRoom)
            | Self::BadRewrite(_)
            | Self::Broken(_)
            | Self::Denied(_) => Blame::Proxy,
            Self::PasswordsBusy
            | Self::SnippetsHoldAll(_)
            | Self::TooHard(_)
            | Self::TextTooLong(_)
            | Self::SnippetTooHard(_) => Blame::Proxy,
            Self::LedNowhere(_) | Self::NotItsUpstream(_) | Self::NoUpstreamOfOwn(_) => {
                Blame::Proxy
            }
            Self::Upstream(error) if error.is_shortage() => Blame::Proxy,
            Self::BadPath(_) | Self::LeadsOut | Self::BodyTooLarge | Self::RequestBody(_) => {
                Blame::Client
            }
            Self::Upstream(TryError::RequestBody(_)) => Blame::Client,
            Self::NoEndpoints(_)
            | Self::NoPeerLeft(_)
            | Self::Authenticator(_)
            | Self::Onward(_)
            | Self::OnwardHolds
            | Self::LongHead(_)
            | Self::Upstream(_) => Blame::Upstream,
        }
    }

    /// Whether the client's connection is of no use afterwards.
    pub(crate) fn closes(&self) -> bool {
        matches!(
            self,
            Self::BadPath(_)
                | Self::BodyTooLarge
                | Self::TooHard(_)
                | Self::RequestBody(_)
                | Self::Upstream(TryError::RequestBody(_))
        )
    }

    /// How loud the error log says it.
    pub(crate) fn level(&self) -> tracing::Level {
        match self.blame() {
            Blame::Client => tracing::Level::DEBUG,
            Blame::Upstream => tracing::Level::ERROR,
            Blame::Proxy => tracing::Level::WARN,
        }
    }
}
