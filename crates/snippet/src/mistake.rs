//! What is wrong with a snippet, and where.

use crate::Position;
use std::fmt;

/// Why a snippet is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx would refuse it too, or it asks for what nobody may have.
    Refused,
    /// nginx would take it; it takes an nginx to do it.
    NeedsNginx,
}

/// One thing that is wrong with a snippet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    /// Where.
    pub at: Position,
    /// Of what kind.
    pub kind: Kind,
    /// What is wrong, and how to mend it.
    pub text: String,
}

impl Mistake {
    pub(crate) fn refused(at: Position, text: impl Into<String>) -> Self {
        Self { at, kind: Kind::Refused, text: text.into() }
    }

    pub(crate) fn needs_nginx(at: Position, text: impl Into<String>) -> Self {
        Self { at, kind: Kind::NeedsNginx, text: text.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nginx = match self.kind {
            Kind::Refused => "",
            Kind::NeedsNginx => "needs nginx: ",
        };
        write!(f, "{}: {nginx}{}", self.at, self.text)
    }
}

/// Text shortened for a message.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    model::beginning(text, MOST).into_owned()
}

/// Bytes of a name for which a hint is looked for: a comparison takes time by the product of both.
const HINTED: usize = 40;

/// Names that are compared for a hint.
const COMPARED: usize = 500;

/// `, did you mean "…"?` for the closest of `known`, if one is close.
pub(crate) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let most = name.len() / 3;
    if name.len() > HINTED {
        return String::new();
    }
    let known = known.filter(|known| known.len().abs_diff(name.len()) <= most).take(COMPARED);
    let closest = known.map(|known| (strsim::damerau_levenshtein(name, known), known)).min();
    match closest {
        Some((distance, known)) if distance <= most => {
            format!(", did you mean \"{known}\"?")
        }
        _ => String::new(),
    }
}
