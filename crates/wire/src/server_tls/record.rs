//! Records of TLS as far as their length tells what to do with them.

/// The longest record (RFC 5246 section 6.2.3), without its header.
const LONGEST: usize = (16 << 10) + (2 << 10);
/// A record's header: its type, a version and a length.
const HEADER: usize = 5;
/// What encryption adds to a record at most where it is not padded.
const SEAL: usize = 24;

/// The length of the record with which `bytes` begin; none if they are too few to tell, or are no record.
fn length(bytes: &[u8]) -> Option<usize> {
    let [kind, _, _, high, low, ..] = *bytes else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    ((20..=24).contains(&kind) && length <= LONGEST).then_some(HEADER + length)
}

/// Whether these are the beginning of a record, of which nothing can be said but that.
pub(super) fn is_partial(bytes: &[u8]) -> bool {
    bytes.len() < HEADER || length(bytes).is_some_and(|length| bytes.len() < length)
}

/// Whether a record that has begun is not whole with so many bytes more.
pub(super) fn lacks_more_than(count: usize, begun: &[u8]) -> bool {
    length(begun).is_some_and(|length| length > begun.len() + count)
}

/// Whether there may be room for what is in a record.
pub(super) fn may_fit(record: &[u8], room: usize) -> bool {
    room > 0 && length(record).is_none_or(|length| length <= HEADER + SEAL + room)
}
