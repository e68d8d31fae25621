//! Texts that others have their say in, cut where they are kept or told.

use std::fmt::{self, Display, Write};

/// Characters of such a text.
const MOST: usize = 300;

/// The text, or its beginning: the rest is never made.
pub(crate) struct Brief<'a>(pub(crate) &'a dyn Display);

/// The same, made.
pub(crate) fn brief(what: &dyn Display) -> String {
    Brief(what).to_string()
}

impl Display for Brief<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cut = Cut { out, left: MOST, is_cut: false };
        let written = write!(cut, "{}", self.0);
        let is_cut = cut.is_cut;
        if is_cut { out.write_char('…') } else { written }
    }
}

/// Takes so many characters.
struct Cut<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    left: usize,
    is_cut: bool,
}

impl Write for Cut<'_, '_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = piece.char_indices().nth(self.left).map(|(end, _)| end);
        self.is_cut = end.is_some();
        let taken = &piece[..end.unwrap_or(piece.len())];
        self.left -= taken.chars().count();
        self.out.write_str(taken)?;
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, brief};

    #[test]
    fn a_long_text_is_cut_and_a_short_one_stays() {
        assert_eq!(brief(&"é".repeat(MOST)), "é".repeat(MOST));
        assert_eq!(brief(&"é".repeat(MOST + 1)), "é".repeat(MOST) + "…");
        assert_eq!(brief(&format_args!("{}{}", 1, "x")), "1x");
    }
}
