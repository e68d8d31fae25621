//! How fast the answer is sent: `limit-rate`, or what the upstream says in X-Accel-Limit-Rate.

use super::effects;
use crate::exchange::Exchange;
use wire::Pace;

/// The pace of an answer; none if it may go as fast as the client takes it. What the upstream says, bytes each second,
/// comes first; zero lifts the limit (ngx_http_upstream_process_limit_rate).
pub(super) fn pace(exchange: &mut Exchange, said: Option<&[u8]>) -> Option<Pace> {
    let mut limit = exchange.place.as_ref()?.spot().location.policy.limit_rate;
    if let Some((rate, after)) = effects::rate(exchange) {
        limit.rate = rate.unwrap_or(limit.rate);
        limit.after = after.unwrap_or(limit.after);
    }
    let said = said.and_then(|rate| std::str::from_utf8(rate).ok()?.parse().ok());
    let rate = said.unwrap_or(limit.rate);
    (rate > 0).then(|| Pace::new(rate, limit.after, exchange.since))
}
