//! Names of header fields, compared without case, and sets of them that mostly answer at one look.

/// Names that are looked for together.
#[derive(Debug)]
pub struct NameSet {
    names: &'static [&'static str],
    bits: u64,
    /// Between which of them are those that a bit stands for: mostly it is one alone.
    spans: [(u8, u8); 64],
}

impl NameSet {
    /// These names.
    pub const fn new(names: &'static [&'static str]) -> Self {
        let (mut bits, mut spans, mut at) = (0, [(0, 0); 64], names.len());
        assert!(at < 256, "a byte tells which one it is");
        while at > 0 {
            at -= 1;
            let number = number(names[at].as_bytes());
            let end = if bits & 1 << number == 0 { at as u8 + 1 } else { spans[number].1 };
            bits |= 1 << number;
            spans[number] = (at as u8, end);
        }
        Self { names, bits, spans }
    }

    /// Which they are.
    pub fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// Whether `name` is one of them.
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.bits & bit(name) != 0 && self.is_one(name)
    }

    /// Which of them `name` is.
    #[inline]
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        self.position_by(bit(name), name)
    }

    /// The same, where the name's bit is known.
    #[inline]
    pub(crate) fn position_by(&self, bit: u64, name: &[u8]) -> Option<usize> {
        if self.bits & bit == 0 {
            return None;
        }
        let (first, end) = self.spans[bit.trailing_zeros() as usize % 64];
        let mut span = usize::from(first)..usize::from(end);
        span.find(|&at| is_same(name, self.names[at].as_bytes()))
    }

    #[inline(never)]
    fn is_one(&self, name: &[u8]) -> bool {
        self.position(name).is_some()
    }

    #[inline]
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }
}

/// One of 64 bits that stands for a name, and for some others: the same for all spellings.
#[inline]
pub(crate) const fn bit(name: &[u8]) -> u64 {
    1 << number(name)
}

/// Which bit that is.
#[inline]
const fn number(name: &[u8]) -> usize {
    let [first, .., last] = name else { return 0 };
    let mixed = (*first | 0x20) as usize * 5 + (*last | 0x20) as usize * 3 + name.len() * 11;
    mixed % 64
}

/// Whether two names are the same in any case. Eight bytes are compared at once: most names that are compared at all
/// are the same.
#[inline]
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (words, rest) = a.as_chunks::<8>();
    let (others, other_rest) = b.as_chunks::<8>();
    let lower = |word: &[u8; 8]| lower(u64::from_ne_bytes(*word));
    let mut pairs = words.iter().zip(others);
    if !pairs.all(|(word, other)| lower(word) == lower(other)) {
        return false;
    }
    // Of what is left over, the last eight bytes of the whole are looked at once more, if there are so many.
    match (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(word), Some(other)) => lower(word) == lower(other),
        _ => match (both_ends(a), both_ends(b)) {
            (Some(word), Some(other)) => lower(&word) == lower(&other),
            _ => rest.eq_ignore_ascii_case(other_rest),
        },
    }
}

/// All of a name of four to eight bytes: its first four, and its last.
#[inline]
fn both_ends(name: &[u8]) -> Option<[u8; 8]> {
    let ([a, b, c, d], [e, f, g, h]) = (name.first_chunk::<4>()?, name.last_chunk::<4>()?);
    Some([*a, *b, *c, *d, *e, *f, *g, *h])
}

/// Eight bytes, their ASCII letters in lower case.
#[inline]
fn lower(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low = word & (0x7f * EACH);
    // The highest bit of each byte says whether it is an `A` or more, and whether it is more than a `Z`.
    let from_a = low + (0x80 - u64::from(b'A')) * EACH;
    let above_z = low + (0x7f - u64::from(b'Z')) * EACH;
    let is_upper = (from_a & !above_z & !word) & (0x80 * EACH);
    word | is_upper >> 2
}

/// The members of a comma-separated list, without white space around them; empty ones are left out.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether a byte may be part of a token (RFC 9110 section 5.6.2).
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{NameSet, bit, is_same};

    #[test]
    fn a_set_has_its_names_in_every_spelling_and_no_others() {
        const SET: NameSet = NameSet::new(&["connection", "te", "x_odd", "a"]);
        for name in ["Connection", "CONNECTION", "te", "TE", "X_Odd", "a", "A"] {
            assert!(SET.has(name.as_bytes()), "{name}");
        }
        for name in ["", "b", "t", "tee", "connections", "x-odd", "cannectian"] {
            assert!(!SET.has(name.as_bytes()), "{name}");
        }
        const SHARED: NameSet = NameSet::new(&["connection", "b", "te", "a"]);
        let positions =
            ["b", "A", "te", "c", "connection"].map(|name| SHARED.position(name.as_bytes()));
        assert_eq!(positions, [Some(1), Some(3), Some(2), None, Some(0)], "two have one bit");
    }

    #[test]
    fn names_are_the_same_in_any_case_and_nothing_else_is() {
        for length in [1, 3, 4, 5, 6, 7, 8, 9, 15, 16, 20] {
            let name: Vec<u8> = (0..length).map(|at| b"aZz@[`{-_.09~"[at % 13]).collect();
            assert!(is_same(&name, &name.to_ascii_uppercase()), "{name:?}");
            for (at, byte) in (0..length).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                let mut other = name.clone();
                other[at] = byte;
                assert_eq!(is_same(&name, &other), name.eq_ignore_ascii_case(&other), "{other:?}");
            }
        }
        assert!(is_same(b"", b"") && !is_same(b"te", b"tee"));
    }

    #[test]
    fn usual_names_hardly_share_their_bits() {
        let usual = ["user-agent", "accept", "accept-encoding", "accept-language", "cookie"];
        let sought = ["connection", "te", "upgrade", "expect", "content-length", "cdn-loop"];
        let shared =
            |name: &str| sought.iter().any(|one| bit(one.as_bytes()) == bit(name.as_bytes()));
        assert!(usual.iter().filter(|name| shared(name)).count() <= 1);
    }
}
