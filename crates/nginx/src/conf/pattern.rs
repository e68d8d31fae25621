//! Regular expressions of users as nginx gets them: groups have numbers and no names.

use super::Word;
use super::text::has_variable;
use model::policy::Raw;
use model::{Location, Server};

/// What nginx cannot read, and so refuses as its owner's.
const UNREADABLE: &str = "\0";

/// Steps of PCRE for one match of a pattern: enough to walk twice through the longest path that nginx reads (8k).
const STEPS: usize = 20_000;
/// Steps that all paths of a host share, as many as a request has with the native engine; and what one has at least.
const SHARED: usize = 4_000_000;
const LEAST: usize = 2_000;

/// A pattern for nginx, without names of groups: nginx makes each of them a variable of all servers, so one that is
/// called `http_authorization` would be what everybody is told the client has sent. Its steps are bounded.
pub(in crate::conf) fn pattern(source: &str) -> Word {
    limit(STEPS).then(pattern_of_all(source))
}

/// The same without a bound, for what whoever runs the process writes: a `map` takes a text that goes beyond one for
/// a text that is not listed, so what is to be blocked would get in.
pub(in crate::conf) fn pattern_of_all(source: &str) -> Word {
    pattern_keeping(source, |_| false)
}

/// Bounds the steps of what stands behind it, which is no [`model::Pattern`] if it has a bound of its own: the last one
/// counts. A text that goes beyond it is answered 500.
fn limit(steps: usize) -> Word {
    Word::plain(format!("(*LIMIT_MATCH={steps})"))
}

/// The bound for a path of a host: nginx tries all of them, one after the other.
pub(in crate::conf) fn limit_of_paths(server: &Server) -> Word {
    limit((SHARED / server.locations.len().max(1)).clamp(LEAST, STEPS))
}

/// Some names stay: those that somebody who may write configuration asks for.
fn pattern_keeping(source: &str, keeps: impl Fn(&str) -> bool) -> Word {
    Word::plain(numbered(source, keeps).unwrap_or_else(|| UNREADABLE.to_owned()))
}

/// The pattern of a path, without the names of its groups, unless the Ingress asks for them in nginx's own words; and
/// without the bound, which goes before all else.
pub(in crate::conf) fn pattern_for(location: &Location, source: &str) -> Word {
    pattern_keeping(source, |name| asks_for(location.policy.raw.as_deref(), name))
}

/// Whether somebody's own configuration has a variable.
fn asks_for(raw: Option<&Raw>, name: &str) -> bool {
    let texts = raw.map(|raw| [&raw.configuration, &raw.server, &raw.auth]);
    texts.into_iter().flatten().flatten().any(|text| has_variable(text, name))
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

/// A backslash and the character behind it, and one more behind `\c`: `\c(` opens no group.
fn escape(rest: &str) -> &str {
    let length = if rest.starts_with("\\c") { 2 } else { 1 };
    let last = rest[length..].chars().next().map_or(0, char::len_utf8);
    &rest[..length + last]
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
    use super::{limit_of_paths, numbered, pattern};
    use model::{Backend, Location, PathKind, Pattern, Server, ServerName};
    use std::sync::Arc;

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
            (r"\c\(?<x>a)\c[(?<y>b)[\c]x](?<z>c)", r"\c\(a)\c[(b)[\c]x](c)"),
            (r"\c(?<x>a", r"\c(?<x>a"),
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

    #[test]
    fn steps_of_a_pattern_are_bounded_and_none_sets_a_bound_of_its_own() {
        assert_eq!(pattern("^a+$").as_str(), "(*LIMIT_MATCH=20000)^a+$");
        // PCRE would obey the last one.
        for own in ["(*LIMIT_MATCH=9000000)a", "(*UCP)(*LIMIT_MATCH=9000000)a"] {
            assert!(Pattern::new(own, false).is_err(), "{own}");
        }
    }

    #[test]
    fn the_paths_of_a_host_share_the_steps_of_a_request() {
        let location = Arc::new(Location {
            path: "/a+".to_owned(),
            kind: PathKind::Prefix,
            whole: true,
            backend: Backend::NotFound,
            canary: None,
            service: None,
            origin: None,
            policy: Arc::default(),
        });
        for (paths, each) in [(0, 20_000), (200, 20_000), (400, 10_000), (100_000, 2_000)] {
            let mut server = Server::new(ServerName::new("a.test"));
            server.locations = vec![location.clone(); paths];
            assert_eq!(limit_of_paths(&server).as_str(), format!("(*LIMIT_MATCH={each})"));
        }
    }
}
