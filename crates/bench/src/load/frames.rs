//! The frames of HTTP/2 that both ends of the bench need, without a header decoder: neither end looks at headers twice.

/// Frame types.
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
}

/// Frame flags.
pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 1;
    pub(in super::super) const END_STREAM: u8 = 1;
    pub(in super::super) const END_HEADERS: u8 = 4;
    pub(in super::super) const PADDED: u8 = 8;
    pub(in super::super) const PRIORITY: u8 = 32;
}

/// What a client says before its first frame.
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD: usize = 9;

/// A frame as it stands in a buffer.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the front of `bytes` and how long it is; none while it is incomplete.
    pub(super) fn first(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let head = bytes.get(..HEAD)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = bytes.get(HEAD..HEAD + length)?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some((Self { kind: head[3], flags: head[4], stream, payload }, HEAD + length))
    }

    /// Whether `flag` is set.
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The number that opens the payload of WINDOW_UPDATE and GOAWAY.
    pub(super) fn number(&self) -> u32 {
        self.payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes) & 0x7fff_ffff)
    }

    /// The header block, or the data, without padding and priority.
    pub(super) fn content(&self) -> &'a [u8] {
        let mut content = self.payload;
        if self.has(flag::PADDED) {
            let padding = usize::from(content.first().copied().unwrap_or(0));
            let end = content.len().saturating_sub(padding).max(1);
            content = content.get(1..end).unwrap_or_default();
        }
        if self.kind == kind::HEADERS && self.has(flag::PRIORITY) {
            content = content.get(5..).unwrap_or_default();
        }
        content
    }
}

/// Appends a frame.
pub(super) fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Appends a SETTINGS frame.
pub(super) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(settings.len() * 6);
    for (name, value) in settings {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    write(out, kind::SETTINGS, 0, 0, &payload);
}

/// Appends a header as HPACK's literal without indexing; `index` is the name in the static table.
pub(super) fn write_indexed_name(block: &mut Vec<u8>, index: u8, value: &str) {
    if index < 15 {
        block.push(index);
    } else {
        block.extend_from_slice(&[15, index - 15]);
    }
    write_text(block, value);
}

/// Appends a header whose name is not in the static table.
pub(super) fn write_header(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    write_text(block, name);
    write_text(block, value);
}

fn write_text(block: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len()).expect("texts of the bench are short");
    assert!(length < 127, "texts of the bench fit HPACK's short form");
    block.push(length);
    block.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_only_when_it_is_whole() {
        let mut bytes = Vec::new();
        write(&mut bytes, kind::DATA, flag::END_STREAM, 7, b"hello");
        for cut in 0..bytes.len() {
            assert!(Frame::first(&bytes[..cut]).is_none());
        }
        let (frame, length) = Frame::first(&bytes).expect("whole");
        assert_eq!((frame.stream, frame.content(), length), (7, &b"hello"[..], bytes.len()));
        assert!(frame.has(flag::END_STREAM));
    }

    #[test]
    fn padding_and_priority_are_not_content() {
        let mut bytes = Vec::new();
        let flags = flag::PADDED | flag::PRIORITY;
        write(&mut bytes, kind::HEADERS, flags, 1, &[2, 0, 0, 0, 0, 9, 0x88, 0, 0]);
        assert_eq!(Frame::first(&bytes).expect("whole").0.content(), [0x88]);
    }
}
