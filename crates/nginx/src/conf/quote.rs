//! The one place where a text becomes configuration text (ngx_conf_read_token, read backwards).

/// Writes `text` so that nginx's lexer reads back exactly these bytes as one parameter. None if nginx cannot read it at
/// all: its strings end at a NUL byte, and its buffer holds 4096 bytes of one parameter.
pub fn quote(text: &str) -> Option<String> {
    if text.contains('\0') || text.len() > LONGEST {
        return None;
    }
    if !text.is_empty() && text.chars().all(is_plain) {
        return Some(text.to_owned());
    }
    let mut quoted = String::with_capacity(text.len() + 8);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    (quoted.len() <= LONGEST).then_some(quoted)
}

/// NGX_CONF_BUFFER, less what the lexer needs around a parameter.
const LONGEST: usize = 4000;

/// Characters that mean nothing to the lexer, wherever they stand.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-./:=@,+*~^$()".contains(character)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, quote};

    #[test]
    fn what_means_nothing_stands_as_it_is_and_the_rest_in_quotes() {
        assert_eq!(quote("/a-b.c").as_deref(), Some("/a-b.c"));
        assert_eq!(quote("").as_deref(), Some("\"\""));
        assert_eq!(quote("a;}").as_deref(), Some("\"a;}\""));
        assert_eq!(quote("\"\\\n#").as_deref(), Some(r#""\"\\\n#""#));
    }

    #[test]
    fn what_nginx_cannot_read_is_not_written() {
        assert_eq!(quote("a\0b"), None);
        assert_eq!(quote(&"a".repeat(LONGEST + 1)), None);
        assert_eq!(quote(&"\"".repeat(LONGEST - 1)), None);
    }
}
