//! WebSocket frames, enough to send one text and get it back.

use openssl::{base64, sha};

use crate::wire::{Failure, Wire};

/// A close frame without a reason.
pub const CLOSE: [u8; 2] = [0x88, 0];

/// What a frame starts with when it is one whole text.
const TEXT: u8 = 0x81;

/// A frame without its mask.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// The first byte: final or not, and what it is.
    kind: u8,
    /// The data.
    pub payload: Vec<u8>,
}

impl Frame {
    /// One whole text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { kind: TEXT, payload: text.as_bytes().to_vec() }
    }

    /// Whether the frame ends the connection.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.kind & 15 == 8
    }

    /// The frame as bytes; clients give a mask.
    #[must_use]
    pub fn bytes(&self, mask: Option<[u8; 4]>) -> Vec<u8> {
        let flag = if mask.is_some() { 0x80 } else { 0 };
        let mut out = vec![self.kind];
        match (u8::try_from(self.payload.len()), u16::try_from(self.payload.len())) {
            (Ok(short @ 0..126), _) => out.push(flag | short),
            (_, Ok(long)) => {
                out.push(flag | 126);
                out.extend(long.to_be_bytes());
            }
            _ => {
                out.push(flag | 127);
                out.extend((self.payload.len() as u64).to_be_bytes());
            }
        }
        out.extend(mask.iter().flatten());
        out.extend(masked(&self.payload, mask.unwrap_or_default()));
        out
    }
}

/// Reads one frame.
///
/// # Errors
/// When the connection ends first.
pub async fn read(wire: &mut Wire) -> Result<Frame, Failure> {
    let start = wire.exactly(2).await?;
    let length = match start[1] & 127 {
        126 => number(&wire.exactly(2).await?),
        127 => number(&wire.exactly(8).await?),
        short => usize::from(short),
    };
    let mask = if start[1] & 0x80 == 0 { vec![0; 4] } else { wire.exactly(4).await? };
    let mask = *mask.first_chunk().expect("a mask has four bytes");
    Ok(Frame { kind: start[0], payload: masked(&wire.exactly(length).await?, mask).collect() })
}

/// What a server answers to a client's key.
#[must_use]
pub fn accept_key(key: &str) -> String {
    base64::encode_block(&sha::sha1(
        format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes(),
    ))
}

fn masked(data: &[u8], mask: [u8; 4]) -> impl Iterator<Item = u8> {
    data.iter().zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask)
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |sum: usize, byte| sum.saturating_mul(256).saturating_add(usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_of_every_size_survive_masked_or_not() {
        for size in [0, 1, 125, 126, 65_535, 65_536] {
            for mask in [None, Some(*b"mask")] {
                let frame = Frame { kind: TEXT, payload: vec![b'x'; size] };
                let (near, far) = tokio::io::duplex(1 << 20);
                Wire::new(near, None).send(&frame.bytes(mask)).await.unwrap();
                assert_eq!(read(&mut Wire::new(far, None)).await.unwrap(), frame, "{size}");
            }
        }
    }

    #[test]
    fn the_key_of_the_standard_is_accepted_as_the_standard_says() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
