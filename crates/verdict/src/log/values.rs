//! Values of variables as logs have them, made values again.

use super::format::Escape;

/// The value behind an escaped one.
pub(super) fn unescaped(text: &str, escape: Escape) -> String {
    if !text.contains('\\') || escape == Escape::None {
        return text.to_owned();
    }
    match escape {
        Escape::Json => {
            serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.to_owned())
        }
        Escape::Default | Escape::None => hex(text),
    }
}

/// `\xXX` as nginx writes what cannot be printed.
fn hex(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|code| first == b'\\' && code[0] == b'x');
        let byte = code
            .and_then(|code| std::str::from_utf8(&code[1..]).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    // Requests are bytes; what is no UTF-8 is asked about in its percent-encoded form, which means the same.
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => error
            .as_bytes()
            .iter()
            .map(|&byte| {
                if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescaped(r"a\x22b\x5Cc\xC3\xBC", Escape::Default), "a\"b\\cü");
        assert_eq!(unescaped(r"\x16\xFF\xzz\x4", Escape::Default), "\u{16}%FF\\xzz\\x4");
        assert_eq!(unescaped(r#"a\"b\u0001"#, Escape::Json), "a\"b\u{1}");
        assert_eq!(unescaped(r"a\x22", Escape::None), r"a\x22");
    }
}
