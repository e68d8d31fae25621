//! Directives and blocks of words, within bounds.

use super::words::{End, Words};
use super::{Block, Directive};
use crate::Mistake;
use crate::Position;
use crate::level::Context;

/// How large a snippet may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of the text.
    pub bytes: usize,
    /// Blocks within blocks.
    pub depth: usize,
    /// Directives, those within blocks too.
    pub directives: usize,
    /// Regular expressions.
    pub expressions: usize,
    /// Headers that its directives say: each is looked for in every message.
    pub headers: usize,
    /// Words of one directive.
    pub words: usize,
    /// Bytes of one word: nginx reads with a buffer of this size.
    pub word: usize,
}

impl Bounds {
    /// Of a snippet; the ConfigMap's `http-snippet` may have long tables.
    pub fn of(place: Context) -> Self {
        let (bytes, directives, expressions, headers) = match place {
            Context::Http => (1 << 20, 20_000, 2_000, 10_000),
            _ => (64 << 10, 1_000, 500, 500),
        };
        Self { bytes, depth: 8, directives, expressions, headers, words: 512, word: 4_096 }
    }
}

/// Reads `text`; the error says where the first mistake is.
pub fn parse(text: &str, bounds: &Bounds) -> Result<Vec<Directive>, Mistake> {
    let start = Position { line: 1, column: 1 };
    if text.len() > bounds.bytes {
        let said = format!("{} bytes, at most {} are read", text.len(), bounds.bytes);
        return Err(Mistake::refused(start, said));
    }
    if let Some(at) = text.find('\0') {
        let said = format!("a NUL byte at offset {at}");
        return Err(Mistake::refused(start, said));
    }
    let mut parser = Parser { words: Words::new(text), bounds, directives: 0 };
    parser.block(0)
}

struct Parser<'t> {
    words: Words<'t>,
    bounds: &'t Bounds,
    directives: usize,
}

impl Parser<'_> {
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, Mistake> {
        let opened = self.words.at();
        let mut directives = Vec::new();
        loop {
            let before = self.words.at();
            let (words, end) = self.words.next(self.bounds.words, self.bounds.word)?;
            let at = words.first().map_or(before, |word| word.at);
            match (end, depth) {
                (End::Closed, 0) => {
                    return Err(Mistake::refused(
                        before,
                        "a \"}\" that closes nothing of this snippet",
                    ));
                }
                (End::Text, 1..) => {
                    return Err(Mistake::refused(
                        opened,
                        "the block that begins here is not closed by \"}\"",
                    ));
                }
                (End::Closed, _) | (End::Text, 0) => return Ok(directives),
                (End::Semicolon, _) => directives.push(Directive { words, block: None }),
                (End::Opened, _) if words[0].text.ends_with("_by_lua_block") => {
                    let program = self.words.foreign()?.to_owned();
                    directives.push(Directive { words, block: Some(Block::Foreign(program)) });
                }
                (End::Opened, _) if depth == self.bounds.depth => {
                    let said = format!("blocks within more than {} blocks", self.bounds.depth);
                    return Err(Mistake::refused(at, said));
                }
                (End::Opened, _) => {
                    let block = Some(Block::Directives(self.block(depth + 1)?));
                    directives.push(Directive { words, block });
                }
            }
            self.directives += 1;
            if self.directives > self.bounds.directives {
                let said = format!("more than {} directives", self.bounds.directives);
                return Err(Mistake::refused(at, said));
            }
        }
    }
}
