//! The one meaning of a path: decoded once, slashes merged, dot segments resolved; and its way back onto the wire.

pub use model::{bytes_of_text as bytes, text_of_bytes as text};
use std::borrow::Cow;
use thiserror::Error;

/// What a request's path means: what is matched, checked and rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical<'a> {
    /// The bytes; they start with `/`, hold no `//` and no dot segment, and need not be UTF-8.
    pub path: Cow<'a, [u8]>,
    /// Whether the client wrote dot segments, plain or encoded.
    pub dotted: bool,
    /// Whether the client wrote several slashes in a row, plain or encoded.
    pub merged: bool,
}

/// Why a path has no meaning: the request is answered with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadPath {
    /// It does not start with a slash.
    #[error("the path does not start with a slash")]
    Relative,
    /// A `%` without two hexadecimal digits.
    #[error("the path has a % without two hexadecimal digits")]
    Escape,
    /// A NUL, plain or encoded.
    #[error("the path has a NUL")]
    Nul,
    /// Its dot segments lead out of the root.
    #[error("the path leads above the root")]
    AboveRoot,
}

/// Finds the meaning of `raw_path`, which ends before `?`. A `#` has no meaning of its own here: refuse it before.
///
/// Plain paths are borrowed. An empty path, as an absolute-form target may have it, is `/`.
pub fn canonical(raw_path: &[u8]) -> Result<Canonical<'_>, BadPath> {
    match raw_path.first() {
        None => return Ok(Canonical { path: Cow::Borrowed(b"/"), dotted: false, merged: false }),
        Some(b'/') => {}
        Some(_) => return Err(BadPath::Relative),
    }
    if is_plain(raw_path) {
        return Ok(Canonical { path: Cow::Borrowed(raw_path), dotted: false, merged: false });
    }
    let mut resolver = Resolver::with_capacity(raw_path.len());
    let mut rest = &raw_path[1..];
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match first {
            b'%' => unescape(tail)?,
            byte => (*byte, tail),
        };
        resolver.push(byte)?;
        rest = tail;
    }
    resolver.finish()
}

/// What stands behind the part of `raw_path` that means `prefix`, as it is written; none where it does not begin so.
/// The prefix is canonical and ends in no slash, and the path has no dot segments.
pub fn behind<'p>(raw_path: &'p [u8], prefix: &[u8]) -> Option<&'p [u8]> {
    let mut rest = raw_path;
    for &byte in prefix {
        rest = after(rest, byte)?;
        while let Some(more) = after(rest, b'/').filter(|_| byte == b'/') {
            rest = more;
        }
    }
    Some(rest)
}

/// What stands behind this byte, plain or as an escape.
pub fn after(raw: &[u8], byte: u8) -> Option<&[u8]> {
    let (first, tail) = raw.split_first()?;
    let (found, tail) = if *first == b'%' { unescape(tail).ok()? } else { (*first, tail) };
    (found == byte).then_some(tail)
}

impl Canonical<'_> {
    /// The same without a borrow, for what outlives the request's head.
    pub fn into_owned(self) -> Canonical<'static> {
        let Self { path, dotted, merged } = self;
        Canonical { path: Cow::Owned(path.into_owned()), dotted, merged }
    }

    /// The path as [`text`].
    pub fn text(&self) -> Cow<'_, str> {
        text(&self.path)
    }
}

/// Writes a canonical path for the wire, escaping what nginx escapes when it forwards a changed URI: controls, space,
/// `"`, `#`, `%`, `<`, `>`, `?`, `\`, `^`, backtick, `{`, `|`, `}` and everything beyond ASCII.
pub fn encode(path: &[u8]) -> Cow<'_, str> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let escapes = path.iter().filter(|byte| is_escaped(**byte)).count();
    if escapes == 0 {
        return String::from_utf8_lossy(path);
    }
    let mut encoded = String::with_capacity(path.len() + 2 * escapes);
    for &byte in path {
        if is_escaped(byte) {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        } else {
            encoded.push(char::from(byte));
        }
    }
    Cow::Owned(encoded)
}

fn is_escaped(byte: u8) -> bool {
    let forbidden = matches!(
        byte,
        b'"' | b'#' | b'%' | b'<' | b'>' | b'?' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
    );
    forbidden || !byte.is_ascii_graphic()
}

/// Whether a path that starts with a slash means just what it says.
fn is_plain(path: &[u8]) -> bool {
    let mut after_slash = false;
    for (at, &byte) in path.iter().enumerate() {
        match byte {
            b'%' | 0 => return false,
            b'/' if after_slash => return false,
            b'.' if after_slash && starts_with_dot_segment(&path[at..]) => return false,
            _ => after_slash = byte == b'/',
        }
    }
    true
}

fn starts_with_dot_segment(rest: &[u8]) -> bool {
    matches!(rest, [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..])
        // The second dot may be an escape; the slow path finds out.
        || matches!(rest, [b'.', b'%', ..] | [b'.', b'.', b'%', ..])
}

