//! Names that lead to a server besides its own (`server-alias`), as ngx_http_core_module reads `server_name`.

use crate::{Pattern, PatternError, ServerName};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Another name of a server. Exact names go first, then the longest of [`Alias::Below`], then the longest of
/// [`Alias::Beginning`], then patterns in the order of their servers (compat/behaviour.md section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alias {
    /// The name itself.
    Name(ServerName),
    /// `*.parent`: every name below `parent`, at any depth.
    Below(Arc<str>),
    /// `start.*`: every name that begins with `start` and a dot.
    Beginning(Arc<str>),
    /// `~pattern`: every name in which it matches somewhere.
    Pattern(Pattern),
}

impl Alias {
    /// Whether [`Alias::parse`] would read the text, but for how much a pattern takes: costs time by the length of the
    /// text.
    pub fn check(text: &str) -> Result<(), String> {
        match text.strip_prefix('~').filter(|source| !source.is_empty()) {
            Some(source) => Pattern::check(source).map_err(no_pattern),
            None => Self::parse(text).map(drop),
        }
    }

    /// Reads one item of `server-alias`; `.name` means the name and every name below it, hence the list. The error
    /// completes a sentence about the item.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        if let Some(source) = text.strip_prefix('~') {
            if source.is_empty() {
                return Err("has no regular expression after the ~".to_owned());
            }
            // A host is compared in lower case, so the case of letters in the pattern cannot matter.
            let pattern = Pattern::new(source, true).map_err(no_pattern)?;
            return Ok(vec![Self::Pattern(pattern)]);
        }
        let text = text.to_ascii_lowercase();
        let stars = text.matches('*').count();
        let is_odd = text.is_empty() || text == "." || text.contains("..") || stars > 1;
        let named = match () {
            () if is_odd => None,
            () if stars == 0 => Some(match text.strip_prefix('.') {
                Some(parent) => {
                    vec![Self::Name(ServerName::new(parent)), Self::Below(parent.into())]
                }
                None => vec![Self::Name(ServerName::new(text.as_str()))],
            }),
            () => {
                let below = text.strip_prefix("*.").map(|parent| Self::Below(parent.into()));
                let beginning =
                    || text.strip_suffix(".*").map(|start| Self::Beginning(start.into()));
                below.or_else(beginning).filter(|_| text.len() > 2).map(|alias| vec![alias])
            }
        };
        named.ok_or_else(|| {
            "is no name of a host: write www.shop.example, *.shop.example, shop.* or ~ and a regular expression".to_owned()
        })
    }
}

fn no_pattern(error: PatternError) -> String {
    format!("is no regular expression ({})", error.reason)
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Below(parent) => write!(f, "*.{parent}"),
            Self::Beginning(start) => write!(f, "{start}.*"),
            Self::Pattern(pattern) => write!(f, "~{}", pattern.source()),
        }
    }
}

impl Serialize for Alias {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Alias;

    fn read(text: &str) -> Vec<String> {
        let aliases = Alias::parse(text).unwrap_or_default();
        aliases.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_wildcards_and_patterns_are_told_apart() {
        assert_eq!(read("Shop.test"), ["shop.test"]);
        assert_eq!(read("*.shop.test"), ["*.shop.test"]);
        assert_eq!(read("shop.*"), ["shop.*"]);
        assert_eq!(read(".shop.test"), ["shop.test", "*.shop.test"]);
        assert_eq!(read(r"~^a\d+\.test$"), [r"~^a\d+\.test$"]);
        assert_eq!(read("shop.test:8080"), ["shop.test:8080"]);
    }

    #[test]
    fn what_nginx_takes_for_no_name_is_refused() {
        for text in ["", ".", "*", "*.", ".*", "a.*.b", "*.a.*", "a*", "*a.test", "a..b", "~", "~["]
        {
            assert!(Alias::parse(text).is_err() && Alias::check(text).is_err(), "{text}");
        }
    }
}
