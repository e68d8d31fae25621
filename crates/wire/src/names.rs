//! Names of header fields, compared without case, and sets of them that mostly answer at one look.

/// Names that are looked for together.
#[derive(Debug)]
pub struct NameSet {
    names: &'static [&'static str],
    bits: u64,
}

impl NameSet {
    /// These names.
    pub const fn new(names: &'static [&'static str]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < names.len() {
            bits |= bit(names[at].as_bytes());
            at += 1;
        }
        Self { names, bits }
    }

    /// Whether `name` is one of them.
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.bits & bit(name) != 0 && self.is_one(name)
    }

    /// Which of them `name` is.
    #[inline]
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        if self.bits & bit(name) == 0 {
            return None;
        }
        self.names.iter().position(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    }

    #[inline(never)]
    fn is_one(&self, name: &[u8]) -> bool {
        self.names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    }

    #[inline]
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }
}

/// One of 64 bits that stands for a name, and for some others: the same for all spellings.
#[inline]
pub(crate) const fn bit(name: &[u8]) -> u64 {
    let [first, .., last] = name else { return 1 };
    let mixed = (*first | 0x20) as usize * 5 + (*last | 0x20) as usize * 3 + name.len() * 11;
    1 << (mixed % 64)
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
    use super::{NameSet, bit};

    #[test]
    fn a_set_has_its_names_in_every_spelling_and_no_others() {
        const SET: NameSet = NameSet::new(&["connection", "te", "x_odd", "a"]);
        for name in ["Connection", "CONNECTION", "te", "TE", "X_Odd", "a", "A"] {
            assert!(SET.has(name.as_bytes()), "{name}");
        }
        for name in ["", "b", "t", "tee", "connections", "x-odd", "cannectian"] {
            assert!(!SET.has(name.as_bytes()), "{name}");
        }
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
