//! Records of TLS as far as their length tells what to do with them, and how much work they are.

/// The longest record (RFC 5246 section 6.2.3), without its header.
const LONGEST: usize = (16 << 10) + (2 << 10);
/// A record's header: its type, a version and a length.
const HEADER: usize = 5;
/// What encryption adds to a record at most where it is not padded.
const SEAL: usize = 24;
/// What a record counts as beside its bytes, in a turn of the thread; and one that is hardly longer than a message of
/// TLS itself, of which each is worth as much work as a kilobyte (RFC 8446 section 4.6.3: new keys).
const WORK: usize = 64;
const WORK_OF_SMALL: usize = 512;
/// Bytes of the longest small one, without its header.
const SMALL: usize = 64;

/// What a record begins with (RFC 8446 section 5.1).
fn is_kind(byte: u8) -> bool {
    (20..=24).contains(&byte)
}

/// What a header says of the length behind it.
fn announced(header: &[u8; HEADER]) -> usize {
    usize::from(u16::from_be_bytes([header[3], header[4]]))
}

/// The length of the record with which `bytes` begin; none if they are too few to tell, or are no record.
fn length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk()?;
    let length = announced(header);
    (is_kind(header[0]) && length <= LONGEST).then_some(HEADER + length)
}

/// The length of the whole record with which `bytes` begin, or of all of them if they are no record; none if it is not
/// whole.
pub(crate) fn whole(bytes: &[u8]) -> Option<usize> {
    let is_begun = bytes.len() < HEADER && bytes.first().is_none_or(|kind| is_kind(*kind));
    let length = if is_begun { return None } else { length(bytes) };
    length.map_or(Some(bytes.len()), |length| (length <= bytes.len()).then_some(length))
}

/// Whether a record that has begun is not whole with so many bytes more.
pub(crate) fn lacks_more_than(count: usize, begun: &[u8]) -> bool {
    length(begun).is_some_and(|length| length > begun.len() + count)
}

/// Whether there may be room for what is in a record of this length.
pub(crate) fn may_fit(length: usize, room: usize) -> bool {
    room > 0 && length <= HEADER + SEAL + room
}

/// Where in the records of TLS what comes stands. Bytes that are none are for TLS to refuse.
#[derive(Debug, Default)]
pub(crate) struct Records {
    header: [u8; HEADER],
    have: usize,
    rest: usize,
}

impl Records {
    /// What the bytes that came are worth in a turn of the thread.
    pub(crate) fn weigh(&mut self, mut bytes: &[u8]) -> usize {
        let mut weight = bytes.len();
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            (self.rest, bytes) = (self.rest - skipped, &bytes[skipped..]);
            let taken = (HEADER - self.have).min(bytes.len());
            if self.rest > 0 || taken == 0 {
                continue;
            }
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            (self.have, bytes) = (self.have + taken, &bytes[taken..]);
            if self.have == HEADER {
                self.have = 0;
                self.rest = announced(&self.header);
                weight += if self.rest <= SMALL { WORK_OF_SMALL } else { WORK };
            }
        }
        weight
    }
}

#[cfg(test)]
mod tests {
    use super::{Records, WORK, WORK_OF_SMALL};

    #[test]
    fn a_record_is_work_whatever_its_length_and_small_ones_are_more_of_it() {
        let long = [&[23, 3, 3, 1, 0][..], &[9; 256]].concat();
        let keys = [&[23, 3, 3, 0, 22][..], &[9; 22]].concat();
        let came = [&long[..], &keys, &keys, &[23, 3, 3, 0, 0]].concat();
        let wanted = came.len() + WORK + 3 * WORK_OF_SMALL;
        for size in 1..=came.len() {
            let mut records = Records::default();
            let weight: usize = came.chunks(size).map(|piece| records.weigh(piece)).sum();
            assert_eq!(weight, wanted, "pieces of {size}");
        }
    }
}
