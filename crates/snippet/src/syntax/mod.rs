//! The syntax of nginx's configuration: text to a tree of directives, and back.

mod parse;
mod print;
mod words;

pub use parse::{Bounds, parse};
pub use print::print;

use crate::Position;

/// One word of a directive, its quotes and escapes resolved.
#[derive(Clone, Debug)]
pub struct Word {
    /// What it says.
    pub text: String,
    /// Where it begins.
    pub at: Position,
}

/// A directive: its words, the first of which is its name, and what is between its braces, if it has any.
#[derive(Clone, Debug)]
pub struct Directive {
    /// The name and the arguments; never empty.
    pub words: Vec<Word>,
    /// What is between the braces.
    pub block: Option<Block>,
}

/// What is between braces.
#[derive(Clone, Debug)]
pub enum Block {
    /// Directives.
    Directives(Vec<Directive>),
    /// A program of another language, such as Lua, as it was written.
    Foreign(String),
}

impl Directive {
    /// Its name.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", |word| &word.text)
    }

    /// Where it begins.
    pub fn at(&self) -> Position {
        self.words.first().map_or(Position::default(), |word| word.at)
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// Whether two trees say the same, wherever it stands.
pub fn same(one: &[Directive], other: &[Directive]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_directive(one, other))
}

fn same_directive(one: &Directive, other: &Directive) -> bool {
    let texts = |directive: &Directive| -> Vec<String> {
        directive.words.iter().map(|word| word.text.clone()).collect()
    };
    let blocks = match (&one.block, &other.block) {
        (None, None) => true,
        (Some(Block::Directives(one)), Some(Block::Directives(other))) => same(one, other),
        (Some(Block::Foreign(one)), Some(Block::Foreign(other))) => one == other,
        _ => false,
    };
    blocks && texts(one) == texts(other)
}
