//! Text with variables, and regular expressions with named groups.

use super::Other;
use crate::secret::{Shown, hidden, is_revealed};
use crate::{Pattern, Variable};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// The name of a variable that a snippet declares, in lower case; that of a tenant's has its owner and `/` before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Name(pub Arc<str>);

impl Name {
    /// The name of a tenant's variable, which no other tenant's is equal to.
    pub fn of(owner: &str, name: &Self) -> Self {
        Self(format!("{owner}/{}", name.0).into())
    }

    /// The name as it is written.
    pub fn text(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.text())
    }
}

/// One piece of a [`Template`].
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// A variable of a request that templates of annotations know too.
    Known(Variable),
    /// A variable of a request that only snippets know.
    Other(Other),
    /// A variable that a snippet declares.
    Own(Name),
    /// Group 1 to 9 of the regular expression that matched last.
    Capture(usize),
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.debug_tuple("Text").field(&shown(text)).finish(),
            Self::Known(variable) => f.debug_tuple("Known").field(variable).finish(),
            Self::Other(variable) => f.debug_tuple("Other").field(variable).finish(),
            Self::Own(name) => f.debug_tuple("Own").field(name).finish(),
            Self::Capture(group) => f.debug_tuple("Capture").field(group).finish(),
        }
    }
}

/// What a serialisation and a log line may say of a text: it may be a secret, whatever directive it is for.
fn shown(text: &str) -> &str {
    if is_revealed() { text } else { hidden(text) }
}

/// Text with variables, parsed once. Its texts are shown by `Display` alone, which is for those who use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// In order; no two neighbours are text. Shared, since whatever inherits a text has a copy of it.
    pub pieces: Arc<[Piece]>,
}

impl Template {
    /// The text, if it has no variable.
    pub fn literal(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The same for whoever knows no variables of snippets, if it has none.
    pub fn without_own(&self) -> Option<crate::Template> {
        let parts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(crate::Part::Text(text.clone())),
            Piece::Known(variable) => Some(crate::Part::Variable(variable.clone())),
            Piece::Other(_) | Piece::Own(_) | Piece::Capture(_) => None,
        });
        Some(crate::Template::from_parts(parts.collect::<Option<_>>()?))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Known(variable) => write!(f, "${{{}}}", variable.name()),
            Piece::Other(variable) => write!(f, "${{{}}}", variable.name()),
            Piece::Own(name) => write!(f, "${{{}}}", name.text()),
            Piece::Capture(group) => write!(f, "${group}"),
        })
    }
}

impl Shown for Template {
    fn shown(&self) -> String {
        let shown = |piece: &Piece| match piece {
            Piece::Text(text) => Piece::Text(shown(text).to_owned()),
            piece => piece.clone(),
        };
        Self { pieces: self.pieces.iter().map(shown).collect() }.to_string()
    }

    fn whole(&self) -> String {
        self.to_string()
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

/// A regular expression and the variables that its named groups set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Regex {
    /// The expression, bounded in steps.
    pub pattern: Pattern,
    /// Groups with names.
    pub names: Vec<(usize, Name)>,
}

impl Shown for Regex {
    /// Nothing: what is compared with may be a secret.
    fn shown(&self) -> String {
        hidden(self.pattern.source()).to_owned()
    }

    fn whole(&self) -> String {
        self.pattern.source().to_owned()
    }
}
