//! Regular expressions of users as nginx gets them: groups have numbers and no names.

use super::{Word, policy};
use model::Location;

/// What nginx cannot read, and so refuses as its owner's.
const UNREADABLE: &str = "\0";

/// A pattern for nginx, without names of groups: nginx makes each of them a variable of all servers, so one that is
/// called `http_authorization` would be what everybody is told the client has sent.
pub(in crate::conf) fn pattern(source: &str) -> Word {
    pattern_keeping(source, |_| false)
}

/// The same, but some names stay: those that somebody who may write configuration asks for.
pub(in crate::conf) fn pattern_keeping(source: &str, keeps: impl Fn(&str) -> bool) -> Word {
    Word::plain(numbered(source, keeps).unwrap_or_else(|| UNREADABLE.to_owned()))
}

/// The pattern of a path, without the names of its groups, unless the Ingress asks for them in nginx's own words.
pub(in crate::conf) fn pattern_for(location: &Location, source: &str) -> Word {
    pattern_keeping(source, |name| policy::raw::asks_for(location.policy.raw.as_deref(), name))
}

/// A piece of a pattern as PCRE reads it.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Text(&'a str),
    /// A group that captures.
    Group(&'a str),
    /// One with a name: what opens it, and its name.
    Named(&'a str, &'a str),
    /// What a group of this name has captured.
    Same(&'a str, &'a str),
}

/// The pattern with numbers in place of names, and without NUL bytes; none if a name may still be left.
fn numbered(source: &str, keeps: impl Fn(&str) -> bool) -> Option<String> {
    let pieces = pieces(source);
    let captures = pieces.iter().filter_map(|piece| match piece {
        Piece::Group(_) => Some(None),
        Piece::Named(_, name) => Some(Some(*name)),
        Piece::Text(_) | Piece::Same(..) => None,
    });
    let captures: Vec<Option<&str>> = captures.collect();
    let number = |name: &str| captures.iter().position(|other| *other == Some(name));
    let mut text = String::with_capacity(source.len());
    for piece in &pieces {
        match piece {
            Piece::Named(_, name) if !keeps(name) => text.push('('),
            Piece::Same(whole, name) if !keeps(name) => match number(name) {
                Some(index) => text.push_str(&format!("\\g{{{}}}", index + 1)),
                None => text.push_str(whole),
            },
            Piece::Text(whole)
            | Piece::Group(whole)
            | Piece::Named(whole, _)
            | Piece::Same(whole, _) => text.push_str(whole),
        }
    }
    // Comments (in extended mode) may have led the reader astray.
    if names(&text).any(|name| !keeps(name)) {
        return None;
    }
    Some(text.replace("\\\0", "\\x00").replace('\0', "\\x00"))
}

/// Reads a pattern: escapes, classes, and what opens a group.
fn pieces(source: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), source);
    while !rest.is_empty() {
        let piece = match rest.as_bytes()[0] {
            b'\\' => back_reference(rest).unwrap_or_else(|| Piece::Text(escape(rest))),
            b'[' => Piece::Text(class(rest)),
            b'(' => group(rest),
            _ => Piece::Text(&rest[..rest.chars().next().map_or(1, char::len_utf8)]),
        };
        let (Piece::Text(whole)
        | Piece::Group(whole)
        | Piece::Named(whole, _)
        | Piece::Same(whole, _)) = piece;
        rest = &rest[whole.len()..];
        pieces.push(piece);
    }
    pieces
}

/// A backslash and the character behind it.
fn escape(rest: &str) -> &str {
    let next = rest[1..].chars().next().map_or(0, char::len_utf8);
    &rest[..1 + next]
}

fn back_reference(rest: &str) -> Option<Piece<'_>> {
    let forms = [("\\k<", '>'), ("\\k{", '}'), ("\\k'", '\''), ("\\g{", '}')];
    forms.into_iter().find_map(|(open, close)| {
        let (whole, name) = delimited(rest, open, close)?;
        Some(Piece::Same(whole, name))
    })
}

