//! Paths of regular expressions that cannot be asked, and are guarded: what they would have had must not be that of a
//! location behind them that lets others in.

use model::{Backend, Location, fixed_start};
use std::cmp::Reverse;
use std::sync::Arc;

/// A guarded path that is left out, and why.
#[derive(Debug)]
pub(super) struct Shut {
    pub(super) location: Arc<Location>,
    pub(super) reason: String,
}

impl Shut {
    /// One for a path that is left out, if it is guarded.
    pub(super) fn of(location: &Arc<Location>, reason: &str) -> Option<Self> {
        let is_guarded =
            location.policy.is_guarded() || matches!(location.backend, Backend::Denied(_));
        is_guarded.then(|| Self { location: Arc::clone(location), reason: reason.to_owned() })
    }

    /// Whether a location may get requests of this one now whom it would not have let in. It is its namespace's: what
    /// others have is theirs to guard.
    fn opens(&self, other: &Location) -> bool {
        let of = |location: &Location| {
            location.origin.as_ref().map(|origin| Arc::clone(&origin.namespace))
        };
        of(&self.location) == of(other)
            && order(&self.location) < order(other)
            && !matches!(other.backend, Backend::Denied(_))
            && !self.location.policy.is_guarded_as(&other.policy)
            && may_agree(fixed_start(&self.location.path), fixed_start(&other.path))
    }
}

/// Closes the locations that may get requests of those that are left out.
pub(super) fn close(locations: &mut [Arc<Location>], shut: &[Shut]) {
    for location in locations {
        if let Some(shut) = shut.iter().find(|shut| shut.opens(location)) {
            Arc::make_mut(location).backend = Backend::Denied(shut.reason.clone());
        }
    }
}

/// The order in which paths of such a host are tried.
fn order(location: &Location) -> (Reverse<usize>, Reverse<&str>) {
    (Reverse(location.path.len()), Reverse(&location.path))
}

/// Whether a path may begin with both.
fn may_agree(one: &str, other: &str) -> bool {
    let both = one.bytes().zip(other.bytes());
    both.into_iter().all(|(one, other)| one.eq_ignore_ascii_case(&other))
}
