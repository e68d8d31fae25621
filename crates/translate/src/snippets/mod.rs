//! Snippets for an engine that does not read nginx's own words: their texts become values, and whatever they name is
//! made sure of. A mistake closes the Ingress that makes it, and nothing else.

mod databases;
mod declared;
mod early;
mod empty;
mod for_all;
mod names;
mod of_ingress;
mod position;
mod renamed;
mod stream;
mod targets;

pub(crate) use databases::variable_in as database_variable;
pub(crate) use declared::{Declared, Known, empty_in, field, makes, template};
pub(crate) use empty::variable_in as empty_variable;
pub(crate) use for_all::{ForAll, Ports, is_key};
pub(crate) use names::ANNOTATIONS;
pub(crate) use of_ingress::{OfIngress, read, weight};
pub(crate) use renamed::{Renamed, rename};
pub(crate) use stream::{STREAM, ports};

use model::snippet::Position;
use model::{Message, Why};
use snippet::{Context, Kind, Meaning, Mistake, Names, Need, Note, Snippet};

/// What there is to say of a snippet that is right.
pub(crate) const NATIVE: &str = "is understood: it needs no nginx";

/// A text that an object has under this name, and where it stands, if it has the form of a snippet.
pub(crate) fn snippet_named(name: &str, text: &str) -> Option<(Context, Snippet)> {
    let place = names::context(name)?;
    Some((place, parse(place, text).ok()?))
}

/// Reads a text; every mistake is one of its own.
fn parse(place: Context, text: &str) -> Result<Snippet, Vec<Mistake>> {
    Snippet::parse(place, text).map_err(|mistake| vec![mistake])
}

/// What a text means where `names` are declared, if all that it needs is there; else everything that is wrong.
fn meaning(
    snippet: &Snippet,
    names: &Names,
    mut met: impl FnMut(&Need) -> Result<(), String>,
) -> Result<Meaning, Vec<Mistake>> {
    let meaning = snippet.understand(names)?;
    let unmet = meaning.needs.iter().filter_map(|need| Some(need.unmet(met(need).err()?)));
    let unmet: Vec<Mistake> = unmet.collect();
    if unmet.is_empty() { Ok(meaning) } else { Err(unmet) }
}

/// What a text says in vain as a sentence; `at` is where its author sees it.
fn vain(note: &Note, at: Position) -> Message {
    let text = note.said(at);
    if note.is_heeded_there { Why::TookIt.says(text) } else { text.into() }
}

/// A mistake as a sentence.
fn said(mistake: &Mistake) -> Message {
    let text = mistake.to_string();
    let text = text.trim_end_matches('.');
    match mistake.kind {
        Kind::Refused => text.into(),
        Kind::NeedsNginx => {
            let text = format!("{text}; take it out, or run with --engine=nginx");
            Why::NeedsNginx.says(text)
        }
    }
}
