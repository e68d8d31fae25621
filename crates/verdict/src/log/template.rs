//! A format the other way round: the texts between its variables are looked for from left to right.

use super::format::{Escape, FormatError, Piece};
use super::values::unescaped;

/// How often a line may be gone over before it counts as one of another format.
const PASSES: usize = 64;
/// What short lines have beside that.
const STEPS: usize = 64 << 10;

/// Text with variables, as what finds their values.
#[derive(Debug)]
pub(super) struct Template {
    /// What a line begins with.
    first: String,
    parts: Vec<Part>,
    escape: Escape,
}

/// A variable and the text behind it.
#[derive(Debug)]
struct Part {
    name: String,
    kind: Kind,
    /// Empty at the end of a format only.
    until: String,
}

/// What a value may be, by what stands around it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Anything, and as little as will do.
    Any,
    /// Whatever stands before this character, with which the text behind begins.
    Before(char),
    /// The inside of a string of JSON.
    Quoted,
    /// One value for each try, and between groups of tries a colon.
    Tries,
}

impl Template {
    pub(super) fn new(pieces: &[Piece], escape: Escape) -> Result<Self, FormatError> {
        let mut first = String::new();
        let mut parts: Vec<Part> = Vec::new();
        let mut before: Option<&Piece> = None;
        for (index, piece) in pieces.iter().enumerate() {
            match (piece, parts.last_mut()) {
                (Piece::Text(text), Some(part)) => part.until.push_str(text),
                (Piece::Text(text), None) => first.push_str(text),
                (Piece::Variable(name), _) => {
                    if let Some(Piece::Variable(one)) = before {
                        return Err(FormatError::SideBySide(one.clone(), name.clone()));
                    }
                    let kind = kind(name, before, pieces.get(index + 1), escape);
                    parts.push(Part { name: name.clone(), kind, until: String::new() });
                }
            }
            before = Some(piece);
        }
        Ok(Self { first, parts, escape })
    }

    /// The variables of a line with their values.
    pub(super) fn values(&self, line: &str) -> Option<Vec<(&str, String)>> {
        if !line.starts_with(&self.first) {
            return None;
        }
        let mut search = Search {
            line,
            parts: &self.parts,
            found: vec![""; self.parts.len()],
            failed: vec![usize::MAX; self.parts.len()],
            steps: line.len() * PASSES + STEPS,
        };
        if !search.find(0, self.first.len()) {
            return None;
        }
        let values = self.parts.iter().zip(search.found);
        Some(
            values
                .map(|(part, value)| (part.name.as_str(), unescaped(value, self.escape)))
                .collect(),
        )
    }
}

fn kind(name: &str, before: Option<&Piece>, after: Option<&Piece>, escape: Escape) -> Kind {
    let is_in = |open: char, close: char| {
        matches!(before, Some(Piece::Text(text)) if text.ends_with(open))
            && matches!(after, Some(Piece::Text(text)) if text.starts_with(close))
    };
    match escape {
        Escape::Default if is_in('"', '"') => Kind::Before('"'),
        Escape::Json if is_in('"', '"') => Kind::Quoted,
        _ if is_in('[', ']') => Kind::Before(']'),
        _ if name.starts_with("upstream_") => Kind::Tries,
        _ => Kind::Any,
    }
}

/// A line, as its values are looked for.
struct Search<'a> {
    line: &'a str,
    parts: &'a [Part],
    found: Vec<&'a str>,
    /// From where on a value that may be anything was looked for in vain: further right there is less to find.
    failed: Vec<usize>,
    /// So many bytes may still be looked at.
    steps: usize,
}

impl Search<'_> {
    /// Whether the line from here on is this part and all that follow.
    fn find(&mut self, index: usize, from: usize) -> bool {
        let (line, parts) = (self.line, self.parts);
        let Some(part) = parts.get(index) else { return from == line.len() };
        let rest = &line[from..];
        match part.kind {
            Kind::Any => self.find_any(index, from),
            Kind::Before(stop) => {
                let end = rest.find(stop).unwrap_or(rest.len());
                self.spend(end) && self.ends(index, from, from + end)
            }
            Kind::Quoted => {
                let end = quoted(rest);
                self.spend(end) && self.ends(index, from, from + end)
            }
            Kind::Tries => {
                let tries = tries(rest);
                let end = tries.last().map_or(0, |(_, end)| *end);
                if !self.spend(end) {
                    return false;
                }
                // As much as will do: whole tries first, then less and less of them.
                let ends = tries.into_iter().rev().flat_map(|(start, end)| (start + 1..=end).rev());
                ends.chain([0]).any(|end| self.ends(index, from, from + end))
            }
        }
    }

    fn find_any(&mut self, index: usize, from: usize) -> bool {
        let (line, until) = (self.line, self.parts[index].until.as_str());
        if index + 1 == self.parts.len() {
            let end = line.len().checked_sub(until.len()).filter(|end| *end >= from);
            return end.is_some_and(|end| self.ends(index, from, end));
        }
        if from >= self.failed[index] {
            return false;
        }
        let step = until.chars().next().map_or(1, char::len_utf8);
        let mut at = from;
        while let Some(length) = line[at..].find(until) {
            if !self.spend(length + step) {
                return false;
            }
            if self.ends(index, from, at + length) {
                return true;
            }
            at += length + step;
        }
        self.failed[index] = from;
        false
    }

    /// Whether the value of this part may end here.
    fn ends(&mut self, index: usize, from: usize, end: usize) -> bool {
        let (line, until) = (self.line, &self.parts[index].until);
        let next = end + until.len();
        let fits = line.as_bytes()[end..].starts_with(until.as_bytes());
        if !fits || !self.find(index + 1, next) {
            return false;
        }
        self.found[index] = &line[from..end];
        true
    }

    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps + 1);
        self.steps > 0
    }
}

