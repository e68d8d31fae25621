//! Header blocks: everything as a literal without indexing and without Huffman, so that any byte can be sent.

/// A field of a block, as the sender wants it.
pub type Raw = (Vec<u8>, Vec<u8>);

/// The block for these fields.
pub fn encode(fields: &[Raw]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        literal(&mut out, 0x00, name, value);
    }
    out
}

/// Appends a literal of the given kind: 0x00 is not indexed, 0x40 enters the dynamic table.
pub fn literal(out: &mut Vec<u8>, kind: u8, name: &[u8], value: &[u8]) {
    out.push(kind);
    for text in [name, value] {
        integer(out, text.len());
        out.extend(text);
    }
}

/// RFC 7541 5.1 with a seven-bit prefix whose first bit is zero.
fn integer(out: &mut Vec<u8>, mut number: usize) {
    if number < 127 {
        out.push(number as u8);
        return;
    }
    out.push(127);
    number -= 127;
    while number >= 128 {
        out.push(128 | (number % 128) as u8);
        number /= 128;
    }
    out.push(number as u8);
}

/// A GET with this path, and further fields.
pub fn get(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    request("GET", path, more)
}

/// A request with this method and path, and further fields.
pub fn request(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "https"), (":authority", "a"), (":path", path)];
    let fields: Vec<Raw> = pseudo
        .iter()
        .chain(more)
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    encode(&fields)
}

#[cfg(test)]
mod tests {
    use super::{encode, request};

    #[test]
    fn a_decoder_reads_what_was_written() {
        let long = "v".repeat(70_000);
        let block = request("POST", "/x", &[("a", &long), ("b", "")]);
        let fields = loona_hpack::Decoder::new().decode(&block).expect("a legal block");
        let last = &fields[4..];
        let wanted = [(b"a".to_vec(), long.into_bytes()), (b"b".to_vec(), Vec::new())];
        assert_eq!(last, wanted);
        assert_eq!(encode(&[(Vec::new(), b"1".to_vec())]), [0, 0, 1, b'1']);
    }
}
