//! Texts of strangers as reports show them.

use model::{Printable, beginning};

/// How much of a text of a log is shown.
pub(crate) const SHOWN: usize = 200;

/// As much of a text as is shown, as one line in which nothing moves a cursor.
pub(crate) fn cut(text: &str, most: usize) -> String {
    Printable(&beginning(text, most)).to_string()
}

/// Text for a cell of a table in Markdown, where none of it means anything: no link, no image, no other cell.
pub fn cell(text: &str) -> String {
    let text = Printable(text).to_string();
    let mut out = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '!' | '|' | '~' | '$' => {
                out.extend(['\\', letter])
            }
            // Some readers make links of addresses that nothing is around.
            ':' if text[at..].starts_with("://") => out.push_str("\\:"),
            '.' if ends_with_www(&text.as_bytes()[..at]) => out.push_str("\\."),
            other => out.push(other),
        }
    }
    out
}

fn ends_with_www(text: &[u8]) -> bool {
    text.last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b"www"))
}

#[cfg(test)]
mod tests {
    use super::{cell, cut};

    #[test]
    fn nothing_in_a_cell_is_markdown() {
        for (text, shown) in [
            ("/x![a](https://b/c.png)", r"/x\!\[a\](https\://b/c.png)"),
            (r"/a\|b|c", r"/a\\\|b\|c"),
            ("<img/src=x>`x`&lt;", r"&lt;img/src=x&gt;\`x\`&amp;lt;"),
            ("**a** _b_ ~c~ $d$ WWW.e.test", r"\*\*a\*\* \_b\_ \~c\~ \$d\$ WWW\.e.test"),
            ("a\n|b\u{1b}\u{9b}\u{202e}", r"a\\u{a}\|b\\u{1b}\\u{9b}\\u{202e}"),
            ("old 200, new 302: /cart", "old 200, new 302: /cart"),
        ] {
            assert_eq!(cell(text), shown);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äö\u{1b}ü", 3), "äö\\u{1b}…");
    }
}
