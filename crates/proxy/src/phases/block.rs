//! `block-user-agents` and `block-referers`: refused before anything else is asked (compat/behaviour.md section 13).

use super::Stop;
use crate::exchange::Exchange;
use http::StatusCode;
use model::BlockList;
use wire::Response;

pub(super) fn headers(exchange: &Exchange) -> Result<(), Stop> {
    let block = &exchange.generation.global().block;
    if block.has_no_headers() {
        return Ok(());
    }
    if has(&block.user_agents, exchange, "user-agent") || has(&block.referers, exchange, "referer")
    {
        return Err(Response::page(StatusCode::FORBIDDEN).into());
    }
    Ok(())
}

/// Whether a header is on a list. Several lines count as one, joined as nginx joins them; none is the empty text.
fn has(list: &BlockList, exchange: &Exchange, name: &str) -> bool {
    if list.is_empty() {
        return false;
    }
    // As bytes: one that is no UTF-8 hides nothing of what stands beside it.
    let lines: Vec<&[u8]> = exchange.request.headers.all(name).collect();
    list.has(&lines.join(&b", "[..]), &exchange.steps)
}
