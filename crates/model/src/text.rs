//! Texts that are too long to be shown, and bytes that are no text.

use std::borrow::Cow;

/// As many characters of a text as are shown, and a mark where there are more.
pub fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Characters from here to U+10FFFF, a private area, stand for the single bytes 0x80 to 0xFF in texts of paths.
pub const SINGLE_BYTES: u32 = 0x0010_FF80;

/// The byte that a character stands for; none where it is itself.
pub fn single_byte(character: char) -> Option<u8> {
    let offset = u32::from(character).checked_sub(SINGLE_BYTES)?;
    u8::try_from(offset + 0x80).ok()
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn characters_are_counted_and_the_mark_is_not() {
        let shown = ["äöü", "äöüß", ""].map(|text| beginning(text, 3));
        assert_eq!(shown, ["äöü", "äöü…", ""]);
    }
}
