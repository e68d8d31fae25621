//! Frames (RFC 9113 section 4) as bytes.

/// The client's first bytes.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Frame types.
pub const DATA: u8 = 0;
/// HEADERS.
pub const HEADERS: u8 = 1;
/// PRIORITY.
pub const PRIORITY: u8 = 2;
/// RST_STREAM.
pub const RST_STREAM: u8 = 3;
/// SETTINGS.
pub const SETTINGS: u8 = 4;
/// PING.
pub const PING: u8 = 6;
/// GOAWAY.
pub const GOAWAY: u8 = 7;
/// WINDOW_UPDATE.
pub const WINDOW_UPDATE: u8 = 8;
/// CONTINUATION.
pub const CONTINUATION: u8 = 9;
/// Flag of DATA and HEADERS.
pub const END_STREAM: u8 = 1;
/// Flag of SETTINGS and PING.
pub const ACK: u8 = 1;
/// Flag of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;
/// The largest payload without another agreement.
pub const PAYLOAD: usize = 16384;

/// A frame with this payload, which must be shorter than 16 MiB.
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("payloads are short").to_be_bytes();
    let mut out = Vec::with_capacity(9 + payload.len());
    out.extend(&length[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// HEADERS and as many CONTINUATION as the block needs.
pub fn headers(stream: u32, block: &[u8], flags: u8) -> Vec<u8> {
    let mut parts = block.chunks(PAYLOAD).peekable();
    let mut out = Vec::new();
    let first = parts.next().unwrap_or_default();
    let end = |last: bool| if last { END_HEADERS } else { 0 };
    out.extend(write(HEADERS, flags | end(parts.peek().is_none()), stream, first));
    while let Some(part) = parts.next() {
        out.extend(write(CONTINUATION, end(parts.peek().is_none()), stream, part));
    }
    out
}

/// SETTINGS with these pairs.
pub fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = pairs
        .iter()
        .flat_map(|(id, value)| [id.to_be_bytes().as_slice(), &value.to_be_bytes()].concat())
        .collect();
    write(SETTINGS, 0, 0, &payload)
}

/// A frame that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream.
    pub stream: u32,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// Takes one frame off the front, if a whole one is there.
pub fn take(bytes: &mut Vec<u8>) -> Option<Frame> {
    let &[a, b, c, kind, flags, s0, s1, s2, s3] = bytes.first_chunk::<9>()?;
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    let payload = bytes.get(9..9 + length)?.to_vec();
    bytes.drain(..9 + length);
    Some(Frame { kind, flags, stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]), payload })
}

/// The error codes by name.
pub fn error_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).map_or_else(|| format!("error {code}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{CONTINUATION, END_HEADERS, HEADERS, PAYLOAD, headers, take};

    #[test]
    fn a_long_block_is_continued_and_only_the_last_frame_ends_it() {
        let mut bytes = headers(1, &vec![7; PAYLOAD * 2 + 1], 0);
        let frames: Vec<_> = std::iter::from_fn(|| take(&mut bytes)).collect();
        let shape: Vec<_> = frames.iter().map(|f| (f.kind, f.flags, f.payload.len())).collect();
        let wanted =
            [(HEADERS, 0, PAYLOAD), (CONTINUATION, 0, PAYLOAD), (CONTINUATION, END_HEADERS, 1)];
        assert_eq!((shape.as_slice(), bytes.len()), (wanted.as_slice(), 0));
    }
}
