//! FastCGI records on the wire (FastCGI Specification 1.0, sections 3.3 to 3.5 and 5): what a responder is sent, and
//! what it may send. The crates that there are bring their own connections, or take text only as parameters.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use wire::Outbox;

/// Bytes of a record's head.
const HEAD: usize = 8;
/// Bytes of content that one record can carry.
const CONTENT: usize = u16::MAX as usize;
/// The one version there is.
const VERSION: u8 = 1;
/// The one request of a connection.
const REQUEST: u16 = 1;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Role "responder", without the flag that would keep the connection (nginx: fastcgi_keep_conn off).
const RESPONDER: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];

/// The parameters of a request, in order.
#[derive(Debug, Default)]
pub struct Params(BytesMut);

impl Params {
    /// Adds a parameter at the end.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.size(name.len());
        self.size(value.len());
        self.0.put_slice(name);
        self.0.put_slice(value);
    }

    /// A length: one byte, or four whose highest bit is set.
    fn size(&mut self, size: usize) {
        match u8::try_from(size) {
            Ok(size) if size < 0x80 => self.0.put_u8(size),
            // No head is larger than its bound, which is far below 2^31.
            _ => self.0.put_u32(u32::try_from(size).unwrap_or(u32::MAX) | 0x8000_0000),
        }
    }

    /// The records that begin a request with these parameters.
    pub fn into_head(self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.0.len() + 5 * HEAD);
        record_head(&mut out, BEGIN_REQUEST, RESPONDER.len());
        out.put_slice(&RESPONDER);
        for piece in self.0.chunks(CONTENT) {
            record_head(&mut out, PARAMS, piece.len());
            out.put_slice(piece);
        }
        record_head(&mut out, PARAMS, 0);
        out.freeze()
    }
}

/// Queues a piece of the body.
pub(crate) fn stdin(mut data: Bytes, outbox: &mut Outbox) {
    while !data.is_empty() {
        let piece = data.split_to(data.len().min(CONTENT));
        let mut head = BytesMut::with_capacity(HEAD);
        record_head(&mut head, STDIN, piece.len());
        outbox.push(head.freeze());
        outbox.push(piece);
    }
}

/// Queues the end of the body.
pub(crate) fn end_of_stdin(outbox: &mut Outbox) {
    let mut head = BytesMut::with_capacity(HEAD);
    record_head(&mut head, STDIN, 0);
    outbox.push(head.freeze());
}

fn record_head(out: &mut BytesMut, kind: u8, length: usize) {
    out.put_u8(VERSION);
    out.put_u8(kind);
    out.put_u16(REQUEST);
    out.put_u16(u16::try_from(length).unwrap_or(u16::MAX));
    out.put_u16(0);
}

/// What a responder says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A piece of its answer: head and body alike.
    Stdout(Bytes),
    /// A piece of what it has to complain about.
    Stderr(Bytes),
    /// The answer is over.
    End,
}

/// Bytes that are no record of an answer to the one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord;

/// Cuts the records of an answer out of the bytes of a connection.
#[derive(Debug, Default)]
pub struct Records {
    /// The record that has begun.
    kind: u8,
    /// Bytes of its content, and of its padding, that are still to come.
    content: usize,
    padding: usize,
}

