//! The text that bytes of a file are, or what they are instead.

/// The text; else what it is, with the remedy.
///
/// # Errors
/// When it is no UTF-8.
pub fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    let what = match bytes.as_slice() {
        [0x1f, 0x8b, ..] => "it is packed with gzip: unpack it first (gunzip)",
        [b'P', b'K', 3, 4, ..] => "it is a ZIP archive: unpack it first (unzip)",
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            "it is UTF-32: make UTF-8 of it (iconv -f UTF-32 -t UTF-8)"
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            "it is UTF-16: make UTF-8 of it (iconv -f UTF-16 -t UTF-8)"
        }
        _ => "",
    };
    if !what.is_empty() {
        return Err(what.to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        format!(
            "line {line} is no UTF-8: make UTF-8 of it, if it comes from Windows by iconv -f WINDOWS-1252 -t UTF-8"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn what_is_no_text_is_named_with_the_remedy() {
        for (bytes, words) in [
            (&[0x1f, 0x8b, 8][..], "gunzip"),
            (b"PK\x03\x04", "unzip"),
            (b"\xff\xfea\0", "UTF-16"),
            (b"\xff\xfe\0\0a\0\0\0", "iconv -f UTF-32"),
            (b"\0\0\xfe\xff\0\0\0a", "iconv -f UTF-32"),
            (b"kind: List\nitems: \xfc\n", "line 2 is no UTF-8: make"),
            (b"\xfc", "if it comes from Windows by iconv -f WINDOWS-1252 -t UTF-8"),
        ] {
            let error = text_of(bytes.to_vec()).expect_err("it is no text");
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(text_of("ü".as_bytes().to_vec()), Ok("ü".to_owned()));
    }
}
