//! Bytes as text and back, one character a byte, so that what came over the wire can be written down exactly.

/// The bytes as text: character U+00NN for byte NN.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The text as bytes, or nothing if a character is beyond U+00FF.
#[must_use]
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_survives_the_way_there_and_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(super::bytes(&super::text(&all)), Some(all));
        assert_eq!(super::bytes("€"), None);
    }
}
