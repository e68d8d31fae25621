//! The trace of a real request: whoever knows the secret of `--trace-secret-file` asks for it with a header, and
//! finds it in the header section of the answer. Whoever may see the page waits for one by its id. With `--shadow` each
//! request is a copy, of which it is only counted.

use super::{Decision, Trace, copies, decisions};
use crate::exchange::Exchange;
use crate::listen::Followed;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use wire::Response;

/// The header that asks, and the one that answers.
const HEADER: &str = "x-fairway-trace";
/// What the page waits for a request by.
const ID: &str = "x-request-id";
/// Lines of an answer at most, and bytes of each.
const LINES: usize = 64;
const LENGTH: usize = 300;

/// Follows the request if its header has the secret, which goes no further; or if somebody waits for it; or if it is a
/// copy.
pub(crate) fn begin(exchange: &mut Exchange) {
    asked(exchange);
    if !exchange.worker.shared.sampled.is_any_awaited() || exchange.is_dry() {
        return;
    }
    let Some(id) = exchange.request.headers.bytes(ID) else { return };
    if exchange.worker.shared.sampled.is_awaited(&id) {
        exchange.trace.get_or_insert_default().sampled = Some(id.to_vec());
    }
}

/// What a header, or that it is a copy, asks for.
fn asked(exchange: &mut Exchange) {
    let secret = match &exchange.worker.listen.followed {
        None => return,
        Some(Followed::Asked(secret)) => secret.clone(),
        // What is only thought through already is no copy that came.
        Some(Followed::Copies(_)) if exchange.is_dry() => return,
        Some(Followed::Copies(shadow)) => return copies::begin(&shadow.clone(), exchange),
    };
    let Some(told) = exchange.request.headers.bytes(HEADER) else { return };
    exchange.request.headers.remove(HEADER);
    if verify_slices_are_equal(&told, &secret).is_ok() {
        exchange.trace = Some(Box::new(Trace { told: true, ..Trace::default() }));
    }
}

/// Tells what was decided, if somebody asked.
pub(crate) fn end(exchange: &Exchange, response: &mut Response) {
    let Some(Trace { dry, copy, sampled, told, .. }) = exchange.trace.as_deref() else { return };
    if *copy && let Some(Followed::Copies(shadow)) = &exchange.worker.listen.followed {
        copies::end(shadow, exchange, response);
    }
    if *dry {
        return;
    }
    let decisions = decisions(exchange, response);
    if let Some(id) = sampled {
        exchange.worker.shared.sampled.tell(id, decisions.clone());
    }
    let lines = if *told { LINES } else { 0 };
    for Decision { step, outcome, by, .. } in decisions.into_iter().take(lines) {
        let by = by.map(|by| format!(" [{by}]")).unwrap_or_default();
        let plain = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
        let line: String =
            format!("{step}: {outcome}{by}").chars().map(plain).take(LENGTH).collect();
        response.headers.add("X-Fairway-Trace", line);
    }
}
