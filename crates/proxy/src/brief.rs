//! Texts that others have their say in, cut where they are kept or told.

use std::fmt::{self, Display, Write};

/// Characters of such a text.
const MOST: usize = 300;

/// The text, or its beginning: the rest is never made.
pub(crate) fn brief(what: &dyn Display) -> String {
    let mut cut = Cut { text: String::new(), left: MOST };
    if write!(cut, "{what}").is_err() {
        cut.text.push('…');
    }
    cut.text
}

struct Cut {
    text: String,
    left: usize,
}

impl Write for Cut {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for character in piece.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
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
