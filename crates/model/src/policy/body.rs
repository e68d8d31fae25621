//! `proxy-body-size`, `client-body-buffer-size`, `proxy-request-buffering`, `proxy-buffering` and its sizes.

use serde::Serialize;

/// Bounds and buffering of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Body {
    /// Bytes a request body may have; none: any number.
    pub max_size: Option<u64>,
    /// `proxy-request-buffering`: the body is read whole before the upstream is chosen.
    pub request_buffering: bool,
    /// `client-body-buffer-size` of the location: bytes in memory before a file takes the rest.
    pub request_buffer: Option<usize>,
    /// `proxy-buffer-size`: bytes of the largest header that an upstream may send.
    pub response_header: usize,
    /// `proxy-buffering`: answers are read ahead of the client.
    pub response_buffering: bool,
    /// `proxy-buffers-number` × `proxy-buffer-size`: bytes that are read ahead.
    pub response_buffer: usize,
}

impl Body {
    /// Bytes of the largest header that an upstream may send, whatever is asked for: all of it is held in memory.
    pub const LARGEST_HEADER: usize = 1 << 20;
}

impl Default for Body {
    fn default() -> Self {
        Self {
            max_size: Some(1 << 20),
            request_buffering: true,
            request_buffer: None,
            response_header: 4 << 10,
            response_buffering: false,
            response_buffer: 16 << 10,
        }
    }
}
