//! The client's side of HTTP/2, as cheap as it can be: prepared header blocks, answers counted and not kept.

use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::frames::{self, Frame, flag, kind};
use super::talk::{After, Finished};

const SETTINGS_ENABLE_PUSH: u16 = 2;
const SETTINGS_INITIAL_WINDOW: u16 = 4;
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;
/// `:status 200` in HPACK's static table.
const STATUS_200: u8 = 0x88;

/// An HTTP/2 connection with a fixed number of streams at once.
pub(super) struct Client {
    limit: usize,
    grpc: bool,
    streams: Vec<Stream>,
    next: u32,
    kept: Vec<u8>,
    received: u32,
    leaving: bool,
}

struct Stream {
    id: u32,
    intended: Instant,
    answered: bool,
    length: usize,
}

/// A request, ready to be sent on any stream.
pub(crate) struct Prepared {
    block: Vec<u8>,
    body: Vec<u8>,
}

impl Prepared {
    /// A GET without a body.
    pub(crate) fn get(host: &str, path: &str, scheme_is_https: bool) -> Self {
        let mut block = vec![0x82, if scheme_is_https { 0x87 } else { 0x86 }];
        frames::write_indexed_name(&mut block, 4, path);
        frames::write_indexed_name(&mut block, 1, host);
        frames::write_indexed_name(&mut block, 58, "fairway-bench");
        frames::write_indexed_name(&mut block, 19, "*/*");
        Self { block, body: Vec::new() }
    }

    /// A unary gRPC call.
    pub(crate) fn grpc(host: &str, path: &str, scheme_is_https: bool, message: &[u8]) -> Self {
        let mut block = vec![0x83, if scheme_is_https { 0x87 } else { 0x86 }];
        frames::write_indexed_name(&mut block, 4, path);
        frames::write_indexed_name(&mut block, 1, host);
        frames::write_indexed_name(&mut block, 31, "application/grpc");
        frames::write_indexed_name(&mut block, 58, "fairway-bench");
        frames::write_header(&mut block, "te", "trailers");
        Self { block, body: grpc_message(message) }
    }

    /// As bytes, the way `Client::start` takes it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = (self.block.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.block);
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// A message with the five bytes that gRPC puts before it.
pub(super) fn grpc_message(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

impl Client {
    pub(super) fn new(limit: usize, grpc: bool, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(frames::PREFACE);
        let settings = [(SETTINGS_ENABLE_PUSH, 0), (SETTINGS_INITIAL_WINDOW, STREAM_WINDOW)];
        frames::write_settings(out, &settings);
        frames::write(out, kind::WINDOW_UPDATE, 0, 0, &CONNECTION_WINDOW.to_be_bytes());
        let streams = Vec::with_capacity(limit);
        Self { limit, grpc, streams, next: 1, kept: Vec::new(), received: 0, leaving: false }
    }

    pub(super) fn free(&self) -> usize {
        if self.leaving { 0 } else { self.limit - self.streams.len() }
    }

    pub(super) fn busy(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn start(&mut self, request: &[u8], intended: Instant, out: &mut Vec<u8>) {
        let (length, rest) = request.split_first_chunk().expect("bytes of a prepared request");
        let (block, body) = rest.split_at(u32::from_be_bytes(*length) as usize);
        let id = self.next;
        self.next += 2;
        if body.is_empty() {
            frames::write(out, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, block);
        } else {
            frames::write(out, kind::HEADERS, flag::END_HEADERS, id, block);
            frames::write(out, kind::DATA, flag::END_STREAM, id, body);
        }
        self.streams.push(Stream { id, intended, answered: false, length: 0 });
    }

    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Finished>,
    ) -> Result<After> {
        let mut kept = std::mem::take(&mut self.kept);
        let mut rest = bytes;
        if !kept.is_empty() {
            kept.extend_from_slice(bytes);
            rest = &kept;
        }
        while let Some((frame, length)) = Frame::first(rest) {
            self.frame(&frame, out, done)?;
            rest = &rest[length..];
        }
        self.kept = rest.to_vec();
        Ok(if self.leaving && self.streams.is_empty() { After::Reconnect } else { After::Continue })
    }

    fn frame(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
        done: &mut Vec<Finished>,
    ) -> Result<()> {
        match frame.kind {
            kind::HEADERS => self.headers(frame, done),
            kind::DATA => self.body(frame, out, done),
            kind::SETTINGS if !frame.has(flag::ACK) => {
                frames::write(out, kind::SETTINGS, flag::ACK, 0, &[]);
                Ok(())
            }
            kind::PING if !frame.has(flag::ACK) => {
                frames::write(out, kind::PING, flag::ACK, 0, frame.payload);
                Ok(())
            }
            kind::GOAWAY => self.goaway(frame, done),
            kind::RST_STREAM => bail!("stream {} was reset: {}", frame.stream, frame.number()),
            _ => Ok(()),
        }
    }

    fn headers(&mut self, frame: &Frame<'_>, done: &mut Vec<Finished>) -> Result<()> {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == frame.stream) else {
            bail!("headers on stream {}, which is not open", frame.stream);
        };
        if !stream.answered {
            ensure!(is_200(frame.content()), "another status than 200: {:x?}", frame.content());
            stream.answered = true;
        }
        if frame.has(flag::END_STREAM) { self.end(frame.stream, done) } else { Ok(()) }
    }

    fn body(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
        done: &mut Vec<Finished>,
    ) -> Result<()> {
        self.received += frame.payload.len() as u32;
        if self.received > CONNECTION_WINDOW / 2 {
            frames::write(out, kind::WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes());
            self.received = 0;
        }
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == frame.stream) {
            stream.length += frame.content().len();
        }
        if frame.has(flag::END_STREAM) { self.end(frame.stream, done) } else { Ok(()) }
    }

