//! A path of an Ingress as a match of a route.

use model::{Location, PathKind, Server};
use serde_json::{Value, json};

/// A path as a match has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Exact(String),
    Prefix(String),
    Regex(String),
}

impl Path {
    /// The path of a location, unless a rewrite makes another one of it.
    pub(crate) fn of(server: &Server, location: &Location) -> Self {
        let path = location.path.as_str();
        match location.kind {
            _ if server.regex && path == "/" => Self::Prefix("/".to_owned()),
            _ if server.regex => Self::beginning(path),
            PathKind::Exact => Self::Exact(path.to_owned()),
            PathKind::Prefix => Self::Prefix(path.to_owned()),
        }
    }

    /// Whatever begins with a match of an expression, in any case of letters: a route's expression matches the whole
    /// path. Each is written alike, so that of two the longer one stays the longer one, which is asked first.
    pub(crate) fn beginning(source: &str) -> Self {
        Self::Regex(format!("(?i)(?:{source}).*"))
    }

    pub(crate) fn value(&self) -> Value {
        let (kind, value) = match self {
            Self::Exact(value) => ("Exact", value),
            Self::Prefix(value) => ("PathPrefix", value),
            Self::Regex(value) => ("RegularExpression", value),
        };
        json!({"type": kind, "value": value})
    }

    /// Bytes of it as it is written: of two the longer one is asked first.
    pub(crate) fn length(&self) -> usize {
        let (Self::Exact(text) | Self::Prefix(text) | Self::Regex(text)) = self;
        text.len()
    }

    /// Why the API server would refuse it.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        let (Self::Exact(text) | Self::Prefix(text) | Self::Regex(text)) = self;
        let is_odd = |text: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-/._~!$&'()*+,;=:@%".contains(c);
            let steps =
                text.contains("//") || text.split('/').any(|step| step == "." || step == "..");
            let encoded = ["%2f", "%2F"].iter().any(|slash| text.contains(slash));
            !text.chars().all(allowed) || steps || encoded
        };
        match self {
            _ if text.len() > 1024 => Some("a path has 1024 bytes at most"),
            Self::Regex(_) => None,
            _ if !text.starts_with('/') => Some("a path begins with a slash"),
            _ if is_odd(text) => Some("the API server refuses such a path"),
            _ => None,
        }
    }
}

/// Whether a text has nothing but itself to match, a dot aside.
pub(crate) fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-/._~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn expressions_are_written_alike_with_and_without_alternatives() {
        assert_eq!(Path::beginning("/a(/|$)"), Path::Regex("(?i)(?:/a(/|$)).*".to_owned()));
        assert_eq!(Path::beginning("/a|/b"), Path::Regex("(?i)(?:/a|/b).*".to_owned()));
    }

    #[test]
    fn what_the_api_server_refuses_is_known_before() {
        assert!(Path::Prefix("/a".to_owned()).mistake().is_none());
        for odd in ["a", "/a//b", "/a/../b", "/a b", "/a%2fb", "/ä"] {
            assert!(Path::Exact(odd.to_owned()).mistake().is_some(), "{odd}");
        }
    }
}
