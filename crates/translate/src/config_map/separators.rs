//! Lists whose items may be nearly any text: one that was written with another separator is a single item, which no
//! request has.

use crate::settings::{About, Items, Settings, parse, quote};
use model::Severity;

/// Notes every item of these keys that looks like several ones.
pub(super) fn check<'k>(settings: &mut Settings<'_>, keys: impl Iterator<Item = &'k About>) {
    let Some((_, data)) = settings.scope().config_map else { return };
    for about in keys {
        let (Some(name), Some(items)) = (about.in_config_map(), about.items) else { continue };
        let Some(text) = data.get(name) else { continue };
        // None of these lists has an item that cannot be read.
        for item in parse::list(text).unwrap_or_default() {
            let Some(meant) = among(items, &item) else { continue };
            let message = format!(
                "{} is one item, as commas alone separate: write {} if several are meant",
                quote(&item),
                quote(&meant.join(","))
            );
            settings.note(name, Severity::Warning, message);
        }
    }
}

/// The items that an item was meant to be, if it looks like several.
fn among(items: Items, item: &str) -> Option<Vec<&str>> {
    let is_expression = item.starts_with('~');
    let split = |c: char| c == ';' || c.is_whitespace() && items != Items::Values;
    let parts = item.split(split).filter(|part| !part.is_empty());
    let looks_like_one = |part: &&str| match items {
        Items::Paths => part.starts_with('/'),
        Items::Names => part.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
        Items::Values => !part.contains([' ', '(', ')']),
    };
    let parts: Vec<&str> = parts.collect();
    let several = parts.len() > 1 && !is_expression && parts.iter().all(looks_like_one);
    several.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::{Items, among};

    #[test]
    fn what_looks_like_several_items_is_told_from_one() {
        assert_eq!(among(Items::Paths, "/a;/b"), Some(vec!["/a", "/b"]));
        assert_eq!(among(Items::Paths, "/a /b"), Some(vec!["/a", "/b"]));
        assert_eq!(among(Items::Names, "X-A; X-B"), Some(vec!["X-A", "X-B"]));
        assert_eq!(among(Items::Values, "curl;wget"), Some(vec!["curl", "wget"]));
        for path in ["/a", "/a;v=1/b", "/my file", "~^/a;/b"] {
            assert_eq!(among(Items::Paths, path), None, "{path}");
        }
        for word in ["load_module", ";", "root;", "}"] {
            assert_eq!(among(Items::Names, word), None, "{word}");
        }
        for agent in ["Mozilla/5.0 (X11; Linux)", "~*bot;crawler", "a b"] {
            assert_eq!(among(Items::Values, agent), None, "{agent}");
        }
    }
}
