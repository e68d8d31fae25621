//! `allowlist-source-range`, `denylist-source-range` and `satisfy` (ngx_http_access_module).

use super::super::location::At;
use super::super::tree::put;
use super::super::{Block, Word};
use model::Networks;
use model::policy::{Access, Satisfy};

pub(in crate::conf) fn write(policy: &Access, at: &mut At<'_, '_>) {
    let Access { deny, allow, satisfy } = policy;
    // Both are written: snippets around the location may say the other one.
    match satisfy {
        Some(Satisfy::Any) => put!(at.block, "satisfy", "any"),
        Some(Satisfy::All) => put!(at.block, "satisfy", "all"),
        None => {}
    }
    lists(deny, allow.as_ref(), &mut at.block);
}

fn lists(deny: &Networks, allow: Option<&Networks>, block: &mut Block) {
    for net in nets(deny) {
        put!(block, "deny", net);
    }
    if let Some(allow) = allow {
        for net in nets(allow) {
            put!(block, "allow", net);
        }
        put!(block, "deny", "all");
    }
}

/// Networks as nginx has them.
pub(in crate::conf) fn nets(networks: &Networks) -> impl Iterator<Item = Word> {
    networks.iter().map(|net| Word::plain(net.to_string()))
}