fn unescape(rest: &[u8]) -> Result<(u8, &[u8]), BadPath> {
    let [high, low, tail @ ..] = rest else { return Err(BadPath::Escape) };
    match (hex(*high), hex(*low)) {
        (Some(high), Some(low)) => Ok((high << 4 | low, tail)),
        _ => Err(BadPath::Escape),
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Takes decoded bytes and keeps the path resolved so far.
struct Resolver {
    /// Starts with a slash; what follows the last slash is the segment at work.
    path: Vec<u8>,
    /// Where the segment at work starts.
    segment: usize,
    dotted: bool,
    merged: bool,
}

impl Resolver {
    fn with_capacity(capacity: usize) -> Self {
        let mut path = Vec::with_capacity(capacity);
        path.push(b'/');
        Self { path, segment: 1, dotted: false, merged: false }
    }

    fn push(&mut self, byte: u8) -> Result<(), BadPath> {
        match byte {
            0 => return Err(BadPath::Nul),
            b'/' if self.path.len() == self.segment => self.merged = true,
            b'/' => {
                if !self.resolve()? {
                    self.path.push(b'/');
                }
                self.segment = self.path.len();
            }
            _ => self.path.push(byte),
        }
        Ok(())
    }

    /// Takes the segment at work away if it is a dot segment, and tells whether it was.
    fn resolve(&mut self) -> Result<bool, BadPath> {
        let keep = match &self.path[self.segment..] {
            b"." => self.segment,
            b".." => {
                let parents = &self.path[..self.segment - 1];
                parents.iter().rposition(|byte| *byte == b'/').ok_or(BadPath::AboveRoot)? + 1
            }
            _ => return Ok(false),
        };
        self.dotted = true;
        self.path.truncate(keep);
        Ok(true)
    }

    fn finish(mut self) -> Result<Canonical<'static>, BadPath> {
        self.resolve()?;
        Ok(Canonical { path: Cow::Owned(self.path), dotted: self.dotted, merged: self.merged })
    }
}

#[cfg(test)]
mod tests {
    use super::{BadPath, bytes, canonical, encode};
    use std::borrow::Cow;

    fn meaning(raw: &str) -> Result<(String, bool, bool), BadPath> {
        let path = canonical(raw.as_bytes())?;
        Ok((encode(&path.path).into_owned(), path.dotted, path.merged))
    }

    #[test]
    fn plain_paths_are_borrowed() {
        for plain in [
            "/",
            "/a/b",
            "/.well-known/x",
            "/a/...",
            "/a./b",
            "/..a",
            "/a;v=1",
            "/pub/..;/admin",
            "/ü",
            "/a+b",
        ] {
            let path = canonical(plain.as_bytes()).expect("it is valid");
            assert!(matches!(path.path, Cow::Borrowed(_)), "{plain}");
            assert_eq!((&*path.path, path.dotted, path.merged), (plain.as_bytes(), false, false));
            assert_eq!(path.clone().into_owned(), path);
        }
    }

    #[test]
    fn dot_segments_are_resolved_however_they_are_written() {
        let dotted = |path: &str| Ok((path.to_owned(), true, false));
        for (raw, path) in [
            ("/bar/../foo", "/foo"),
            ("/foo/./x", "/foo/x"),
            ("/foo/..", "/"),
            ("/foo/.", "/foo/"),
            ("/foo/%2e%2E/x", "/x"),
            ("/foo/.%2e/x", "/x"),
            ("/pub/..%2fadmin", "/admin"),
            ("/a/b/c/../../d", "/a/d"),
        ] {
            assert_eq!(meaning(raw), dotted(path), "{raw}");
        }
        for raw in ["/../foo", "/..", "/foo/x/../../..", "/%2e%2e/", "//../x"] {
            assert_eq!(meaning(raw), Err(BadPath::AboveRoot), "{raw}");
        }
    }

    #[test]
    fn slashes_are_merged_also_encoded_ones() {
        for (raw, path) in
            [("//foo", "/foo"), ("///foo///x", "/foo/x"), ("/foo//", "/foo/"), ("/a%2f/b", "/a/b")]
        {
            assert_eq!(meaning(raw), Ok((path.to_owned(), false, true)), "{raw}");
        }
    }

    #[test]
    fn escapes_are_decoded_once() {
        for (raw, path) in [
            ("/foo%2Fbar", "/foo/bar"),
            ("/%66oo", "/foo"),
            ("/a%3Fb%23", "/a%3Fb%23"),
            ("/%252e", "/%252e"),
        ] {
            assert_eq!(meaning(raw), Ok((path.to_owned(), false, false)), "{raw}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for (raw, error) in [
            ("/foo/%zz", BadPath::Escape),
            ("/foo/%", BadPath::Escape),
            ("/foo/%4", BadPath::Escape),
            ("/foo/%00", BadPath::Nul),
            ("/foo/\0", BadPath::Nul),
            ("foo", BadPath::Relative),
            ("*", BadPath::Relative),
        ] {
            assert_eq!(meaning(raw), Err(error), "{raw}");
        }
        assert_eq!(meaning(""), Ok(("/".to_owned(), false, false)));
    }

    #[test]
    fn rewritten_paths_are_encoded_as_nginx_does() {
        assert_eq!(encode(b"/a b"), "/a%20b");
        assert_eq!(encode("/ü".as_bytes()), "/%C3%BC");
        assert_eq!(encode(b"/a?b+c"), "/a%3Fb+c");
        let all: Vec<u8> = (0x20..=0x80).collect();
        let rest = "!%22%23$%25&'()*+,-./0123456789:;%3C=%3E%3F@ABCDEFGHIJKLMNOPQRSTUVWXYZ[%5C]%5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D~%7F%80";
        assert_eq!(encode(&all), format!("%20{rest}"));
        assert!(matches!(encode(b"/plain"), Cow::Borrowed("/plain")));
    }

    #[test]
    fn bytes_that_are_no_text_survive_a_regular_expression() {
        let path = canonical(b"/a%ff/%f4%8f%bf%bf/\xC3\xBC").expect("it is valid");
        let text = path.text();
        assert!(text.starts_with("/a") && text.ends_with("/ü"));
        assert_eq!(&*bytes(&text), b"/a\xff/\xf4\x8f\xbf\xbf/\xC3\xBC");
        let capture = text.split('/').nth(1).expect("two segments");
        assert_eq!(encode(&bytes(capture)), "a%FF");
    }
}
