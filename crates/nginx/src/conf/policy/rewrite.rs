//! `rewrite-target` (ngx_http_rewrite_module, `rewrite … break`).

use super::super::Word;
use super::super::location::At;
use super::super::tree::put;
use model::policy::Rewrite;

pub(in crate::conf) fn write(policy: Option<&Rewrite>, at: &mut At<'_, '_>) {
    let Some(Rewrite { pattern, target, prefix: _ }) = policy else { return };
    let pattern = Word::from("(?i)").then(Word::plain(pattern.source()));
    put!(at.block, "rewrite", pattern, Word::template(target), "break");
}
