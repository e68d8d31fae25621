//! The chunked transfer coding, strictly (RFC 9112 section 7.1): digits are hexadecimal digits, lines end in CR LF,
//! sizes and extensions are bounded. Small chunks that came together are handed on as one piece: what a body costs
//! depends on its bytes, not on how its sender cut them up.

use super::lines::{Bounds, parse_trailers};
use crate::Headers;
use bytes::{Buf, Bytes, BytesMut};

/// A body that breaks its own framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBody;

/// Bytes of one size line, extensions included.
const SIZE_LINE: usize = 256;
/// Bytes of all extensions of a body.
const EXTENSIONS: usize = 8 << 10;
/// Bytes and lines of a trailer section.
const TRAILERS: usize = 8 << 10;
const TRAILER_LINES: usize = 64;
/// Data of one chunk that is copied to be handed on together with that of others; more is worth a piece of its own.
const SMALL: usize = 4 << 10;

/// Follows a chunked body.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
    extensions: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    Broken,
}

/// What comes next.
pub enum Decoded {
    Data(Bytes),
    More,
    End(Headers),
}

/// What the buffer begins with.
enum Found {
    /// So many bytes of a chunk.
    Data(usize),
    /// Not enough to tell.
    More,
    /// The trailer section.
    Trailers,
}

impl ChunkedDecoder {
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, BadBody> {
        let first = match self.next(buffer)? {
            Found::Data(count) => {
                self.took(count);
                buffer.split_to(count)
            }
            Found::More => return Ok(Decoded::More),
            Found::Trailers => return trailers(buffer),
        };
        if first.len() > SMALL {
            return Ok(Decoded::Data(first.freeze()));
        }
        let mut joined = first;
        loop {
            match self.next(buffer) {
                Ok(Found::Data(count)) if count <= SMALL => {
                    self.took(count);
                    joined.extend_from_slice(&buffer[..count]);
                    buffer.advance(count);
                }
                Ok(_) => break,
                // What came before is still to be had.
                Err(BadBody) => {
                    self.state = State::Broken;
                    break;
                }
            }
        }
        Ok(Decoded::Data(joined.freeze()))
    }

    /// What the buffer begins with, past everything that is not data.
    fn next(&mut self, buffer: &mut BytesMut) -> Result<Found, BadBody> {
        loop {
            match self.state {
                State::Size => match self.size(buffer)? {
                    None => return Ok(Found::More),
                    Some(0) => self.state = State::Trailers,
                    Some(size) => self.state = State::Data(size),
                },
                State::Data(0) => self.state = State::DataEnd,
                State::Data(_) if buffer.is_empty() => return Ok(Found::More),
                State::Data(remaining) => {
                    let remaining = usize::try_from(remaining).unwrap_or(usize::MAX);
                    return Ok(Found::Data(remaining.min(buffer.len())));
                }
                State::DataEnd => match buffer.as_ref() {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        self.state = State::Size;
                    }
                    [] | [b'\r'] => return Ok(Found::More),
                    _ => return Err(BadBody),
                },
                State::Trailers => return Ok(Found::Trailers),
                State::Broken => return Err(BadBody),
            }
        }
    }

    /// Notes that data of the chunk were taken.
    fn took(&mut self, count: usize) {
        if let State::Data(remaining) = &mut self.state {
            *remaining -= count as u64;
        }
    }

    /// The size of the next chunk, once its line is there.
    fn size(&mut self, buffer: &mut BytesMut) -> Result<Option<u64>, BadBody> {
        let Some(newline) = memchr::memchr(b'\n', &buffer[..buffer.len().min(SIZE_LINE)]) else {
            return if buffer.len() >= SIZE_LINE { Err(BadBody) } else { Ok(None) };
        };
        let line = buffer[..=newline].strip_suffix(b"\r\n").ok_or(BadBody)?;
        let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
        if digits == 0 || digits > 16 {
            return Err(BadBody);
        }
        self.extension(&line[digits..])?;
        let text = std::str::from_utf8(&line[..digits]).map_err(|_| BadBody)?;
        let size = u64::from_str_radix(text, 16).map_err(|_| BadBody)?;
        buffer.advance(newline + 1);
        // The upper half of the range can only be an attack on somebody's arithmetic.
        if size > i64::MAX as u64 { Err(BadBody) } else { Ok(Some(size)) }
    }

    /// Extensions are read past, never forwarded; a body may not consist of them.
    fn extension(&mut self, extension: &[u8]) -> Result<(), BadBody> {
        if extension.is_empty() {
            return Ok(());
        }
        self.extensions += extension.len();
        let allowed = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        let valid = extension[0] == b';' && extension.iter().all(allowed);
        if valid && self.extensions <= EXTENSIONS { Ok(()) } else { Err(BadBody) }
    }
}

