//! `custom-headers`, and `add-headers` of the ConfigMap: header fields of every answer.

use super::super::location::At;
use super::super::tree::put;
use super::super::{Block, Word};
use model::SetHeader;
use model::policy::CustomHeaders;

pub(in crate::conf) fn write(CustomHeaders(headers): &CustomHeaders, at: &mut At<'_, '_>) {
    for header in headers {
        at.block.append(set(header));
    }
}

/// A header field of every answer, in place of those that there are.
pub(in crate::conf) fn set(SetHeader { name, value }: &SetHeader) -> Block {
    let mut block = Block::default();
    let word = Word::literal(name).then(": ").then(Word::template(value));
    put!(block, "more_set_headers", word);
    block
}
