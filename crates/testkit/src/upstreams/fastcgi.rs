//! The FastCGI responder: notes the parameters as headers and answers one sentence.

use super::Pod;
use crate::{
    latin1,
    wire::{Failure, Pair, Wire, value},
};

const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;

const ANSWER: &[u8] =
    b"Status: 200 OK\r\nContent-Type: text/plain\r\nX-Fcgi: yes\r\n\r\nfastcgi answer";

/// Answers the one request of a connection.
pub(super) async fn serve(pod: &Pod, mut wire: Wire) -> Result<(), Failure> {
    let (mut params, mut stdin) = (Vec::new(), Vec::new());
    loop {
        let head = wire.exactly(8).await?;
        let (id, length) = ([head[2], head[3]], u16::from_be_bytes([head[4], head[5]]));
        let content = wire.exactly(usize::from(length)).await?;
        wire.exactly(usize::from(head[6])).await?;
        match head[1] {
            PARAMS => params.extend(content),
            STDIN if content.is_empty() => {
                let headers = parameters(&params).ok_or(Failure::Malformed)?;
                let text = |name| value(&headers, name).unwrap_or_default().to_owned();
                let mut seen =
                    pod.saw("FastCGI", &text("REQUEST_METHOD"), &text("REQUEST_URI"), &stdin);
                seen.headers = Some(headers);
                pod.journal.note(seen);
                let parts = [
                    record(STDOUT, id, ANSWER),
                    record(STDOUT, id, b""),
                    record(END_REQUEST, id, &[0; 8]),
                ];
                return wire.send(&parts.concat()).await;
            }
            STDIN => stdin.extend(content),
            _ => {}
        }
    }
}

fn record(kind: u8, id: [u8; 2], content: &[u8]) -> Vec<u8> {
    let length =
        u16::try_from(content.len()).expect("what this fixture answers is short").to_be_bytes();
    let head = [1, kind, id[0], id[1], length[0], length[1], 0, 0];
    [&head, content].concat()
}

fn parameters(mut rest: &[u8]) -> Option<Vec<Pair>> {
    let mut out = Vec::new();
    while !rest.is_empty() {
        let name = size(&mut rest)?;
        let value = size(&mut rest)?;
        let (name, tail) = rest.split_at_checked(name)?;
        let (value, tail) = tail.split_at_checked(value)?;
        out.push((latin1::text(name), latin1::text(value)));
        rest = tail;
    }
    Some(out)
}

/// A length: one byte, or four where its highest bit is set.
fn size(rest: &mut &[u8]) -> Option<usize> {
    let first = *rest.first()?;
    if first & 0x80 == 0 {
        *rest = &rest[1..];
        return Some(usize::from(first));
    }
    let bytes = rest.first_chunk::<4>()?;
    *rest = &rest[4..];
    Some((u32::from_be_bytes(*bytes) & 0x7fff_ffff) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_with_short_and_long_lengths_are_read() {
        let long = "v".repeat(300);
        let mut bytes = vec![1, 2];
        bytes.extend(b"ABC\x01");
        bytes.extend((300_u32 | 0x8000_0000).to_be_bytes());
        bytes.extend(b"D");
        bytes.extend(long.bytes());
        let want = vec![("A".to_owned(), "BC".to_owned()), ("D".to_owned(), long)];
        assert_eq!(parameters(&bytes), Some(want));
        assert_eq!(parameters(&[1, 9, b'A']), None);
    }
}
