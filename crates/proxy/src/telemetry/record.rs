//! What there is to know about a span that is over.

use super::context::{Context, SpanId};
use std::time::Duration;

/// Bytes of a text in a span; the rest is cut off.
const LONGEST: usize = 1024;

/// A span that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Itself.
    pub context: Context,
    /// The span that asked.
    pub parent: Option<SpanId>,
    /// Whether that one is of another process.
    pub remote_parent: bool,
    /// Which side of a request it is.
    pub kind: Kind,
    /// What was done.
    pub name: String,
    /// When it began, since 1970.
    pub start: Duration,
    /// When it ended, since 1970.
    pub end: Duration,
    /// Whether it failed.
    pub failed: bool,
    /// What else is known.
    pub attributes: Vec<(&'static str, Value)>,
}

/// Which side of a request a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It answers.
    Server,
    /// It asks.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
}

impl Value {
    /// A text that came from outside: valid, and not too long.
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(bounded(bytes))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text.as_bytes())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

/// The beginning of a text that came from outside.
pub(crate) fn bounded(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned();
    // Replacing what is no text makes it longer.
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, bounded};

    #[test]
    fn texts_are_valid_and_bounded() {
        assert_eq!(bounded(b"/a?b=c"), "/a?b=c");
        assert_eq!(bounded(b"a\xff"), "a\u{fffd}");
        assert_eq!(bounded(&[b'x'; 5000]).len(), LONGEST);
        let invalid = bounded(&[0xff; 5000]);
        assert!(invalid.len() <= LONGEST && invalid.ends_with('\u{fffd}'));
    }
}
