//! Whether a request may have another try (`proxy_next_upstream` of ngx_http_upstream_module): the same for what
//! clients send and for what is sent on the way of it.

use http::Method;
use model::policy::{Condition, Retries};
use std::time::Duration;
use tokio::time::Instant;

/// Tries where `proxy-next-upstream-tries` is 0.
const MANY: u32 = 32;
/// Tries of a request, however many are asked for: one request of a stranger costs no more.
const MOST: u32 = 101;

/// Whether there may be another try after so many, the first of which began at `started`.
pub fn tries_left(made: usize, retries: &Retries, started: Instant) -> bool {
    let allowed = if retries.tries == 0 { MANY } else { retries.tries.min(MOST) };
    let in_time = retries.timeout == Duration::ZERO || wire::since(started) < retries.timeout;
    !retries.conditions.is_empty() && in_time && made < allowed as usize
}

/// POST, LOCK and PATCH are not sent twice unless that was asked for.
pub fn is_idempotent(method: &Method, retries: &Retries) -> bool {
    retries.conditions.contains(&Condition::NonIdempotent) || is_safe_to_repeat(method)
}

/// Whether a method may be sent twice whatever is asked for.
pub(crate) fn is_safe_to_repeat(method: &Method) -> bool {
    !(*method == Method::POST || *method == Method::PATCH || method.as_str() == "LOCK")
}

#[cfg(test)]
mod tests {
    use super::{MOST, Retries, tries_left};

    #[test]
    fn a_request_has_a_bounded_number_of_tries_whatever_is_asked_for() {
        let retries = |tries| Retries { tries, ..Retries::default() };
        let last = |tries| {
            (1..1000).take_while(|made| tries_left(*made, &retries(tries), wire::now())).last()
        };
        assert_eq!([last(0), last(3), last(100_000)], [Some(31), Some(2), Some(MOST as usize - 1)]);
    }
}
