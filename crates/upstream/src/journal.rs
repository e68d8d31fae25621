//! What is noted about each try, for logs and metrics.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of an address of IPv4 with its port at most, up to whole words.
const TEXT: usize = 24;

/// A short address with its port as it is written: made once for a connection, not for the log of each request.
#[derive(Clone, Copy, Debug)]
pub struct AddressText {
    bytes: [u8; TEXT],
    length: u8,
}

impl AddressText {
    /// None of an address that takes more room.
    pub fn of(address: SocketAddr) -> Option<Self> {
        let mut bytes = [0; TEXT];
        let mut rest = &mut bytes[..];
        write!(rest, "{address}").ok()?;
        let length = TEXT - rest.len();
        Some(Self { bytes, length: length as u8 })
    }

    /// Appends it to a line: a copy of whole words takes no call.
    #[inline]
    pub fn append(&self, line: &mut Vec<u8>) {
        let end = line.len() + usize::from(self.length);
        line.extend_from_slice(&self.bytes);
        line.truncate(end);
    }
}

/// One try at an endpoint.
#[derive(Debug)]
pub struct Try {
    /// The endpoint.
    pub address: SocketAddr,
    /// The number of its span, where the request is traced.
    pub span: Option<NonZeroU64>,
    /// When it began.
    pub since: Instant,
    /// The status it gave, or the one its failure stands for.
    pub status: Cell<Option<u16>>,
    /// Its address as it is written, where its connection has it.
    pub text: Cell<Option<AddressText>>,
    /// Whether it went over a kept connection.
    pub reused: Cell<bool>,
    /// Time until connected.
    pub connected: Cell<Option<Duration>>,
    /// Time until the head was there.
    pub header: Cell<Option<Duration>>,
    /// Time until the last byte.
    pub ended: Cell<Option<Duration>>,
    /// Bytes of the body, as far as it was read.
    pub received: Cell<u64>,
    /// Whether nobody gets the answer: another one stands in its place.
    pub replaced: Cell<bool>,
    /// What a FastCGI responder wrote to its standard error, as much as is kept of one request.
    pub stderr: RefCell<Vec<u8>>,
}

/// Bytes of a responder's standard error that are kept for each try.
const STDERR: usize = 8 << 10;

impl Try {
    /// A try that begins now.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            span: None,
            since: wire::now(),
            status: Cell::new(None),
            text: Cell::new(None),
            reused: Cell::new(false),
            connected: Cell::new(None),
            header: Cell::new(None),
            ended: Cell::new(None),
            received: Cell::new(0),
            replaced: Cell::new(false),
            stderr: RefCell::default(),
        }
    }

    /// Notes that the connection stands, and whether it did so before.
    pub fn connected(&self, reused: bool) {
        self.reused.set(reused);
        self.connected.set(Some(wire::since(self.since)));
    }

    /// Notes the head.
    pub fn answered(&self, status: u16) {
        self.status.set(Some(status));
        self.header.set(Some(wire::since(self.since)));
    }

    /// Notes what a FastCGI responder writes to its standard error; a bound keeps one request from filling the log.
    pub fn complains(&self, data: &[u8]) {
        let mut stderr = self.stderr.borrow_mut();
        let room = STDERR - stderr.len();
        stderr.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// Notes that another answer stands in the place of this one.
    pub fn replace(&self) {
        self.replaced.set(true);
    }

    /// Notes that it is over, and that another try stands in its place.
    pub fn given_up(&self) {
        self.replace();
        self.end();
    }

    /// How long the body was that was passed on. What came along with the head of another one is a matter of chance.
    pub fn length(&self) -> u64 {
        if self.replaced.get() { 0 } else { self.received.get() }
    }

    /// Notes the end.
    pub fn end(&self) {
        if self.ended.get().is_none() {
            self.ended.set(Some(wire::since(self.since)));
        }
    }

    /// Notes that it gave no answer; `status` is what the client would be told.
    pub fn failed(&self, status: u16) {
        self.status.set(Some(status));
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::AddressText;
    use std::net::SocketAddr;

    #[test]
    fn short_addresses_are_written_as_everywhere_else_and_long_ones_not_at_all() {
        for text in ["0.0.0.0:0", "10.244.1.7:8080", "255.255.255.255:65535", "[::1]:80"] {
            let address: SocketAddr = text.parse().expect("an address");
            let mut line = b"to ".to_vec();
            AddressText::of(address).expect("it is short").append(&mut line);
            assert_eq!(line, format!("to {text}").into_bytes());
        }
        let long = SocketAddr::from(([0x2001, 0xdb8, 1, 2, 3, 4, 5, 6], 65_535));
        assert!(AddressText::of(long).is_none());
    }
}
