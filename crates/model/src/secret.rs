//! Values that may open a door: they are used as they are, and shown by no serialisation, log line or panic. What is
//! hidden is a matter of the type, never of a name.

use crate::{Part, Template};
use serde::{Serialize, Serializer};
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

/// What stands for what is not shown.
const HIDDEN: &str = "…";

thread_local! {
    static REVEALED: Cell<bool> = const { Cell::new(false) };
}

/// Lets what is written by this thread within `make` tell everything: for numbers that tell Configurations apart, and
/// for tests. What it makes must not leave the process as text.
pub fn revealed<T>(make: impl FnOnce() -> T) -> T {
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            REVEALED.set(self.0);
        }
    }
    let _restored = Restored(REVEALED.replace(true));
    make()
}

/// Whether this thread tells everything now.
pub(crate) fn is_revealed() -> bool {
    REVEALED.get()
}

/// What may be shown of a value, and the whole of it.
pub trait Shown {
    /// What may be shown.
    fn shown(&self) -> String;
    /// All of it.
    fn whole(&self) -> String;
}

impl Shown for String {
    fn shown(&self) -> String {
        hidden(self).to_owned()
    }

    fn whole(&self) -> String {
        self.clone()
    }
}

impl Shown for Template {
    /// Variables say whose value is used; everything between them may be a secret.
    fn shown(&self) -> String {
        let parts = self.parts().iter().map(|part| match part {
            Part::Text(text) => hidden(text).to_owned(),
            part => Self::from_parts(vec![part.clone()]).to_string(),
        });
        parts.collect()
    }

    fn whole(&self) -> String {
        self.to_string()
    }
}

/// What stands for a text: nothing for none.
pub(crate) fn hidden(text: &str) -> &'static str {
    if text.is_empty() { "" } else { HIDDEN }
}

/// A value that may be a secret: that of a header field, a parameter, raw configuration. It is read through `Deref`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret<T>(T);

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Shown> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if is_revealed() { self.0.whole() } else { self.0.shown() };
        fmt::Debug::fmt(&text, f)
    }
}

impl<T: Shown> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = if is_revealed() { self.0.whole() } else { self.0.shown() };
        serializer.serialize_str(&text)
    }
}

/// A URL with variables, or the authority or the target of one. User, password, the values of its query and its
/// fragment are not shown. It is read through `Deref`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UrlText(Template);

impl From<Template> for UrlText {
    fn from(template: Template) -> Self {
        Self(template)
    }
}

impl Deref for UrlText {
    type Target = Template;

    fn deref(&self) -> &Template {
        &self.0
    }
}

impl fmt::Debug for UrlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl Serialize for UrlText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl UrlText {
    fn text(&self) -> String {
        let whole = self.0.to_string();
        if is_revealed() { whole } else { hide_in_url(&whole) }
    }
}

/// A URL, or the authority or the target of one, without what opens a door.
pub fn hide_in_url(url: &str) -> String {
    let start = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |end| start + end);
    let mut text = url[..start].to_owned();
    match url[start..end].rsplit_once('@') {
        Some((_, host)) => text.extend([HIDDEN, "@", host]),
        None => text.push_str(&url[start..end]),
    }
    let (rest, fragment) = cut(&url[end..], '#');
    let (path, query) = cut(rest, '?');
    text.push_str(path);
    if let Some(query) = query {
        text.push('?');
        let arguments = query.split('&').map(argument).collect::<Vec<_>>();
        text.push_str(&arguments.join("&"));
    }
    if let Some(fragment) = fragment {
        text.push('#');
        text.push_str(hidden(fragment));
    }
    text
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// An argument of a query: its name, and of its value the variables alone.
fn argument(argument: &str) -> String {
    match argument.split_once('=') {
        Some((name, value)) => format!("{name}={}", variables_of(value)),
        None => variables_of(argument),
    }
}

/// A text whose variables are shown and nothing else.
fn variables_of(text: &str) -> String {
    match Template::parse(text) {
        Ok(template) => template.shown(),
        Err(_) => hidden(text).to_owned(),
    }
}

/// A sentence without what opens a door in the URLs that it quotes, and without what stands before an `@` like a user
/// and a password.
pub fn hide_in_sentence(sentence: &str) -> String {
    if !sentence.contains(['@', '?', '#']) {
        return sentence.to_owned();
    }
    let ends = |character: char| character.is_whitespace() || "\"'`,;()<>".contains(character);
    sentence.split_inclusive(ends).map(word).collect()
}

fn word(word: &str) -> String {
    let is_url = word.contains("://");
    let is_login = word.split_once('@').is_some_and(|(before, _)| {
        before.rsplit('/').next().is_some_and(|before| before.contains(':'))
    });
    if !is_url && !is_login {
        return word.to_owned();
    }
    let bare = word.trim_end_matches(|character: char| {
        character.is_whitespace() || "\"'`,;()<>".contains(character)
    });
    format!("{}{}", hide_in_url(bare), &word[bare.len()..])
}

#[cfg(test)]
mod tests {
    use super::{Secret, UrlText, hide_in_sentence, hide_in_url, revealed};
    use crate::Template;

    fn template(text: &str) -> Template {
        Template::parse(text).expect("known variables")
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is its test")]
    fn of_a_value_only_its_variables_are_shown_and_all_of_it_counts() {
        let value = Secret::from(template("Bearer k1 ${cookie_x}"));
        assert_eq!(format!("{value:?}"), "\"…${cookie_x}\"");
        assert_ne!(value, Secret::from(template("Bearer k2 ${cookie_x}")));
        assert_eq!(value.to_string(), "Bearer k1 ${cookie_x}", "whoever uses it sees it");
        assert_eq!(format!("{:?}", Secret::from(String::new())), "\"\"");
        assert_eq!(revealed(|| format!("{value:?}")), "\"Bearer k1 ${cookie_x}\"");
        assert_eq!(format!("{value:?}"), "\"…${cookie_x}\"", "and it is over again");
    }

    #[test]
    fn of_a_url_host_and_path_are_shown() {
        for (url, shown) in [
            (
                "https://me:word@a.test/in?k=v&rd=${uri}&flag#part",
                "https://…@a.test/in?k=…&rd=${uri}&…#…",
            ),
            ("https://a:b@c@d.test", "https://…@d.test"),
            ("me:word@a.test:80", "…@a.test:80"),
            ("a.test", "a.test"),
            ("/check?t=abc", "/check?t=…"),
            ("/a@b/c", "/a@b/c"),
            ("", ""),
        ] {
            assert_eq!(hide_in_url(url), shown, "{url}");
            assert_eq!(format!("{:?}", UrlText::from(template(url))), format!("{shown:?}"));
        }
    }

    #[test]
    fn a_sentence_keeps_its_words() {
        for (sentence, shown) in [
            (
                "\"http://me:word@a.test/?t=1\" has no host: write",
                "\"http://…@a.test/?t=…\" has no host: write",
            ),
            ("\"me:word@a.test/x\" starts with neither", "\"…@a.test/x\" starts with neither"),
            ("\"^/user@[^/]+$\" is what? a@b", "\"^/user@[^/]+$\" is what? a@b"),
            (
                "write a URL such as http://auth.demo.svc/check",
                "write a URL such as http://auth.demo.svc/check",
            ),
        ] {
            assert_eq!(hide_in_sentence(sentence), shown);
        }
    }
}
