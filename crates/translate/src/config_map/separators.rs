//! Lists whose items may be nearly any text: one that was written with another separator is a single item, which no
//! request has.

use crate::settings::{Settings, parse, quote};
use model::Severity;

/// What items of a list look like.
#[derive(Clone, Copy)]
enum Items {
    /// They begin with a slash.
    Paths,
    /// Names, without spaces.
    Names,
    /// Values of headers, in which spaces and semicolons are usual: only words joined by `;` are conspicuous.
    Values,
}

/// Lists of the ConfigMap whose items are separated by commas, and by nothing else.
const LISTS: [(&str, Items); 7] = [
    ("annotation-value-word-blocklist", Items::Names),
    ("block-referers", Items::Values),
    ("block-user-agents", Items::Values),
    ("global-allowed-response-headers", Items::Names),
    ("no-auth-locations", Items::Paths),
    ("no-tls-redirect-locations", Items::Paths),
    ("skip-access-log-urls", Items::Paths),
];

/// Notes every item that looks like several ones.
pub(super) fn check(settings: &mut Settings<'_>) {
    let Some((_, data)) = settings.scope().config_map else { return };
    for (name, items) in LISTS {
        let Some(text) = data.get(name) else { continue };
        // None of these lists has an item that cannot be read.
        for item in parse::list(text).unwrap_or_default() {
            let Some(meant) = items.among(&item) else { continue };
            let message = format!(
                "{} is one item, as commas alone separate: write {} if several are meant",
                quote(&item),
                quote(&meant.join(","))
            );
            settings.note(name, Severity::Warning, message);
        }
    }
}

impl Items {
    /// The items that an item was meant to be, if it looks like several.
    fn among(self, item: &str) -> Option<Vec<&str>> {
        let is_expression = item.starts_with('~');
        let split = |c: char| c == ';' || c.is_whitespace() && !matches!(self, Self::Values);
        let parts = item.split(split).filter(|part| !part.is_empty());
        let looks_like_one = |part: &&str| match self {
            Self::Paths => part.starts_with('/'),
            Self::Names => part.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
            Self::Values => !part.contains([' ', '(', ')']),
        };
        let parts: Vec<&str> = parts.collect();
        let several = parts.len() > 1 && !is_expression && parts.iter().all(looks_like_one);
        several.then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::{Items, LISTS};
    use crate::config_map::keys;

    #[test]
    fn what_looks_like_several_items_is_told_from_one() {
        assert_eq!(Items::Paths.among("/a;/b"), Some(vec!["/a", "/b"]));
        assert_eq!(Items::Paths.among("/a /b"), Some(vec!["/a", "/b"]));
        assert_eq!(Items::Names.among("X-A; X-B"), Some(vec!["X-A", "X-B"]));
        assert_eq!(Items::Values.among("curl;wget"), Some(vec!["curl", "wget"]));
        for path in ["/a", "/a;v=1/b", "/my file", "~^/a;/b"] {
            assert_eq!(Items::Paths.among(path), None, "{path}");
        }
        for word in ["load_module", ";", "root;", "}"] {
            assert_eq!(Items::Names.among(word), None, "{word}");
        }
        for agent in ["Mozilla/5.0 (X11; Linux)", "~*bot;crawler", "a b"] {
            assert_eq!(Items::Values.among(agent), None, "{agent}");
        }
    }

    #[test]
    fn every_name_is_that_of_a_key() {
        let known: Vec<_> = keys().filter_map(|(_, key)| key.about().in_config_map()).collect();
        assert!(LISTS.iter().all(|(name, _)| known.contains(name)), "{known:?}");
    }
}
