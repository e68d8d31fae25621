//! Texts that are too long to be shown.

use std::borrow::Cow;

/// As many characters of a text as are shown, and a mark where there are more.
pub fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
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
