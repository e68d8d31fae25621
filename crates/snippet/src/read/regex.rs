//! Classes of characters as nginx has them: its expressions know ASCII only.

/// Writes `\w`, `\d`, `\s` and their opposites out, which elsewhere mean letters and digits of any script.
pub(super) fn ascii(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        if let Some(escaped) = escaped {
            match (written_out(escaped), in_class) {
                (Some((members, false)), true) => text.push_str(members),
                (Some((members, false)), false) => text.extend(["[", members, "]"]),
                (Some((members, true)), false) => text.extend(["[^", members, "]"]),
                _ => text.extend([c, escaped]),
            }
            continue;
        }
        text.push(c);
        match (c, in_class) {
            ('[', false) => {
                in_class = true;
                // A bracket that closes at once is one of the class.
                text.extend(chars.next_if_eq(&'^'));
                text.extend(chars.next_if_eq(&']'));
            }
            ('[', true) if chars.peek() == Some(&':') => {
                let name: String = chars.by_ref().take_while(|c| *c != ']').collect();
                text.push_str(&name);
                text.push(']');
            }
            (']', true) => in_class = false,
            _ => {}
        }
    }
    text
}

/// What an escaped letter stands for, and whether for all but that.
fn written_out(letter: char) -> Option<(&'static str, bool)> {
    let members = match letter.to_ascii_lowercase() {
        'w' => "0-9A-Za-z_",
        'd' => "0-9",
        's' => r"\t-\r\x20",
        _ => return None,
    };
    Some((members, letter.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn classes_are_written_out() {
        let cases = [
            (r"^/(\w+)\.\\d$", r"^/([0-9A-Za-z_]+)\.\\d$"),
            (r"[^]\d-]\S", r"[^]0-9-][^\t-\r\x20]"),
            (r"[[:alpha:]\w]\D", r"[[:alpha:]0-9A-Za-z_][^0-9]"),
            (r"[\W]\b(?i)ü", r"[\W]\b(?i)ü"),
        ];
        for (source, expected) in cases {
            assert_eq!(ascii(source), expected);
        }
    }
}
