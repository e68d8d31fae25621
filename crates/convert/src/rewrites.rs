//! `rewrite-target` as a URLRewrite, where that can say it.

use crate::paths::{Path, is_plain};
use model::policy::Rewrite;
use model::{Location, Part};
use serde_json::{Value, json};

/// What a rewrite becomes.
pub(crate) enum Rewritten {
    /// Another path, under this match.
    Path { path: Option<Path>, modifier: Option<Value>, note: Option<String> },
    /// A redirect to an address.
    Redirect(String),
    /// Nothing: why.
    Unsaid(String),
}

/// Says a rewrite.
pub(crate) fn rewrite(location: &Location, rewrite: &Rewrite) -> Rewritten {
    if let Some(target) = rewrite.target.literal() {
        return match target {
            _ if rewrite.is_redirect() => Rewritten::Redirect(target.to_owned()),
            _ if !target.starts_with('/') => unsaid("the new path has no slash in front"),
            _ if target.contains(['?', '#']) => unsaid("a URLRewrite changes no query"),
            _ => whole(json!({"type": "ReplaceFullPath", "replaceFullPath": target})),
        };
    }
    let [Part::Text(before), Part::Capture(group)] = rewrite.target.parts() else {
        return unsaid("a URLRewrite has no groups and no variables");
    };
    let path = location.path.as_str();
    let forms = [("(/|$)(.*)", 2, ""), ("/(.*)", 1, "too"), ("(/.*)", 1, "slash")];
    let form = forms.iter().find_map(|(end, last, form)| {
        let prefix = path.strip_suffix(end).filter(|prefix| is_plain(prefix) && last == group)?;
        Some((prefix, *form))
    });
    let Some((prefix, form)) = form else {
        return unsaid(
            "a URLRewrite has no groups; only PATH(/|$)(.*) with /$2 is a prefix that is replaced",
        );
    };
    // With (/.*) the slash is the group's own.
    let is_whole = if form == "slash" { !before.ends_with('/') } else { before.ends_with('/') };
    if !is_whole || !before.is_empty() && !before.starts_with('/') {
        return unsaid("what is put in front of the rest does not end at a slash");
    }
    let to = before.trim_end_matches('/');
    let to = if to.is_empty() { "/" } else { to };
    let from = if prefix.is_empty() { "/" } else { prefix };
    let modifier =
        (from != to).then(|| json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": to}));
    let mut corners = Vec::new();
    if !form.is_empty() && !prefix.is_empty() {
        corners.push(format!(
            "the prefix {prefix} has {prefix} itself, too, which the expression had not"
        ));
    }
    if prefix.contains(|c: char| c.is_ascii_alphabetic()) {
        corners.push(format!(
            "letters of {prefix} have to be as they are written, which the expression took in either case"
        ));
    }
    if modifier.is_some() {
        corners.push("a ? with nothing behind it stays".to_owned());
        corners.push("what is percent-encoded behind it stays so, as in %2F".to_owned());
    }
    let note = (!corners.is_empty()).then(|| corners.join("; "));
    Rewritten::Path { path: Some(Path::Prefix(from.to_owned())), modifier, note }
}

fn unsaid(why: &str) -> Rewritten {
    Rewritten::Unsaid(why.to_owned())
}

fn whole(modifier: Value) -> Rewritten {
    Rewritten::Path { path: None, modifier: Some(modifier), note: None }
}