fn group(rest: &str) -> Piece<'_> {
    if let Some((whole, name)) = named(rest) {
        return Piece::Named(whole, name);
    }
    if let Some((whole, name)) = delimited(rest, "(?P=", ')') {
        return Piece::Same(whole, name);
    }
    match rest.as_bytes().get(1) {
        Some(b'?' | b'*') => Piece::Text(&rest[..2]),
        _ => Piece::Group(&rest[..1]),
    }
}

/// What opens a group with a name, and its name.
fn named(rest: &str) -> Option<(&str, &str)> {
    let forms = [("(?<", '>'), ("(?P<", '>'), ("(?'", '\'')];
    forms.into_iter().find_map(|(open, close)| delimited(rest, open, close))
}

fn delimited<'a>(rest: &'a str, open: &str, close: char) -> Option<(&'a str, &'a str)> {
    let (name, _) = rest.strip_prefix(open)?.split_once(close)?;
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    let is_number = name.starts_with(|c: char| c.is_ascii_digit());
    let length = open.len() + name.len() + close.len_utf8();
    (!name.is_empty() && name.chars().all(is_name) && !is_number).then(|| (&rest[..length], name))
}

/// A class from its bracket to the one that ends it, or to the end.
fn class(rest: &str) -> &str {
    let open = if rest.starts_with("[^") { 2 } else { 1 };
    // The first bracket is one of its characters.
    let mut at = open + usize::from(rest[open..].starts_with(']'));
    while let Some(next) = rest[at..].chars().next() {
        match next {
            ']' => return &rest[..=at],
            '\\' => at += escape(&rest[at..]).len(),
            '[' => at += posix(&rest[at..]).map_or(1, str::len),
            other => at += other.len_utf8(),
        }
    }
    rest
}

/// `[:name:]` within a class.
fn posix(rest: &str) -> Option<&str> {
    let (name, _) = rest.strip_prefix("[:")?.split_once(":]")?;
    name.chars().all(|c| c.is_ascii_alphabetic() || c == '^').then(|| &rest[..name.len() + 4])
}

/// Every name that a group could have, wherever it stands, unless its bracket is escaped.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let next = rest.chars().next()?;
            let here = rest;
            let length = if next == '\\' { escape(rest).len() } else { next.len_utf8() };
            rest = &rest[length..];
            if let Some((_, name)) = named(here) {
                return Some(name);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::numbered;

    fn plain(source: &str) -> Option<String> {
        numbered(source, |_| false)
    }

    #[test]
    fn groups_lose_their_names_and_keep_their_numbers() {
        for (source, expected) in [
            (r"^/(a)(?<id>\d+)/(?P<x>b)\k<id>", r"^/(a)(\d+)/(b)\g{2}"),
            (r"(?'n'.)(?P=n)\g{n}\k{n}\k'n'\1", r"(.)\g{1}\g{1}\g{1}\g{1}\1"),
            (r"(?:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?i)", r"(?:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?i)"),
            (r"\(?<x>", r"\(?<x>"),
            (r"\\(?<x>a)", r"\\(a)"),
            (r"[a[(?](?<x>a)", r"[a[(?](a)"),
            (r"[]](?<x>a)[[:alpha:]](?<y>b)", r"[]](a)[[:alpha:]](b)"),
            (r"(?#\)(?<x>a)", r"(?#\)(a)"),
            ("a\0\\\0", r"a\x00\x00"),
        ] {
            assert_eq!(plain(source).as_deref(), Some(expected), "{source}");
        }
    }

    #[test]
    fn names_that_somebody_asks_for_stay() {
        let kept = numbered(r"(?<id>.)(?<x>.)\k<id>", |name| name == "id");
        assert_eq!(kept.as_deref(), Some(r"(?<id>.)(.)\k<id>"));
    }

    #[test]
    fn where_a_name_may_be_left_there_is_no_pattern() {
        // In extended mode the class is part of a comment, and the group behind it is none of its characters.
        assert_eq!(plain("(?x) # [\n(?<remote_addr>a)"), None);
        assert_eq!(plain("[(?<x>a]"), None);
    }
}
