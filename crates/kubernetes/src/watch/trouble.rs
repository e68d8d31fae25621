//! What the log says of a kind that cannot be followed: what is missing, and where it is mended.

use super::{Once, forbidden};
use backon::ExponentialBackoff;
use objects::{Kind, ObjectKey};
use std::time::Duration;
use tokio::time::Instant;

/// After that long a watch that is too old is no more of the same trouble.
const HELD: Duration = Duration::from_secs(30);

/// Which right a watch takes.
#[derive(Clone, Debug)]
pub(crate) enum Right {
    /// To the whole kind, in the namespace that is watched or everywhere.
    OfKind,
    /// To one object, which a flag names, and without which all else is served or nothing.
    OfObject { key: ObjectKey, optional: bool },
    /// One that who watches one namespace has not, on purpose; and what is lost without it.
    Spare(&'static str),
}

impl Right {
    /// How it is given.
    fn remedy(&self) -> String {
        match self {
            Self::OfKind | Self::Spare(_) => {
                "allow list and watch of them in the ClusterRole, or where one namespace is watched in the Role there".into()
            }
            Self::OfObject { key: ObjectKey { namespace, name }, optional } => {
                let without = if *optional { "; it counts as absent until then" } else { "" };
                format!(
                    "allow list and watch of {name}, which a flag names, in a Role of namespace {namespace}{without}"
                )
            }
        }
    }
}

/// Whether the definition of a kind is not there, or not yet: whoever asks for that finds out in a moment. The storage
/// of one that was just made is not ready for a moment.
pub(super) fn is_of_definition(code: Option<u16>, reason: &str) -> bool {
    code == Some(404) || code == Some(429) && reason.contains("storage is (re)initializing")
}

/// Tells why a kind is not followed.
pub(super) fn tell(kind: Kind, code: Option<u16>, reason: &str, right: &Right, once: Option<Once>) {
    match (once, right) {
        // The error that ends it says so.
        (Some(Once::Needed), _) if code == Some(403) => {}
        (Some(Once::Optional), _) if code == Some(403) => {
            tracing::warn!(%kind, reason, "cannot list them; what they say is not known");
        }
        (Some(_), _) => tracing::warn!(%kind, reason, "cannot list them; trying again"),
        (None, Right::Spare(lost)) if code == Some(403) => {
            tracing::info!(%kind, "they may not be read, as where one namespace is watched: {lost}");
        }
        (None, _) if code == Some(403) => {
            let remedy = right.remedy();
            tracing::warn!(%kind, reason, "cannot follow the API server; {remedy}; trying again");
        }
        (None, _) => {
            tracing::warn!(%kind, reason, "cannot follow the API server; trying again");
        }
    }
}

/// Watches that are too old to be resumed. After one all is listed at once, since the server is there and says what to
/// do; where that does not help, a list is what it can do without.
#[derive(Debug)]
pub(super) struct Expiry {
    /// When it was gone on with, after the last one.
    since: Option<Instant>,
    pauses: ExponentialBackoff,
    is_told: bool,
}

/// What one more of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expired {
    /// The only one for a while.
    Once,
    /// Listing anew was of no use; whether that was not told yet.
    Again { is_news: bool },
}

impl Expiry {
    pub(super) fn new() -> Self {
        Self { since: None, pauses: forbidden(), is_told: false }
    }

    /// One more, and how long to wait.
    pub(super) fn next(&mut self) -> (Expired, Option<Duration>) {
        let again = self.since.is_some_and(|since| since.elapsed() < HELD);
        if !again {
            *self = Self::new();
        }
        let pause = self.pauses.next();
        let is_news = again && !std::mem::replace(&mut self.is_told, again);
        (if again { Expired::Again { is_news } } else { Expired::Once }, pause)
    }

    /// The pause is over.
    pub(super) fn goes_on(&mut self) {
        self.since = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::{ObjectKey, Right};

    #[test]
    fn who_may_not_read_one_object_is_told_which_and_where() {
        let of = |optional| Right::OfObject { key: ObjectKey::new("fairway", "tcp"), optional };
        let needed =
            "allow list and watch of tcp, which a flag names, in a Role of namespace fairway";
        assert_eq!(of(false).remedy(), needed);
        assert_eq!(of(true).remedy(), format!("{needed}; it counts as absent until then"));
        assert!(Right::OfKind.remedy().contains("ClusterRole"));
    }
}
