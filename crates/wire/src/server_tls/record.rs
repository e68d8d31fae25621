//! Records of TLS as far as their length tells what to do with them.

/// The longest record (RFC 5246 section 6.2.3), without its header.
const LONGEST: usize = (16 << 10) + (2 << 10);
/// A record's header: its type, a version and a length.
const HEADER: usize = 5;
/// What encryption adds to a record at most where it is not padded.
const SEAL: usize = 24;

/// What a record begins with (RFC 8446 section 5.1).
fn is_kind(byte: u8) -> bool {
    (20..=24).contains(&byte)
}

/// The length of the record with which `bytes` begin; none if they are too few to tell, or are no record.
fn length(bytes: &[u8]) -> Option<usize> {
    let [kind, _, _, high, low, ..] = *bytes else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    (is_kind(kind) && length <= LONGEST).then_some(HEADER + length)
}

/// The length of the whole record with which `bytes` begin, or of all of them if they are no record; none if it is not
/// whole.
pub(super) fn whole(bytes: &[u8]) -> Option<usize> {
    let is_begun = bytes.len() < HEADER && bytes.first().is_none_or(|kind| is_kind(*kind));
    let length = if is_begun { return None } else { length(bytes) };
    length.map_or(Some(bytes.len()), |length| (length <= bytes.len()).then_some(length))
}

/// Whether a record that has begun is not whole with so many bytes more.
pub(super) fn lacks_more_than(count: usize, begun: &[u8]) -> bool {
    length(begun).is_some_and(|length| length > begun.len() + count)
}

/// Whether there may be room for what is in a record of this length.
pub(super) fn may_fit(length: usize, room: usize) -> bool {
    room > 0 && length <= HEADER + SEAL + room
}