fn trailers(buffer: &mut BytesMut) -> Result<Decoded, BadBody> {
    if buffer.starts_with(b"\r\n") {
        buffer.advance(2);
        return Ok(Decoded::End(Headers::default()));
    }
    let Some(end) = super::head_end(buffer, 0) else {
        return if buffer.len() > TRAILERS { Err(BadBody) } else { Ok(Decoded::More) };
    };
    let section = buffer.split_to(end).freeze();
    parse_trailers(&section, Bounds { count: TRAILER_LINES, line: TRAILERS })
        .map(Decoded::End)
        .map_err(|_| BadBody)
}

#[cfg(test)]
mod tests {
    use super::{ChunkedDecoder, Decoded};
    use bytes::BytesMut;

    /// The data of a body, or none if it is refused or incomplete.
    fn decode(body: &str) -> Option<String> {
        let mut buffer = BytesMut::from(body);
        let mut decoder = ChunkedDecoder::default();
        let mut data = Vec::new();
        loop {
            match decoder.decode(&mut buffer).ok()? {
                Decoded::Data(piece) => data.extend_from_slice(&piece),
                Decoded::More => return None,
                Decoded::End(_) => return String::from_utf8(data).ok(),
            }
        }
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(decode("5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n").as_deref(), Some("hello!"));
        assert_eq!(decode("000\r\n\r\n").as_deref(), Some(""));
    }

    #[test]
    fn chunks_that_came_together_are_one_piece() {
        let mut buffer = BytesMut::from("1\r\na\r\n".repeat(1000).as_str());
        buffer.extend_from_slice(b"2\r\nb");
        let mut decoder = ChunkedDecoder::default();
        let mut sizes = Vec::new();
        while let Ok(Decoded::Data(piece)) = decoder.decode(&mut buffer) {
            sizes.push(piece.len());
        }
        assert_eq!(sizes, [1001]);
        buffer.extend_from_slice(b"b\r\n2000\r\n");
        buffer.extend_from_slice(&[b'c'; 0x2000]);
        buffer.extend_from_slice(b"\r\n1\r\nd\r\n0\r\n\r\n");
        while let Ok(Decoded::Data(piece)) = decoder.decode(&mut buffer) {
            sizes.push(piece.len());
        }
        // A large chunk is not copied.
        assert_eq!(sizes, [1001, 1, 0x2000, 1]);
    }

    #[test]
    fn what_came_before_a_break_is_still_to_be_had() {
        let mut buffer = BytesMut::from("1\r\na\r\n1\r\nb\r\nX\r\n");
        let mut decoder = ChunkedDecoder::default();
        assert!(matches!(decoder.decode(&mut buffer), Ok(Decoded::Data(data)) if data == "ab"));
        assert!(decoder.decode(&mut buffer).is_err() && decoder.decode(&mut buffer).is_err());
    }

    #[test]
    fn sizes_that_readers_disagree_about_are_refused() {
        for size in
            ["0x5", "+5", "-5", " 5", "5 ", "", "Z", "10000000000000005", "ffffffffffffffff", "5\n"]
        {
            assert_eq!(decode(&format!("{size}\r\nabcde\r\n0\r\n\r\n")), None, "{size:?}");
        }
        assert_eq!(decode("5\r\nabcdeXX0\r\n\r\n"), None);
        assert_eq!(decode(&format!("{}5\r\nabcde\r\n0\r\n\r\n", "0".repeat(5000))), None);
    }
}
