//! Words as nginx's reader of configuration files cuts them: blanks, quotes, escapes, comments, variables in braces.

use super::Word;
use crate::Mistake;
use crate::Position;
use crate::mistake::shown;

/// What ended a directive, or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// `;`
    Semicolon,
    /// `{`
    Opened,
    /// `}`, with no words before it.
    Closed,
    /// The end of the text, with no words before it.
    Text,
}

/// Reads words from a text.
pub(super) struct Words<'t> {
    text: &'t str,
    offset: usize,
    at: Position,
}

/// How a word is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Of(char),
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, offset: 0, at: Position { line: 1, column: 1 } }
    }

    /// Where the next character is.
    pub(super) fn at(&self) -> Position {
        self.at
    }

    /// The words of the next directive and what ended them. At most `count` words, of at most `bytes` bytes each.
    pub(super) fn next(&mut self, count: usize, bytes: usize) -> Result<(Vec<Word>, End), Mistake> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            let at = self.at;
            let Some(c) = self.peek() else {
                return match words.first() {
                    None => Ok((words, End::Text)),
                    Some(Word { text, at }) => Err(unfinished(*at, text)),
                };
            };
            match c {
                ';' | '{' if words.is_empty() => return Err(unexpected(at, c)),
                '}' if !words.is_empty() => return Err(unfinished(words[0].at, &words[0].text)),
                ';' => return Ok((self.pass(words), End::Semicolon)),
                '{' => return Ok((self.pass(words), End::Opened)),
                '}' => return Ok((self.pass(words), End::Closed)),
                _ if words.len() == count => {
                    return Err(Mistake::refused(
                        at,
                        format!("more than {count} words in one directive"),
                    ));
                }
                _ => words.push(self.word(bytes)?),
            }
        }
    }

    /// What is between the brace that was just opened and its counterpart, both left out: a program in Lua, whose
    /// strings and comments may hold braces.
    pub(super) fn foreign(&mut self) -> Result<&'t str, Mistake> {
        let (start, at) = (self.offset, self.at);
        let mut depth = 1_usize;
        while let Some(c) = self.peek() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                '"' | '\'' => self.foreign_text(c),
                '-' if self.rest().starts_with("--") => self.foreign_comment(),
                '[' if self.rest().starts_with("[[") => self.skip_past("]]"),
                _ => {}
            }
            let end = self.offset;
            self.take();
            if depth == 0 {
                return Ok(&self.text[start..end]);
            }
        }
        Err(Mistake::refused(at, "the text ends within a block of another language"))
    }

    fn foreign_text(&mut self, quote: char) {
        self.take();
        while let Some(c) = self.peek().filter(|c| *c != quote && *c != '\n') {
            self.take();
            if c == '\\' {
                self.take();
            }
        }
    }

    fn foreign_comment(&mut self) {
        match self.rest().starts_with("--[[") {
            true => self.skip_past("]]"),
            false => {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.take();
                }
            }
        }
    }

    /// Goes to the last character of the next `end`.
    fn skip_past(&mut self, end: &str) {
        let to =
            self.rest().find(end).map_or(self.text.len(), |at| self.offset + at + end.len() - 1);
        while self.offset < to {
            self.take();
        }
    }

    fn word(&mut self, most: usize) -> Result<Word, Mistake> {
        let at = self.at;
        let quotes = match self.peek() {
            Some(c @ ('"' | '\'')) => {
                self.take();
                Quotes::Of(c)
            }
            _ => Quotes::None,
        };
        let (start, mut end) = (self.offset, None);
        let mut after_dollar = false;
        while let Some(c) = self.peek() {
            let is_name = c == '{' && after_dollar;
            let ends = match quotes {
                Quotes::Of(quote) => c == quote,
                Quotes::None => !is_name && (is_blank(c) || c == ';' || c == '{'),
            };
            if ends {
                end = Some(self.offset);
                break;
            }
            after_dollar = c == '$' || is_name;
            self.take();
            if c == '\\' {
                self.take();
            }
        }
        let end = match (end, quotes) {
            (Some(end), _) => end,
            (None, Quotes::None) => self.text.len(),
            (None, Quotes::Of(quote)) => {
                let missing = format!("the quote {quote} that begins here is not closed");
                return Err(Mistake::refused(at, missing));
            }
        };
        if end - start > most {
            let text = shown(&self.text[start..end]);
            return Err(Mistake::refused(
                at,
                format!("a word of more than {most} bytes: \"{text}\""),
            ));
        }
        if quotes != Quotes::None {
            self.after_quote()?;
        }
        Ok(Word { text: model::unescaped(&self.text[start..end]), at })
    }

    /// A word in quotes is followed by a blank, an end, or the parenthesis that closes a condition.
    fn after_quote(&mut self) -> Result<(), Mistake> {
        self.take();
        match self.peek() {
            None => Ok(()),
            Some(c) if is_blank(c) || matches!(c, ';' | '{' | ')') => Ok(()),
            Some(c) => {
                let text =
                    format!("unexpected \"{c}\": a blank or \";\" must follow a word in quotes");
                Err(Mistake::refused(self.at, text))
            }
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.take();
                    }
                }
                c if is_blank(c) => self.take(),
                _ => return,
            }
        }
    }

    fn pass(&mut self, words: Vec<Word>) -> Vec<Word> {
        self.take();
        words
    }

    fn rest(&self) -> &'t str {
        &self.text[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) {
        let Some(c) = self.peek() else { return };
        self.offset += c.len_utf8();
        match c {
            '\n' => self.at = Position { line: self.at.line + 1, column: 1 },
            _ => self.at.column += 1,
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn unfinished(at: Position, text: &str) -> Mistake {
    Mistake::refused(at, format!("\"{}\" lacks its \";\"", shown(text)))
}

fn unexpected(at: Position, c: char) -> Mistake {
    Mistake::refused(at, format!("unexpected \"{c}\""))
}
