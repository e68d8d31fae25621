//! Where the frames of a WebSocket connection end (RFC 6455 section 5.2), and the frame that says good-bye.

/// A close frame with code 1001, "going away", for clients.
pub(super) const GOING_AWAY: &[u8] = &[0x88, 2, 0x03, 0xe9];
/// The same for upstreams, to whom frames go under a mask; this one changes nothing.
pub(super) const GOING_AWAY_MASKED: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9];

/// The longest head of a frame.
const HEAD: usize = 14;

/// Follows the frames of one direction.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; HEAD],
    /// Bytes of the head that came.
    have: usize,
    /// Bytes of the payload that are still to come.
    rest: u64,
}

impl Frames {
    /// Takes note of bytes that pass.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let now = usize::try_from(self.rest).unwrap_or(usize::MAX).min(bytes.len());
                self.rest -= now as u64;
                bytes = &bytes[now..];
                continue;
            }
            self.head[self.have] = bytes[0];
            self.have += 1;
            bytes = &bytes[1..];
            if self.have >= 2 && self.have == self.length() {
                self.rest = self.payload();
                self.have = 0;
            }
        }
    }

    /// Whether no frame has begun that has not ended.
    pub(super) fn is_between(&self) -> bool {
        self.have == 0 && self.rest == 0
    }

    /// How long the head is.
    fn length(&self) -> usize {
        let size = match self.head[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if self.head[1] & 0x80 == 0 { 0 } else { 4 };
        2 + size + mask
    }

    /// How long the payload is that the head announces.
    fn payload(&self) -> u64 {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        match self.head[1] & 0x7f {
            126 => number(&self.head[2..4]),
            127 => number(&self.head[2..10]),
            short => u64::from(short),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Frames, GOING_AWAY, GOING_AWAY_MASKED};

    fn frame(size: usize, masked: bool) -> Vec<u8> {
        let flag = if masked { 0x80 } else { 0 };
        let mut frame = vec![0x82];
        match size {
            0..126 => frame.push(flag | size as u8),
            126..65_536 => {
                frame.push(flag | 126);
                frame.extend((size as u16).to_be_bytes());
            }
            _ => {
                frame.push(flag | 127);
                frame.extend((size as u64).to_be_bytes());
            }
        }
        frame.extend(vec![0xff; if masked { 4 } else { 0 } + size]);
        frame
    }

    #[test]
    fn the_end_of_a_frame_is_found_however_it_comes() {
        for (size, masked) in
            [(0, false), (0, true), (5, true), (125, false), (126, true), (65_536, false)]
        {
            let frame = frame(size, masked);
            for step in [1, 3, 1000, frame.len()] {
                let mut frames = Frames::default();
                for (number, piece) in frame.chunks(step).enumerate() {
                    assert_eq!(frames.is_between(), number == 0, "{size} {masked} {step} {number}");
                    frames.pass(piece);
                }
                assert!(frames.is_between(), "{size} {masked} {step}");
                frames.pass(&frame[..1]);
                assert!(!frames.is_between());
            }
        }
    }

    #[test]
    fn the_farewell_is_a_whole_frame() {
        for farewell in [GOING_AWAY, GOING_AWAY_MASKED] {
            let mut frames = Frames::default();
            frames.pass(farewell);
            assert!(frames.is_between());
        }
    }
}
