//! Where a body ends: decided from the head once, then followed byte by byte.

use super::chunked::{BadBody, ChunkedDecoder, Decoded};
use crate::{Frame, Version, is_token_byte};
use bytes::{Bytes, BytesMut};
use http::StatusCode;

/// How a body is delimited (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// The chunked coding.
    Chunked,
    /// The end of the connection (answers only).
    Close,
}

/// A head that is refused, with the status that says so. The connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRequest(pub StatusCode);

/// The framing of a request, or why it has none that everyone agrees on: by the values of all its fields
/// Transfer-Encoding and Content-Length.
pub(super) fn request_framing<'a>(
    mut codings: impl Iterator<Item = &'a [u8]>,
    mut lengths: impl Iterator<Item = &'a [u8]>,
    version: Version,
) -> Result<Framing, BadRequest> {
    let bad = BadRequest(StatusCode::BAD_REQUEST);
    let Some(coding) = codings.next() else {
        return Ok(content_length(lengths)
            .map_err(|()| bad)?
            .map_or(Framing::None, Framing::Length));
    };
    if codings.next().is_some() || version == Version::Http10 || lengths.next().is_some() {
        return Err(bad);
    }
    if coding.eq_ignore_ascii_case(b"chunked") {
        return Ok(Framing::Chunked);
    }
    let members: Vec<_> = coding.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    let token =
        |member: &&[u8]| !member.is_empty() && member.iter().all(|&byte| is_token_byte(byte));
    let chunked = members.iter().filter(|member| member.eq_ignore_ascii_case(b"chunked"));
    if !members.iter().all(token) || chunked.count() > 1 {
        return Err(bad);
    }
    // Also `identity`, which RFC 9112 no longer knows, as in nginx.
    Err(BadRequest(StatusCode::NOT_IMPLEMENTED))
}

/// The one Content-Length: digits only, once, within bounds (RFC 9110 section 8.6).
fn content_length<'a>(mut lengths: impl Iterator<Item = &'a [u8]>) -> Result<Option<u64>, ()> {
    let Some(length) = lengths.next() else { return Ok(None) };
    if lengths.next().is_some() {
        return Err(());
    }
    number(length).map(Some).ok_or(())
}

/// A number of digits only, within 64 bits with a sign: who counts in those as nginx does may take more for less than
/// nothing, and a body for another message.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit =
        |number: i64, byte: &u8| number.checked_mul(10)?.checked_add(i64::from(byte - b'0'));
    digits.iter().try_fold(0, digit).map(i64::cast_unsigned)
}

/// Cuts a body out of the bytes of a connection.
#[derive(Debug)]
pub enum Decoder {
    /// So many bytes are to come.
    Length(u64),
    /// Chunks are to come.
    Chunked(ChunkedDecoder),
    /// Everything until the connection ends.
    Close,
    /// It is over.
    Done,
}

impl Decoder {
    /// A decoder for a framing.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::None | Framing::Length(0) => Self::Done,
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(ChunkedDecoder::default()),
            Framing::Close => Self::Close,
        }
    }

    /// Whether the body is over.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Bytes of the body that are known to be still to come; a large number where that is not known.
    pub fn expected(&self) -> usize {
        match self {
            Self::Length(remaining) => usize::try_from(*remaining).unwrap_or(usize::MAX),
            Self::Done => 0,
            Self::Chunked(_) | Self::Close => usize::MAX,
        }
    }

    /// Takes the next piece out of `buffer`; none if more bytes are needed, or if the body is over.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, BadBody> {
        match self {
            Self::Done => Ok(None),
            Self::Close => Ok((!buffer.is_empty()).then(|| Frame::Data(buffer.split().freeze()))),
            Self::Length(remaining) => {
                let data = take(buffer, *remaining);
                *remaining -= data.len() as u64;
                if *remaining == 0 {
                    *self = Self::Done;
                }
                Ok((!data.is_empty()).then_some(Frame::Data(data)))
            }
            Self::Chunked(chunked) => match chunked.decode(buffer)? {
                Decoded::Data(data) => Ok(Some(Frame::Data(data))),
                Decoded::More => Ok(None),
                Decoded::End(trailers) => {
                    *self = Self::Done;
                    Ok((!trailers.is_empty()).then_some(Frame::Trailers(trailers)))
                }
            },
        }
    }
}

fn take(buffer: &mut BytesMut, at_most: u64) -> Bytes {
    let count = usize::try_from(at_most).unwrap_or(usize::MAX).min(buffer.len());
    buffer.split_to(count).freeze()
}

#[cfg(test)]
mod tests {
    use super::{BadRequest, request_framing};
    use crate::{Headers, Version};

    #[test]
    fn a_length_that_is_none_in_64_bits_with_a_sign_is_refused() {
        for (length, is_taken) in [
            ("9223372036854775807", true),
            ("9223372036854775808", false),
            ("18446744073709551615", false),
            ("18446744073709551616", false),
        ] {
            let lengths = [length.as_bytes()].into_iter();
            let framing = request_framing(std::iter::empty(), lengths, Version::Http11);
            assert_eq!(framing.is_ok(), is_taken, "{length}");
        }
    }

    #[test]
    fn codings_that_nobody_knows_are_told_from_those_that_may_hide_something() {
        for (coding, length, status) in [
            ("identity", None, 501),
            ("identity, chunked", None, 501),
            ("gzip", None, 501),
            ("identity", Some("3"), 400),
            ("chunked, chunked", None, 400),
            ("chunked,", None, 400),
        ] {
            let mut headers = Headers::default();
            headers.add("transfer-encoding", coding);
            length.into_iter().for_each(|length| headers.add("content-length", length));
            let [codings, lengths] =
                ["transfer-encoding", "content-length"].map(|name| headers.all(name));
            let refused = request_framing(codings, lengths, Version::Http11);
            let told = refused.map_err(|BadRequest(status)| status.as_u16());
            assert_eq!(told, Err(status), "{coding}, {length:?}");
        }
    }
}