/// Where the inside of a string of JSON ends.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.find(|letter: char| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// The tries at the beginning of a text: `10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80`.
fn tries(text: &str) -> Vec<(usize, usize)> {
    let mut tries = Vec::new();
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let end = start + rest.find([' ', ',', '"']).unwrap_or(rest.len());
        if end == start {
            return tries;
        }
        tries.push((start, end));
        let rest = &text[end..];
        let Some(next) = rest.strip_prefix(", ").or_else(|| rest.strip_prefix(" : ")) else {
            return tries;
        };
        start = text.len() - next.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{DEFAULT, pieces};
    use super::*;
    use fancy_regex::Regex;
    use std::time::{Duration, Instant};

    fn template(format: &str, escape: Escape) -> Template {
        Template::new(&pieces(format).unwrap(), escape).unwrap()
    }

    /// The same as a regular expression, which tells what is right.
    fn pattern(template: &Template) -> Regex {
        let mut pattern = format!("^{}", fancy_regex::escape(&template.first));
        for part in &template.parts {
            pattern.push_str(match part.kind {
                Kind::Any => "(.*?)",
                Kind::Before('"') => r#"([^"]*)"#,
                Kind::Before(_) => r"([^\]]*)",
                Kind::Quoted => r#"((?:[^"\\]|\\.)*)"#,
                Kind::Tries => r"((?:[^ ,\x22]+(?:(?:, | : )[^ ,\x22]+)*)?)",
            });
            pattern.push_str(&fancy_regex::escape(&part.until));
        }
        Regex::new(&format!("{pattern}$")).unwrap()
    }

    #[test]
    fn values_are_those_that_a_regular_expression_finds() {
        const LETTERS: &[u8] = b" ,:\"[]\\a-";
        let formats = [
            (r#"$a "$b" $c"#, Escape::Default),
            (r#"$a [$b] "$c" $upstream_x $d"#, Escape::Default),
            ("$upstream_x $upstream_y", Escape::None),
            ("-$upstream_x:$b-", Escape::None),
            (r#"$a "$b"-$c"#, Escape::Json),
            ("$a $b: $c", Escape::None),
        ];
        let (mut seed, mut fitting) = (7_u64, 0);
        for (format, escape) in formats {
            let template = template(format, escape);
            let pattern = pattern(&template);
            for _ in 0..2_000 {
                let mut line = String::new();
                for piece in pieces(format).unwrap() {
                    let Piece::Variable(_) = piece else {
                        let Piece::Text(text) = piece else { continue };
                        line.push_str(&text);
                        continue;
                    };
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    for place in 0..(seed >> 60) % 6 {
                        let letter = (seed >> (20 + 5 * place)) as usize % LETTERS.len();
                        line.push(char::from(LETTERS[letter]));
                    }
                }
                let right = pattern.captures(&line).unwrap().map(|found| {
                    let all = found.iter().skip(1).map(|value| value.unwrap().as_str());
                    all.map(|value| unescaped(value, escape)).collect::<Vec<_>>()
                });
                let values = template.values(&line);
                let values = values.map(|all| all.into_iter().map(|(_, value)| value).collect());
                assert_eq!(values, right, "{format} {line:?}");
                fitting += u32::from(right.is_some());
            }
        }
        assert!(fitting > 1_000, "{fitting}");
    }

    #[test]
    fn long_and_hostile_lines_take_little_time() {
        let format = format!("{} $host", DEFAULT);
        let template = template(&format, Escape::Default);
        let long = "x".repeat(24 << 10);
        let good = format!(
            r#"192.0.2.1 - - [x] "GET /{long} HTTP/1.1" 200 1 "-" "-" 1 0.1 [a-b-80] [] 10.0.0.1:80 1 0.1 200 0 a.test"#
        );
        let tries = "a, ".repeat(8 << 10);
        let bad = [
            format!("{good}\""),
            good.replace("a-b-80] [] ", ""),
            format!("192.0.2.1 - {} x", " [".repeat(12 << 10)),
            format!(r#"192.0.2.1 - - [x] "" 1 1 "" "" 1 1 [] [] {tries}"#),
        ];
        let begun = Instant::now();
        for _ in 0..25 {
            assert_eq!(
                template.values(&good).unwrap().last(),
                Some(&("host", "a.test".to_owned()))
            );
            bad.iter().for_each(|line| drop(template.values(line)));
        }
        // As a regular expression and without optimisation, 50 long lines took 7.5 s.
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
