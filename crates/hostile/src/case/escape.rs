//! The escapes of the table: `\r \n \t \0 \\ \xNN`, `{{REPEAT:x:n}}`, `{{FIN}}`, `{{BACKEND_EARLY_RESPONSE}}`.

use anyhow::{Context, Result, bail};

/// A part of what one side sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The sending side is closed, the other stays open.
    Fin,
    /// The upstream answers once it has the head, without reading the body.
    EarlyAnswer,
}

/// Turns the table's notation into what is sent.
pub fn decode(text: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let (before, from) = rest.split_at(open);
        if from.starts_with("{{...generated") {
            rest = elided(before, from, &mut bytes)?;
            continue;
        }
        bytes.extend(unescape(before)?);
        let close = from.find("}}").context("{{ without }}")?;
        let directive = &from[2..close];
        rest = &from[close + 2..];
        let special = match directive {
            "FIN" => Piece::Fin,
            "BACKEND_EARLY_RESPONSE" => Piece::EarlyAnswer,
            _ => {
                bytes.extend(repeat(directive)?);
                continue;
            }
        };
        flush(&mut bytes, &mut pieces);
        pieces.push(special);
    }
    bytes.extend(unescape(rest)?);
    flush(&mut bytes, &mut pieces);
    Ok(pieces)
}

/// The bytes of a text without `{{FIN}}` and its like.
pub fn decode_bytes(text: &str) -> Result<Vec<u8>> {
    match decode(text)?.as_slice() {
        [] => Ok(Vec::new()),
        [Piece::Bytes(bytes)] => Ok(bytes.clone()),
        _ => bail!("only bytes may stand in {text:?}"),
    }
}

fn flush(bytes: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
    if !bytes.is_empty() {
        pieces.push(Piece::Bytes(std::mem::take(bytes)));
    }
}

fn repeat(directive: &str) -> Result<Vec<u8>> {
    let (what, count) = directive
        .strip_prefix("REPEAT:")
        .and_then(|body| body.rsplit_once(':'))
        .with_context(|| format!("unknown directive {{{{{directive}}}}}"))?;
    let count: usize = count.parse().with_context(|| format!("count {count:?}"))?;
    Ok(unescape(what)?.repeat(count))
}

/// `X-0: y\r\nX-1: y ... X-43: y\{{...generated, n bytes in total...}}-2991: y`: the lines in the middle of a run of
/// numbered header lines are left out in the table; both ends show the pattern, so the run is made anew.
fn elided<'a>(before: &str, from: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str> {
    let start = before.find("X-0: ").context("a generated row has to start its run with X-0")?;
    let value = before[start + 5..].split('\\').next().unwrap_or_default();
    let close = from.find("}}").context("{{ without }}")?;
    let tail = &from[close + 2..];
    let end = tail.rfind("X-").context("a generated row has to end its run with X-n")?;
    let (number, rest) =
        tail[end + 2..].split_once(':').context("the run's last line has no colon")?;
    let last: usize =
        number.parse().with_context(|| format!("the run's last number {number:?}"))?;
    bytes.extend(unescape(&before[..start])?);
    let value = unescape(value)?;
    for n in 0..last {
        bytes.extend(format!("X-{n}: ").into_bytes());
        bytes.extend(&value);
        bytes.extend(b"\r\n");
    }
    bytes.extend(format!("X-{last}:").into_bytes());
    Ok(rest)
}

fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next() {
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits = [rest.next(), rest.next()].map(|digit| digit.unwrap_or(b'?'));
                let digits = str::from_utf8(&digits).context("\\x needs two hex digits")?;
                u8::from_str_radix(digits, 16).with_context(|| format!("\\x{digits}"))?
            }
            other => bail!("unknown escape \\{:?}", other.map(char::from)),
        });
    }
    Ok(out)
}
