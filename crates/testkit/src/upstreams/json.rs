//! JSON in the layout of the recordings: blanks after colons and commas, nothing but ASCII.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Serializer, ser::Formatter};

/// The value as JSON.
pub(super) fn spaced(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut out, Spaced))
        .expect("a note about a request is plain data");
    out
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        for character in text.chars() {
            if character.is_ascii() {
                write!(out, "{character}")?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_layout_is_that_of_the_recordings() {
        let value = serde_json::json!({"a": [["b", "\u{ff}\u{1}\""], 1], "c": null});
        let text = String::from_utf8(super::spaced(&value)).unwrap();
        assert_eq!(text, r#"{"a": [["b", "\u00ff\u0001\""], 1], "c": null}"#);
    }
}
