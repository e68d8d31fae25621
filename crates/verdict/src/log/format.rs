//! `log_format` of nginx, read the other way round: text with variables becomes what finds their values in a line.

use super::json::Keys;
use super::record::{Record, is_enough};
use super::template::Template;

/// The longest format.
const LONGEST: usize = 16 << 10;
/// The most variables of a format.
const MOST: usize = 128;

/// `log-format-upstream` of ingress-nginx where nobody sets it.
pub const DEFAULT: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id"#;

/// How values are escaped in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `\xXX`
    Default,
    /// As in strings of JSON (`log-format-escape-json`).
    Json,
    /// Not at all (`log-format-escape-none`).
    None,
}

/// Why a format cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FormatError {
    /// Too long, or too many variables.
    #[error("the log format is longer than {LONGEST} bytes or has more than {MOST} variables")]
    TooLarge,
    /// A `$` without a name.
    #[error(
        "the log format has a $ without the name of a variable at byte {0}: write $name or ${{name}}"
    )]
    NoName(usize),
    /// Two variables side by side.
    #[error(
        "the log format has ${0} and ${1} side by side, with nothing that tells where one ends: put a space between them"
    )]
    SideBySide(String, String),
    /// Nothing can be asked of such lines.
    #[error(
        "the log format has no {0}: nothing can be compared; the lines must have been written with it ($request and $status at least)"
    )]
    TooLittle(&'static str),
}

/// A piece of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
}

/// What finds the values of variables in lines.
#[derive(Debug)]
pub struct Format {
    template: Template,
    keys: Option<Keys>,
}

impl Format {
    /// Reads a format.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn new(text: &str, escape: Escape) -> Result<Self, FormatError> {
        let pieces = pieces(text)?;
        let names: Vec<&str> = pieces.iter().filter_map(name).collect();
        is_enough(&names).map_err(FormatError::TooLittle)?;
        let keys = Keys::of(text)?;
        let escape = if keys.is_some() && escape == Escape::Default && looks_json(text) {
            Escape::Json
        } else {
            escape
        };
        // Where a line is an object, its keys are looked for; its text only where it is no JSON after all.
        let template = match (Template::new(&pieces, escape), &keys) {
            (Err(FormatError::SideBySide(..)), Some(_)) => Template::new(&[], escape)?,
            (template, _) => template?,
        };
        Ok(Self { template, keys })
    }

    /// The record of a line; none if the line is not of this format.
    pub fn record(&self, line: &str) -> Option<Record> {
        let line = line.trim_end();
        let of_keys = self.keys.as_ref().and_then(|keys| keys.values(line));
        let values = of_keys.or_else(|| self.template.values(line))?;
        Record::of(values)
    }
}

/// Whether a format is written as an object of JSON: its values were hardly escaped otherwise.
fn looks_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn name(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text(_) => None,
        Piece::Variable(name) => Some(name),
    }
}

/// Texts and variables of a format.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, FormatError> {
    if text.len() > LONGEST {
        return Err(FormatError::TooLarge);
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_owned()));
        }
        let after = &rest[at + 1..];
        let (braced, body) = after.strip_prefix('{').map_or((false, after), |body| (true, body));
        let end = body
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .unwrap_or(body.len());
        let closed = !braced || body[end..].starts_with('}');
        if end == 0 || !closed {
            return Err(FormatError::NoName(text.len() - rest.len() + at));
        }
        pieces.push(Piece::Variable(body[..end].to_owned()));
        rest = &body[end + usize::from(braced)..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    if pieces.iter().filter_map(name).count() > MOST {
        return Err(FormatError::TooLarge);
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(format: &str, line: &str) -> Option<Record> {
        Format::new(format, Escape::Default).unwrap().record(line)
    }

    #[test]
    fn lines_of_the_default_format_are_read() {
        let line = r#"203.0.113.9 - bob smith [01/Jan/2026:00:00:00 +0000] "GET /a\x22b?q=1 HTTP/1.1" 502 12 "-" "a [b] c" 90 0.1 [demo-echo-80] [] 10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80 0, 12 0.1, 0.2 502, 502 0123"#;
        let record = record(DEFAULT, line).unwrap();
        assert_eq!(record.method, "GET");
        assert_eq!(record.target, "/a\"b?q=1");
        assert_eq!(record.status, 502);
        assert_eq!(record.upstream.as_deref(), Some("demo-echo-80"));
        assert_eq!(record.alternative.as_deref(), Some(""));
        assert_eq!(record.tried, Some(true));
        assert_eq!(record.host, None);
        assert_eq!(record.headers, [("user-agent".to_owned(), "a [b] c".to_owned())]);
        let line = r#"203.0.113.9 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/2.0" 308 12 "-" "-" 90 0.1 [demo-echo-80] [] - - - - 0123"#;
        assert_eq!(self::record(DEFAULT, line).unwrap().tried, Some(false));
        assert!(self::record(DEFAULT, "something else").is_none());
    }

    #[test]
    fn formats_are_read_as_nginx_reads_them() {
        let line = "shop.test https 200 GET /a b HTTP/1.1";
        let record = record("${host} $scheme $status $request", line).unwrap();
        assert_eq!((record.host.as_deref(), record.secure), (Some("shop.test"), Some(true)));
        assert_eq!(record.target, "/a b");
    }

    #[test]
    fn formats_that_cannot_be_used_say_why() {
        let of = |text: &str| Format::new(text, Escape::Default).unwrap_err();
        assert_eq!(of("$request $ $status"), FormatError::NoName(9));
        assert_eq!(of("${request $status"), FormatError::NoName(0));
        assert!(matches!(of("$request$status"), FormatError::SideBySide(..)));
        assert!(matches!(of("$host"), FormatError::TooLittle(_)));
        assert_eq!(of(&"$request $status ".repeat(100)), FormatError::TooLarge);
        assert_eq!(of(&"x".repeat(LONGEST + 1)), FormatError::TooLarge);
    }
}
