//! What the log says of a kind that cannot be followed: what is missing, and where it is mended.

use super::Once;
use objects::{Kind, ObjectKey};

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
