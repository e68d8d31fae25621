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
const SINGLE_BYTES: u32 = 0x0010_FF80;

/// The byte that a character stands for; none where it is itself.
pub fn single_byte(character: char) -> Option<u8> {
    let offset = u32::from(character).checked_sub(SINGLE_BYTES)?;
    u8::try_from(offset + 0x80).ok()
}

/// Bytes, such as those of a path, as text. Those that are no UTF-8 become characters of a private area;
/// [`bytes_of_text`] turns text made of this one (captures, rewrites) back into bytes, so nothing is lost.
pub fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(stands_for_byte) => Cow::Borrowed(text),
        _ => Cow::Owned(with_single_bytes(bytes)),
    }
}

/// The bytes that text from [`text_of_bytes`], or made of it, means.
pub fn bytes_of_text(text: &str) -> Cow<'_, [u8]> {
    if !text.contains(stands_for_byte) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match single_byte(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

fn stands_for_byte(character: char) -> bool {
    u32::from(character) >= SINGLE_BYTES
}

fn with_single_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    let stand_in = |byte: &u8| {
        char::from_u32(SINGLE_BYTES + u32::from(*byte) - 0x80).expect("within plane 16")
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if stands_for_byte(character) {
                text.extend(character.encode_utf8(&mut [0; 4]).as_bytes().iter().map(stand_in));
            } else {
                text.push(character);
            }
        }
        // Bytes below 0x80 are UTF-8, so these are all above.
        text.extend(chunk.invalid().iter().map(stand_in));
    }
    text
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
