//! Texts that are too long to be shown, bytes that are no text, and words as nginx takes them.

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

/// A word as nginx takes it: `\"`, `\'` and `\\` stand for their second character, `\t`, `\r` and `\n` for control
/// characters; every other backslash stays, so that regular expressions need no care.
pub fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        let replaced = match (c, chars.peek()) {
            ('\\', Some(next @ ('"' | '\'' | '\\'))) => Some(*next),
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('r')) => Some('\r'),
            ('\\', Some('n')) => Some('\n'),
            _ => None,
        };
        if replaced.is_some() {
            chars.next();
        }
        text.push(replaced.unwrap_or(c));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{beginning, unescaped};

    #[test]
    fn characters_are_counted_and_the_mark_is_not() {
        let shown = ["äöü", "äöüß", ""].map(|text| beginning(text, 3));
        assert_eq!(shown, ["äöü", "äöü…", ""]);
    }

    #[test]
    fn of_escapes_only_those_that_nginx_knows_stand_for_something() {
        assert_eq!(unescaped("/a\\\"b\\\\c\\nd\\e\\"), "/a\"b\\c\nd\\e\\");
    }
}
