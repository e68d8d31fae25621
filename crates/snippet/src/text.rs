//! A snippet from its text to its meaning.

use crate::compile::{Meaning, compile};
use crate::level::Context;
use crate::mistake::Mistake;
use crate::read::bytes;
use crate::syntax::{Block, Bounds, Directive, parse};
use crate::variables::Names;

/// A snippet whose text has the form of nginx's configuration.
#[derive(Clone, Debug)]
pub struct Snippet {
    place: Context,
    directives: Vec<Directive>,
}

impl Snippet {
    /// Reads `text` as a snippet of `place`.
    pub fn parse(place: Context, text: &str) -> Result<Self, Mistake> {
        let directives = parse(text, &Bounds::of(place))?;
        Ok(Self { place, directives })
    }

    /// What it says, as it is written.
    pub fn directives(&self) -> &[Directive] {
        &self.directives
    }

    /// Adds the variables that it declares to `names`.
    pub fn declare(&self, names: &mut Names) {
        names.declare(&self.directives);
    }

    /// Whether a `map`, `geo` or `split_clients` of it makes a variable, whose name is in lower case.
    pub fn makes(&self, name: &str) -> bool {
        self.directives.iter().any(|directive| {
            let made = directive.arguments().last().and_then(|word| word.text.strip_prefix('$'));
            matches!(directive.name(), "map" | "geo" | "split_clients")
                && made.is_some_and(|made| made.eq_ignore_ascii_case(name))
        })
    }

    /// All its words, those between braces among them.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let mut found = Vec::new();
        all_words(&self.directives, &mut found);
        found.into_iter()
    }

    /// The words that are, or may be, regular expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        let mut found = Vec::new();
        expressions(&self.directives, &mut found);
        found.into_iter()
    }

    /// How much its levels say, each with what it has from those around it, in words; and of how many levels there is
    /// one at each of so many places, which counts as 50 words. What is said of hosts is copied for each of them.
    pub fn said(&self, places: u64) -> u64 {
        let copies = match self.place {
            Context::Server => places,
            _ => 1,
        };
        said(&self.directives, 0, copies, places.saturating_mul(LEVEL))
    }

    /// What it means where `names` are declared, its own among them; else all that is wrong with it.
    pub fn understand(&self, names: &Names) -> Result<Meaning, Vec<Mistake>> {
        compile(self.place, &self.directives, names)
    }
}

/// What a level costs by itself, in words.
const LEVEL: u64 = 50;

fn said(directives: &[Directive], around: u64, copies: u64, level: u64) -> u64 {
    let all = words(directives).saturating_add(around);
    let blocks = directives.iter().filter_map(|directive| match &directive.block {
        Some(Block::Directives(inner)) => Some(inner),
        Some(Block::Foreign(_)) | None => None,
    });
    let inner = blocks.map(|inner| said(inner, all, copies, level));
    inner.fold(all.saturating_mul(copies).saturating_add(level), u64::saturating_add)
}

fn words(directives: &[Directive]) -> u64 {
    directives.iter().map(|directive| directive.words.len() as u64).sum()
}

fn all_words<'a>(directives: &'a [Directive], found: &mut Vec<&'a str>) {
    for directive in directives {
        found.extend(directive.words.iter().map(|word| word.text.as_str()));
        if let Some(Block::Directives(inner)) = &directive.block {
            all_words(inner, found);
        }
    }
}

fn expressions<'a>(directives: &'a [Directive], found: &mut Vec<&'a str>) {
    for directive in directives {
        let words = &directive.words;
        let is_operator = |word: &str| matches!(word, "~" | "~*" | "!~" | "!~*");
        let operands = words.windows(2).filter(|pair| is_operator(&pair[0].text));
        found.extend(operands.map(|pair| pair[1].text.as_str()));
        let marked = words.iter().map(|word| word.text.as_str());
        found.extend(marked.filter(|text| text.len() > 2 && text.starts_with('~')));
        if matches!(directive.name(), "rewrite" | "fastcgi_split_path_info" | "gzip_disable") {
            found.extend(words.get(1).map(|word| word.text.as_str()));
        }
        if let Some(Block::Directives(inner)) = &directive.block {
            expressions(inner, found);
        }
    }
}

/// Reads what a variable says of a size: `k`, `m` and `g` may follow a number.
pub fn size_of(text: &str) -> Option<u64> {
    bytes(text, "kKmMgG")
}

/// What a snippet means that stands alone.
pub fn understand(place: Context, text: &str) -> Result<Meaning, Vec<Mistake>> {
    let snippet = Snippet::parse(place, text).map_err(|mistake| vec![mistake])?;
    let mut names = Names::default();
    snippet.declare(&mut names);
    snippet.understand(&names)
}
