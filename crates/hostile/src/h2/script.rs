//! The table's notation for HTTP/2: `HEADERS{a=b | c=d} DATA{..} TRAILERS{..}`, and the floods in words.

use super::block::Raw;
use crate::case::escape;
use crate::flood::Flood;
use anyhow::{Context, Result, bail};

/// What an HTTP/2 client does.
#[derive(Clone, Debug)]
pub enum Script {
    /// One stream.
    Stream(Vec<Part>),
    /// Floods, each on a connection of its own.
    Floods(Vec<(Flood, usize)>),
}

/// One part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A header block, at the start or as trailers.
    Headers(Vec<Raw>),
    /// Content.
    Data(Vec<u8>),
}

/// Reads the notation.
pub fn parse(text: &str) -> Result<Script> {
    if text.trim_start().starts_with("HEADERS{") { stream(text) } else { floods(text) }
}

fn stream(text: &str) -> Result<Script> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, from) = rest.split_once('{').context("a part is written NAME{...}")?;
        let close = closing(from).with_context(|| format!("{name}{{ without }}"))?;
        let inner = &from[..close];
        parts.push(match name.trim() {
            "HEADERS" | "TRAILERS" => Part::Headers(fields(inner)?),
            "DATA" => Part::Data(escape::decode_bytes(inner)?),
            other => bail!("unknown part {other:?}"),
        });
        rest = from[close + 1..].trim_start();
    }
    Ok(Script::Stream(parts))
}

/// Where the brace that is open already closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

fn fields(text: &str) -> Result<Vec<Raw>> {
    text.split(" | ").map(field).collect()
}

/// The name ends at the first `=`; a value may hold more of them.
fn field(text: &str) -> Result<Raw> {
    let (name, value) =
        text.split_once('=').with_context(|| format!("{text:?} is not name=value"))?;
    Ok((escape::decode_bytes(name)?, escape::decode_bytes(value)?))
}

fn floods(text: &str) -> Result<Script> {
    let mut floods = Vec::new();
    let text = text.to_ascii_lowercase();
    for part in text.split(" / ") {
        let count =
            part.rsplit_once(" x ").and_then(|(_, n)| n.trim().parse().ok()).unwrap_or(10_000);
        let has = |word: &str| part.contains(word);
        let flood = match () {
            () if has("hpack") => Flood::HpackBomb,
            () if has("madeyoureset") || has("overflow") => Flood::MadeYouReset,
            () if has("streams") => Flood::WindowStall,
            () if has("continuation") => Flood::Continuation,
            () if has("headers") && has("rst_stream") => Flood::RapidReset,
            () if has("headers") => Flood::MadeYouReset,
            () if has("settings") => Flood::Settings,
            () if has("ping") => Flood::Ping,
            () if has("empty data") => Flood::EmptyData,
            () if has("priority") => Flood::Priority,
            () if has("window_update") => Flood::WindowUpdate,
            () => bail!("neither HEADERS{{..}} nor a flood that is known: {part:?}"),
        };
        floods.push((flood, count));
    }
    Ok(Script::Floods(floods))
}

#[cfg(test)]
mod tests {
    use super::{Part, Script, parse};
    use crate::flood::Flood;

    #[test]
    fn names_and_values_keep_every_byte() {
        let text = r"HEADERS{:method=GET | foo: bar\r\nhost=b | =1 | x= a\t | y={{REPEAT:a:3}}} DATA{0\r\n}";
        let Script::Stream(parts) = parse(text).expect("legal notation") else {
            panic!("a stream")
        };
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let fields = [
            pair(":method", "GET"),
            pair("foo: bar\r\nhost", "b"),
            pair("", "1"),
            pair("x", " a\t"),
            pair("y", "aaa"),
        ];
        assert_eq!(parts, [Part::Headers(fields.to_vec()), Part::Data(b"0\r\n".to_vec())]);
    }

    #[test]
    fn floods_are_recognised_by_their_words() {
        let text = "SETTINGS x 7 / PING x 8 / empty DATA x 9 / PRIORITY x 10000";
        let Script::Floods(floods) = parse(text).expect("known words") else { panic!("floods") };
        let wanted = [
            (Flood::Settings, 7),
            (Flood::Ping, 8),
            (Flood::EmptyData, 9),
            (Flood::Priority, 10_000),
        ];
        assert_eq!(floods, wanted);
        assert!(parse("something else").is_err());
    }
}
