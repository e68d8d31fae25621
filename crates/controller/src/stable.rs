//! Numbers made of content that are the same in every replica, on every machine and after every update.

use aws_lc_rs::digest::{Context, SHA256};

/// A number that tells these parts from others: the beginning of their SHA-256, each with its length before it.
pub(crate) fn number<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut context = Context::new(&SHA256);
    for part in parts {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        context.update(&length.to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    digest.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_that_of_every_release_and_knows_where_parts_end() {
        assert_eq!(number([]), 0xe3b0_c442_98fc_1c14, "SHA-256 of nothing");
        assert_ne!(number([&b"ab"[..], b"c"]), number([&b"a"[..], b"bc"]));
    }
}
