//! The trace of a real request: whoever knows the secret of `--trace-secret-file` asks for it with a header, and
//! finds it in the header section of the answer. With `--shadow` each request is a copy, of which it is only counted.

use super::{Decision, Trace, copies, decisions};
use crate::exchange::Exchange;
use crate::listen::Followed;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use wire::Response;

/// The header that asks, and the one that answers.
const HEADER: &str = "x-fairway-trace";
/// Lines of an answer at most, and bytes of each.
const LINES: usize = 64;
const LENGTH: usize = 300;

/// Follows the request if its header has the secret, which goes no further; or if it is a copy.
pub(crate) fn begin(exchange: &mut Exchange) {
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
        exchange.trace = Some(Box::default());
    }
}

/// Tells what was decided, if somebody asked.
pub(crate) fn end(exchange: &Exchange, response: &mut Response) {
    let Some(Trace { dry, copy, .. }) = exchange.trace.as_deref() else { return };
    if *copy && let Some(Followed::Copies(shadow)) = &exchange.worker.listen.followed {
        copies::end(shadow, exchange, response);
    }
    if *dry {
        return;
    }
    for Decision { step, outcome, by } in decisions(exchange, response).into_iter().take(LINES) {
        let by = by.map(|by| format!(" [{by}]")).unwrap_or_default();
        let plain = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
        let line: String =
            format!("{step}: {outcome}{by}").chars().map(plain).take(LENGTH).collect();
        response.headers.add("X-Fairway-Trace", line);
    }
}
