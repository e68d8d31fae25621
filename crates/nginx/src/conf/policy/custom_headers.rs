//! `custom-headers`, and `add-headers` of the ConfigMap: header fields of every answer.

use super::super::location::At;
use super::super::tree::put;
use super::super::{Block, Word};
use model::SetHeader;
use model::policy::CustomHeaders;

pub(in crate::conf) fn write(CustomHeaders(headers): &CustomHeaders, at: &mut At<'_, '_>) {
    for header in headers.iter() {
        at.block.append(set(header));
    }
}

/// Whether one of them stands above the header of `hsts`.
pub(in crate::conf) fn is_hsts(headers: &[SetHeader]) -> bool {
    headers.iter().any(|header| header.name.eq_ignore_ascii_case("Strict-Transport-Security"))
}

/// A header field of every answer, in place of those that there are.
pub(in crate::conf) fn set(SetHeader { name, value }: &SetHeader) -> Block {
    let mut block = Block::default();
    let word = Word::literal(name).then(": ").then(Word::template(value));
    put!(block, "more_set_headers", word);
    block
}
