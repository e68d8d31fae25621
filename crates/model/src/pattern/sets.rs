//! Sets of bytes, and those that PCRE has a name for.

use std::fmt::Write;

/// Bytes, one bit for each.
#[derive(Clone, Copy)]
pub(super) struct Set([u64; 4]);

impl Set {
    pub(super) fn of(has: impl Fn(u8) -> bool) -> Self {
        let mut set = Self([0; 4]);
        (0..=u8::MAX).filter(|byte| has(*byte)).for_each(|byte| set.put(byte));
        set
    }

    pub(super) fn put(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    fn all_but(self) -> Self {
        Self(self.0.map(|bits| !bits))
    }

    pub(super) fn add(&mut self, other: Self) {
        for (bits, more) in self.0.iter_mut().zip(other.0) {
            *bits |= more;
        }
    }

    /// What `\d` and the like stand for.
    pub(super) fn of_letter(letter: u8) -> Option<Self> {
        let set = match letter.to_ascii_lowercase() {
            b'd' => Self::of(|byte| byte.is_ascii_digit()),
            b's' => Self::of(is_space),
            b'w' => Self::of(is_word),
            b'h' => Self::of(|byte| matches!(byte, b'\t' | b' ' | 0xa0)),
            b'v' => Self::of(|byte| matches!(byte, 0x0a..=0x0d | 0x85)),
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() { set.all_but() } else { set })
    }

    /// What `[:name:]` stands for within a set.
    pub(super) fn of_name(name: &str, ignore_case: bool) -> Option<Self> {
        let (name, others) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        let set = match name {
            "upper" | "lower" if ignore_case => Self::of(|byte| byte.is_ascii_alphabetic()),
            "alpha" => Self::of(|byte| byte.is_ascii_alphabetic()),
            "lower" => Self::of(|byte| byte.is_ascii_lowercase()),
            "upper" => Self::of(|byte| byte.is_ascii_uppercase()),
            "alnum" => Self::of(|byte| byte.is_ascii_alphanumeric()),
            "ascii" => Self::of(|byte| byte.is_ascii()),
            "blank" => Self::of(|byte| matches!(byte, b' ' | b'\t')),
            "cntrl" => Self::of(|byte| byte.is_ascii_control()),
            "digit" => Self::of(|byte| byte.is_ascii_digit()),
            "graph" => Self::of(|byte| byte.is_ascii_graphic()),
            "print" => Self::of(|byte| byte.is_ascii_graphic() || byte == b' '),
            "punct" => Self::of(|byte| byte.is_ascii_punctuation()),
            "space" => Self::of(is_space),
            "word" => Self::of(is_word),
            "xdigit" => Self::of(|byte| byte.is_ascii_hexdigit()),
            _ => return None,
        };
        Some(if others { set.all_but() } else { set })
    }

    /// Writes it so that nobody reads something else.
    pub(super) fn write(&self, negated: bool, out: &mut String) {
        out.push_str(if negated { "[^" } else { "[" });
        let mut bytes = (0..=u8::MAX).filter(|byte| self.has(*byte)).peekable();
        while let Some(start) = bytes.next() {
            let mut end = start;
            while let Some(next) = bytes.next_if(|next| *next == end + 1) {
                end = next;
            }
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{start:02X}-\\x{end:02X}");
        }
        out.push(']');
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}
