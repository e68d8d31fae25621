//! What a client connection speaks, whichever protocol it is.

use std::time::Instant;

use anyhow::Result;

use super::{http1, http2, websocket};

/// The protocol of a scenario's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1, one request at a time.
    Http1,
    /// HTTP/2 over TLS or, against the upstream itself, with prior knowledge.
    Http2,
    /// gRPC: HTTP/2 with a message and trailers in each answer.
    Grpc,
    /// One upgrade, then a frame at a time.
    WebSocket,
}

/// A connection's protocol and its state.
pub(super) enum Talk {
    Http1(http1::Client),
    Http2(http2::Client),
    WebSocket(websocket::Client),
}

/// What became of a request; the moment is when it should have been sent.
pub(super) enum Finished {
    /// A whole answer came.
    Answered(Instant),
    /// The proxy announced that it did not look at this request: it goes to another connection.
    Refused(Instant),
}

/// What to do with a connection after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It goes on.
    Continue,
    /// The proxy said that it ends: the next request needs another one.
    Reconnect,
}

impl Talk {
    pub(super) fn new(protocol: Protocol, streams: usize, out: &mut Vec<u8>) -> Self {
        match protocol {
            Protocol::Http1 => Self::Http1(http1::Client::default()),
            Protocol::Http2 => Self::Http2(http2::Client::new(streams, false, out)),
            Protocol::Grpc => Self::Http2(http2::Client::new(streams, true, out)),
            Protocol::WebSocket => Self::WebSocket(websocket::Client::default()),
        }
    }

    /// How many requests it can take now.
    pub(super) fn free(&self) -> usize {
        match self {
            Self::Http1(client) => client.free(),
            Self::Http2(client) => client.free(),
            Self::WebSocket(client) => client.free(),
        }
    }

    /// How many requests wait for their answer.
    pub(super) fn busy(&self) -> usize {
        match self {
            Self::Http1(client) => 1 - client.free(),
            Self::Http2(client) => client.busy(),
            Self::WebSocket(client) => 1 - client.free(),
        }
    }

    pub(super) fn start(&mut self, request: &[u8], intended: Instant, out: &mut Vec<u8>) {
        match self {
            Self::Http1(client) => client.start(request, intended, out),
            Self::Http2(client) => client.start(request, intended, out),
            Self::WebSocket(client) => client.start(request, intended, out),
        }
    }

    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Finished>,
    ) -> Result<After> {
        match self {
            Self::Http1(client) => client.receive(bytes, done),
            Self::Http2(client) => client.receive(bytes, out, done),
            Self::WebSocket(client) => client.receive(bytes, out, done),
        }
    }
}
