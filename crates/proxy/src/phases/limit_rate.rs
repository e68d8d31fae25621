//! How fast the answer is sent: `limit-rate`, or what the upstream says in X-Accel-Limit-Rate.

use crate::exchange::Exchange;
use crate::http::{Pace, Response, Source};

/// The pace of an answer; none if it may go as fast as the client takes it.
pub(super) fn pace(exchange: &Exchange, response: &Response) -> Option<Pace> {
    let place = exchange.place.as_ref()?;
    let limit = place.spot().location.policy.limit_rate;
    let rate = accelerated(response).unwrap_or(limit.rate);
    (rate > 0).then(|| Pace::new(rate, limit.after, exchange.since))
}

/// Bytes each second, as the upstream wants them; zero lifts the limit (ngx_http_upstream_process_limit_rate).
fn accelerated(response: &Response) -> Option<u64> {
    if response.source != Source::Upstream {
        return None;
    }
    response.headers.text("x-accel-limit-rate")?.parse().ok()
}