    fn end(&mut self, id: u32, done: &mut Vec<Finished>) -> Result<()> {
        let Some(place) = self.streams.iter().position(|stream| stream.id == id) else {
            bail!("the end of stream {id}, which is not open");
        };
        let stream = self.streams.swap_remove(place);
        ensure!(stream.answered, "a body without headers");
        // A failed call has trailers and no message.
        ensure!(!self.grpc || stream.length > 5, "a gRPC answer without a message");
        done.push(Finished::Answered(stream.intended));
        Ok(())
    }

    fn goaway(&mut self, frame: &Frame<'_>, done: &mut Vec<Finished>) -> Result<()> {
        let code = frame.payload.get(4..8).unwrap_or_default();
        ensure!(code == [0; 4], "GOAWAY with error {code:?}");
        self.leaving = true;
        let last = frame.number();
        self.streams.retain(|stream| {
            if stream.id > last {
                done.push(Finished::Refused(stream.intended));
            }
            stream.id <= last
        });
        Ok(())
    }
}

/// Whether a header block opens with status 200, after changes of the table's size.
fn is_200(mut block: &[u8]) -> bool {
    while let [first, rest @ ..] = block
        && first >> 5 == 1
    {
        // A size of 31 and more goes on in further bytes, the last of which lacks the high bit.
        let more = if first & 31 == 31 {
            1 + rest.iter().take_while(|byte| **byte >= 0x80).count()
        } else {
            0
        };
        block = rest.get(more..).unwrap_or_default();
    }
    block.first() == Some(&STATUS_200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(frames: &[u8], grpc: bool) -> Result<usize> {
        let mut client = Client::new(4, grpc, &mut Vec::new());
        let request = Prepared::get("a.test", "/", true).bytes();
        client.start(&request, Instant::now(), &mut Vec::new());
        let mut done = Vec::new();
        for byte in frames {
            client.receive(&[*byte], &mut Vec::new(), &mut done)?;
        }
        Ok(done.iter().filter(|done| matches!(done, Finished::Answered(_))).count())
    }

    #[test]
    fn an_answer_counts_when_its_stream_ends() {
        let mut bytes = Vec::new();
        frames::write(&mut bytes, kind::HEADERS, flag::END_HEADERS, 1, &[0x88]);
        assert_eq!(answered(&bytes, false).expect("headers"), 0);
        frames::write(&mut bytes, kind::DATA, flag::END_STREAM, 1, b"hello");
        assert_eq!(answered(&bytes, false).expect("answer"), 1);
    }

    #[test]
    fn another_status_or_a_call_without_a_message_is_an_error() {
        let mut bytes = Vec::new();
        let flags = flag::END_HEADERS | flag::END_STREAM;
        frames::write(&mut bytes, kind::HEADERS, flags, 1, &[0x8d]);
        assert!(answered(&bytes, false).is_err());
        bytes.clear();
        frames::write(&mut bytes, kind::HEADERS, flags, 1, &[0x88]);
        assert!(answered(&bytes, true).is_err());
    }

    #[test]
    fn a_change_of_the_table_size_may_come_before_the_status() {
        assert!(is_200(&[0x20, 0x88]));
        assert!(is_200(&[0x3f, 0xe1, 0x1f, 0x88]));
        assert!(!is_200(&[0x3f, 0xe1, 0x1f, 0x8d]));
        assert!(!is_200(&[]));
    }

    #[test]
    fn a_goaway_hands_back_what_was_not_looked_at() {
        let mut client = Client::new(4, false, &mut Vec::new());
        let request = Prepared::get("a.test", "/", true).bytes();
        client.start(&request, Instant::now(), &mut Vec::new());
        client.start(&request, Instant::now(), &mut Vec::new());
        let (mut bytes, mut done) = (Vec::new(), Vec::new());
        frames::write(&mut bytes, kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
        client.receive(&bytes, &mut Vec::new(), &mut done).expect("goaway");
        assert!(matches!(done[..], [Finished::Refused(_)]));
        assert_eq!((client.free(), client.busy()), (0, 1));
    }
}
