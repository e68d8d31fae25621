//! The upstream's side of unary gRPC over HTTP/2: the same answer to every call, within the peer's window.

use std::collections::VecDeque;

use anyhow::{Result, ensure};

use super::frames::{self, Frame, flag, kind};
use super::http2::grpc_message;

const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 3;
const FIRST_WINDOW: i64 = 65_535;
/// Give back what was received when it comes to half of the first window.
const GIVE_BACK: u32 = 32 << 10;
/// The message of every call and of every answer.
pub(crate) const MESSAGE: &[u8; 32] = b"a message of thirty-two bytes --";

/// One HTTP/2 connection from a proxy.
pub(super) struct Server {
    kept: Vec<u8>,
    greeted: bool,
    window: i64,
    received: u32,
    waiting: VecDeque<u32>,
    head: Vec<u8>,
    body: Vec<u8>,
    trailers: Vec<u8>,
}

impl Default for Server {
    fn default() -> Self {
        let mut head = vec![0x88];
        frames::write_indexed_name(&mut head, 31, "application/grpc");
        let mut trailers = Vec::new();
        frames::write_header(&mut trailers, "grpc-status", "0");
        let (kept, waiting, body) = (Vec::new(), VecDeque::new(), grpc_message(MESSAGE));
        let (greeted, window, received) = (false, FIRST_WINDOW, 0);
        Self { kept, greeted, window, received, waiting, head, body, trailers }
    }
}

impl Server {
    pub(super) fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.extend_from_slice(bytes);
        let mut rest = &kept[..];
        if !self.greeted {
            let Some(after) = rest.get(frames::PREFACE.len()..) else {
                self.kept = kept;
                return Ok(());
            };
            ensure!(rest.starts_with(frames::PREFACE), "a proxy does not speak HTTP/2");
            frames::write_settings(out, &[(SETTINGS_MAX_CONCURRENT_STREAMS, 128)]);
            self.greeted = true;
            rest = after;
        }
        while let Some((frame, length)) = Frame::first(rest) {
            self.frame(&frame, out);
            rest = &rest[length..];
        }
        let done = kept.len() - rest.len();
        kept.drain(..done);
        self.kept = kept;
        self.answer(out);
        Ok(())
    }

    fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        match frame.kind {
            kind::HEADERS | kind::DATA => {
                if frame.kind == kind::DATA {
                    self.count(frame, out);
                }
                if frame.has(flag::END_STREAM) {
                    self.waiting.push_back(frame.stream);
                }
            }
            kind::SETTINGS if !frame.has(flag::ACK) => {
                frames::write(out, kind::SETTINGS, flag::ACK, 0, &[]);
            }
            kind::PING if !frame.has(flag::ACK) => {
                frames::write(out, kind::PING, flag::ACK, 0, frame.payload);
            }
            kind::WINDOW_UPDATE if frame.stream == 0 => self.window += i64::from(frame.number()),
            // A call that a proxy gives up is the client's to notice.
            _ => {}
        }
    }

    fn count(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        self.received += frame.payload.len() as u32;
        if self.received >= GIVE_BACK {
            frames::write(out, kind::WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes());
            self.received = 0;
        }
    }

    fn answer(&mut self, out: &mut Vec<u8>) {
        let size = self.body.len() as i64;
        while self.window >= size {
            let Some(stream) = self.waiting.pop_front() else { return };
            self.window -= size;
            frames::write(out, kind::HEADERS, flag::END_HEADERS, stream, &self.head);
            frames::write(out, kind::DATA, 0, stream, &self.body);
            let flags = flag::END_HEADERS | flag::END_STREAM;
            frames::write(out, kind::HEADERS, flags, stream, &self.trailers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let mut count = 0;
        while let Some((frame, length)) = Frame::first(rest) {
            count += usize::from(frame.kind == kind::DATA);
            rest = &rest[length..];
        }
        count
    }

    #[test]
    fn answers_wait_for_the_window() {
        let (mut server, mut out) = (Server::default(), Vec::new());
        let mut calls = frames::PREFACE.to_vec();
        let flags = flag::END_HEADERS | flag::END_STREAM;
        for call in 0..2000 {
            frames::write(&mut calls, kind::HEADERS, flags, 1 + call * 2, &[0x83]);
        }
        server.receive(&calls, &mut out).expect("calls");
        let first = answers(&out);
        assert_eq!(first, 65_535 / (5 + MESSAGE.len()));
        let mut more = Vec::new();
        frames::write(&mut more, kind::WINDOW_UPDATE, 0, 0, &1_000_000_u32.to_be_bytes());
        server.receive(&more, &mut out).expect("more room");
        assert_eq!(answers(&out), 2000);
    }
}