impl Records {
    /// Takes the next piece out of `buffer`; none if more bytes are needed.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Said>, BadRecord> {
        loop {
            if self.content > 0 {
                if buffer.is_empty() {
                    return Ok(None);
                }
                let data = buffer.split_to(self.content.min(buffer.len())).freeze();
                self.content -= data.len();
                return Ok(Some(match self.kind {
                    STDOUT => Said::Stdout(data),
                    _ => Said::Stderr(data),
                }));
            }
            let skipped = self.padding.min(buffer.len());
            buffer.advance(skipped);
            self.padding -= skipped;
            let Some(head) = buffer.first_chunk::<HEAD>().filter(|_| self.padding == 0) else {
                return Ok(None);
            };
            let [version, kind, id_high, id_low, high, low, padding, _] = *head;
            if version != VERSION || u16::from_be_bytes([id_high, id_low]) != REQUEST {
                return Err(BadRecord);
            }
            buffer.advance(HEAD);
            let content = usize::from(u16::from_be_bytes([high, low]));
            match kind {
                // Whoever closes its standard output has no more to say (nginx: without fastcgi_keep_conn).
                END_REQUEST => return Ok(Some(Said::End)),
                STDOUT if content == 0 => return Ok(Some(Said::End)),
                STDOUT | STDERR => {
                    (self.kind, self.content, self.padding) = (kind, content, padding.into());
                }
                _ => return Err(BadRecord),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BadRecord, Params, Records, Said, end_of_stdin, stdin};
    use bytes::{Buf, Bytes, BytesMut};
    use wire::Outbox;

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
        let head = [1, kind, 0, 1, high, low, padding, 0];
        [&head, content, &vec![0; padding.into()]].concat()
    }

    /// What records say, arriving in pieces of `step` bytes; pieces of one kind are joined.
    fn said(bytes: &[u8], step: usize) -> Result<(String, String, bool), BadRecord> {
        let (mut records, mut buffer) = (Records::default(), BytesMut::new());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(said) = records.next(&mut buffer)? {
                match said {
                    Said::Stdout(data) => stdout.extend(data),
                    Said::Stderr(data) => stderr.extend(data),
                    Said::End => {
                        let text = |bytes| String::from_utf8(bytes).expect("text");
                        return Ok((text(stdout), text(stderr), true));
                    }
                }
            }
        }
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ok((text(stdout), text(stderr), false))
    }

    #[test]
    fn records_mean_the_same_in_whatever_pieces_they_arrive() {
        let answer = [
            record(6, b"Status: 200\r\n", 3),
            record(7, b"careful", 0),
            record(6, b"\r\nhello", 0),
            record(3, &[0; 8], 0),
        ]
        .concat();
        let whole = ("Status: 200\r\n\r\nhello".to_owned(), "careful".to_owned(), true);
        for step in [1, 2, 7, 8, 9, answer.len()] {
            assert_eq!(said(&answer, step), Ok(whole.clone()), "{step}");
        }
    }

    #[test]
    fn an_empty_piece_of_standard_output_ends_the_answer_and_nothing_else_does() {
        let open = [record(6, b"a", 0), record(7, b"", 0), record(6, b"b", 255)].concat();
        assert_eq!(said(&open, 3), Ok(("ab".to_owned(), String::new(), false)));
        let ended = [open, record(6, b"", 0), record(6, b"never", 0)].concat();
        assert_eq!(said(&ended, 3), Ok(("ab".to_owned(), String::new(), true)));
    }

    #[test]
    fn what_is_no_record_of_the_answer_is_refused() {
        let strange = [
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            [2, 6, 0, 1, 0, 1, 0, 0, b'a'].to_vec(),
            [1, 6, 0, 2, 0, 1, 0, 0, b'a'].to_vec(),
            record(10, &[0; 8], 0),
            record(5, b"a", 0),
        ];
        for bytes in strange {
            assert_eq!(said(&bytes, 64), Err(BadRecord), "{bytes:?}");
        }
    }

    #[test]
    fn long_parameters_and_bodies_are_spread_over_records() {
        let mut params = Params::default();
        params.push(b"SHORT", b"value");
        params.push(b"LONG", &[b'x'; 70_000]);
        let head = params.into_head();
        assert_eq!(head[..16], [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(head[16..24], [1, 4, 0, 1, 0xff, 0xff, 0, 0]);
        assert_eq!(head[24..36], *b"\x05\x05SHORTvalue");
        assert_eq!(head[36..41], [4, 0x80, 0x01, 0x11, 0x70]);
        assert_eq!(head[head.len() - 8..], [1, 4, 0, 1, 0, 0, 0, 0]);

        let mut outbox = Outbox::default();
        stdin(Bytes::from(vec![b'b'; 65_536]), &mut outbox);
        end_of_stdin(&mut outbox);
        assert_eq!(outbox.remaining(), 8 + 65_535 + 8 + 1 + 8);
    }
}
