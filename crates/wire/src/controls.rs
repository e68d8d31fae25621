//! Control bytes in values, of which there is hardly ever one.

/// What would end a line or the text becomes a blank.
#[inline]
pub(crate) fn as_one_line(value: &mut [u8]) {
    let from = before_control(value);
    let ends = |byte: &&mut u8| matches!(**byte, b'\0' | b'\r' | b'\n');
    value[from..].iter_mut().filter(ends).for_each(|byte| *byte = b' ');
}

/// How many bytes stand before the first one below the blank. Eight of them are looked at together.
pub(crate) fn before_control(bytes: &[u8]) -> usize {
    const BLANKS: u64 = u64::from_ne_bytes([b' '; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // What is borrowed reaches only bytes behind the first one that is found.
        let below = word.wrapping_sub(BLANKS) & !word & HIGH;
        if below != 0 {
            return number * 8 + below.trailing_zeros() as usize / 8;
        }
    }
    let start = bytes.len() - rest.len();
    start + rest.iter().position(|&byte| byte < b' ').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::{as_one_line, before_control};

    #[test]
    fn the_first_control_byte_is_found_wherever_it_stands() {
        for (length, at) in (0..20).flat_map(|length| (0..length).map(move |at| (length, at))) {
            let mut value = vec![b'~'; length];
            assert_eq!(before_control(&value), length);
            for byte in 0..=255 {
                value[at] = byte;
                assert_eq!(before_control(&value), if byte < b' ' { at } else { length });
            }
            value[at] = b'\t';
            value[length - 1] = 0xff;
            let first = if at + 1 < length { at } else { length };
            assert_eq!(before_control(&value), first);
        }
    }

    #[test]
    fn what_would_end_a_line_becomes_a_blank_and_nothing_else_does() {
        let mut value = (0..=255).collect::<Vec<u8>>();
        as_one_line(&mut value);
        let expected = (0..=255).map(|byte| if b"\0\r\n".contains(&byte) { b' ' } else { byte });
        assert!(value.into_iter().eq(expected));
    }
}
