//! A user's mistake as a value: the same list feeds Events, admission, logs, metrics and `fairway check`.

use crate::{Origin, hide_in_sentence};
use serde::Serialize;
use std::fmt::{self, Write};
use std::ops::Deref;

/// How much a problem takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Severity {
    /// Accepted, but without the effect that the user may expect.
    Notice,
    /// A value was replaced by its default, or a part was left out.
    Warning,
    /// Something asked for is not served (or is denied).
    Error,
}

impl Severity {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// A mistake in one object: which one, which key, what is wrong and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Problem {
    /// The object that has to change.
    pub origin: Origin,
    /// The annotation, ConfigMap key or field, where there is one.
    pub key: Option<String>,
    /// How much it takes away.
    pub severity: Severity,
    /// What is wrong and the remedy, in one sentence without a final dot.
    pub message: Message,
}

/// Of which sort a problem is, for whoever judges objects by their problems: the sentence quotes values that may hold
/// any words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// ingress-nginx does not take it, either: what is refused for it is refused by both.
    NotTaken,
    /// The controller's ConfigMap does not allow it, to either; where that was not read, nobody knows.
    NotAllowed,
    /// ingress-nginx took it, or passed it over: what is refused for it is refused by Fairway alone, and what is not
    /// refused differs.
    TookIt,
    /// Nobody knows whether ingress-nginx refused it.
    Unknown,
    /// It concerns what another namespace owns, and ingress-nginx asked nobody: what is served without it differs.
    OtherNamespace,
    /// Only the nginx engine can do it.
    NeedsNginx,
    /// A mistake in the ConfigMap for which every location answers 503.
    AllClosed,
    /// An object that it names is not there.
    Absent,
    /// A rule or path that is not there for it.
    LeftOut,
    /// A canary beside which nobody stands, or nobody who can have one.
    InVain,
    /// There is no `--default-backend-service` to answer, which a flag of ingress-nginx may name.
    NobodyAnswers,
}

impl Why {
    /// The sentence of a problem of this sort.
    pub fn says(self, sentence: impl AsRef<str>) -> Message {
        Message::from(sentence).because(self)
    }
}

/// What is wrong: text that may quote values of objects, without what opens a door in them, and where somebody asks, of
/// which sort that is. There is no other way to make one than through `From`, which hides it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Message {
    text: String,
    #[serde(skip)]
    why: Option<Why>,
}

impl Message {
    /// The same of a sort, or of none.
    #[must_use]
    pub fn because(self, why: impl Into<Option<Why>>) -> Self {
        Self { why: why.into(), ..self }
    }

    /// A sentence around this one, of the same sort.
    #[must_use]
    pub fn within(&self, sentence: String) -> Self {
        Self::from(sentence).because(self.why)
    }

    /// Of which sort the problem is.
    pub fn why(&self) -> Option<Why> {
        self.why
    }
}

impl<T: AsRef<str>> From<T> for Message {
    fn from(text: T) -> Self {
        Self { text: hide_in_sentence(text.as_ref()), why: None }
    }
}

impl Deref for Message {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Problem {
    /// Whether it is of a sort.
    pub fn is(&self, why: Why) -> bool {
        self.message.why == Some(why)
    }
}

impl fmt::Display for Problem {
    /// One line: whatever text of an object is in it, no character ends the line or moves a terminal's cursor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = OneLine(f);
        match &self.key {
            Some(key) => write!(line, "{}: {key}: {}", self.origin, self.message),
            None => write!(line, "{}: {}", self.origin, self.message),
        }
    }
}

/// A text of somebody's object as one line, as problems print it: the one way of such texts to a terminal, a log or a
/// report.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        OneLine(f).write_str(self.0)
    }
}

/// Writes control characters, separators of lines, marks of direction and what is not seen as escapes.
struct OneLine<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_unprintable) {
            self.0.write_str(&rest[..at])?;
            let mut characters = rest[at..].chars();
            if let Some(character) = characters.next() {
                write!(self.0, "{}", character.escape_unicode())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

/// Whether a character ends a line, moves a terminal's cursor, turns the direction of what is read, or is not seen at
/// all (what Unicode calls default ignorable, and marks of annotations).
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::{Problem, Severity};
    use crate::{Kind, Origin};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_problem_prints_a_control_character(
            name in any::<String>(), key in any::<Option<String>>(), message in any::<String>(),
        ) {
            let origin = Origin::new(Kind::File, "", name);
            let message = format!("{message}\n2026-01-01T00:00:00Z ERROR\u{1b}[2J\u{202e}").into();
            let problem = Problem { origin, key, severity: Severity::Error, message };
            let line = problem.to_string();
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            prop_assert!(line.contains("\\u{a}2026") && line.ends_with("ERROR\\u{1b}[2J\\u{202e}"), "{line:?}");
        }
    }
}
